"""Keep the companies that report R&D investment, revenue and a subsidy above zero."""

import csv
import json

COLUMNS = ("研发投入金额", "营业收入金额", "政府奖励资金、补贴")

with open(".step_01.json", encoding="utf-8") as file:
    seats = json.load(file)
complete = []
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        texts = [row[column] for column in COLUMNS]
        if row["bmCode"] in seats and all(texts) and float(texts[2]) > 0:
            complete.append([seats[row["bmCode"]], *map(float, texts)])
print(f"Companies with R&D investment, revenue and a positive subsidy: {len(complete)}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump(complete, file)
