"""Read their reported R&D ratios, leave out blanks, and count those above the foreign company's."""

import csv
import json

with open(".step_01.json", encoding="utf-8") as file:
    foreign = json.load(file)
with open(".step_02.json", encoding="utf-8") as file:
    private = set(json.load(file))
with open("database/enterprise/company_operation_status.csv", encoding="utf-8", newline="") as file:
    ratios = [
        float(row["研发投入占比"]) for row in csv.DictReader(file) if row["bmCode"] in private and row["研发投入占比"]
    ]
above = sum(ratio > foreign for ratio in ratios)
print(f"Companies that report an R&D ratio: {len(ratios)}")
print(f"Companies with a higher R&D ratio: {above}")
with open(".step_03.json", "w", encoding="utf-8") as file:
    json.dump({"above": above, "reporting": len(ratios)}, file)
