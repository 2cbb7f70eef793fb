"""Collect the pharmaceutical companies of Jiangsu that report revenue and its growth."""

import csv
import json

with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    seated = {
        row["bmCode"]
        for row in csv.DictReader(file)
        if (row["industry"], row["province"], row["isResult"]) == ("医药制造业", "江苏省", "1")
    }
pairs = []
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["bmCode"] in seated and row["营业收入金额"] and row["营业收入同比增减幅"]:
            pairs.append([float(row["营业收入金额"]), float(row["营业收入同比增减幅"])])
print(f"Pharmaceutical companies seated in Jiangsu: {len(seated)}")
print(f"Companies with both revenue and growth: {len(pairs)}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(pairs, file)
