"""关联经营数据，剔除缺失与异常记录。"""

import csv
import json

with open(".step_01.json", encoding="utf-8") as file:
    groups = json.load(file)
samples = {"民营": [], "国有": []}
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        ratio, growth = row["研发投入占比"], row["营业收入同比增减幅"]
        if row["bmCode"] in groups and ratio and growth and float(ratio) <= 100 and abs(float(growth)) <= 100:
            samples[groups[row["bmCode"]]].append([float(ratio), float(growth)])
for group, pairs in samples.items():
    print(f"{group}企业有效样本数（家）：{len(pairs)}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump(samples, file)
