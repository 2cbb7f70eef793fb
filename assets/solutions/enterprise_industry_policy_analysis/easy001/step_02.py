"""Apply both criteria."""

import json

with open(".step_01.json", encoding="utf-8") as file:
    facts = json.load(file)
same_province = facts["policy_province"] == facts["company_province"]
covered = facts["company_industry"] in facts["policy_industries"]
print("是" if same_province and covered else "否")
