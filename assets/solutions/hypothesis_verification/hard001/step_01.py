"""将企业按所有制分为民营组与国有组。"""

import csv
import json

groups = {}
with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["isResult"] != "1":
            continue
        if row["ownership"] == "民营企业":
            groups[row["bmCode"]] = "民营"
        elif "国有企业" in row["ownership"]:
            groups[row["bmCode"]] = "国有"
for group in ("民营", "国有"):
    print(f"{group}企业数量（家）：{list(groups.values()).count(group)}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(groups, file)
