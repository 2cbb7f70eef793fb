"""Read who issued the policy and for which industries, and where the company stands."""

import csv
import json

TITLE = "关于培育智能产线示范企业的若干措施（试行）"
COMPANY = "岑曜锐泵阀公司"


def only(path, column, value):
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row[column] == value]
    if len(rows) != 1:
        raise SystemExit(f"{path}: {len(rows)} rows with {column} {value}")
    return rows[0]


policy = only("database/policy/policy_resource.csv", "title", TITLE)
company = only("database/enterprise/company_profile.csv", "bmCompanyName", COMPANY)
industries = policy["industry"].split("；")

print(f"政策发布省份：{policy['province']}")
print(f"政策适用行业：{'；'.join(industries)}")
print(f"企业所在省份：{company['province']}")
print(f"企业登记的所属行业：{company['industry']}")
facts = {
    "policy_province": policy["province"],
    "policy_industries": industries,
    "company_province": company["province"],
    "company_industry": company["industry"],
}
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(facts, file)
