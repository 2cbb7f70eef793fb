"""Compare the revenue per employee of all companies of that industry and province."""

import csv
import json

with open(".step_01.json", encoding="utf-8") as file:
    home = json.load(file)
with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    peers = {
        row["bmCode"]
        for row in csv.DictReader(file)
        if (row["industry"], row["province"], row["isResult"]) == (home["industry"], home["province"], "1")
    }

per_employee = {}
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["bmCode"] in peers and row["year"] == "2022" and row["营业收入金额"] and row["雇员总数"]:
            per_employee[row["企业名称"]] = float(row["营业收入金额"]) / float(row["雇员总数"])
leader = max(per_employee, key=per_employee.__getitem__)

print(f"Number of companies compared: {len(per_employee)}")
print(f"Chinese name of the leading company: {leader}")
print(f"Highest revenue per employee (yuan): {per_employee[leader]:.2f}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump({"leader": leader}, file)
