"""Keep those worth more than 2 billion yuan; the table gives market value in 100 million yuan."""

import csv
import json

with open(".step_01.json", encoding="utf-8") as file:
    makers = set(json.load(file))
COLUMNS = ("营业利润金额", "政府奖励资金、补贴", "总负债")
large = []
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        if row["bmCode"] in makers and row["公司市值"] and float(row["公司市值"]) * 10**8 > 2 * 10**9:
            large.append([row["企业名称"], *(row[column] for column in COLUMNS)])
print(f"Companies with a market value above 2 billion yuan: {len(large)}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump(large, file)
