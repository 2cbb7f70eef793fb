"""List the manufacturing companies."""

import csv
import json

with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    makers = [
        row["bmCode"] for row in csv.DictReader(file) if row["industry"].endswith("制造业") and row["isResult"] == "1"
    ]
print(f"Manufacturing companies, each counted once: {len(makers)}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(makers, file)
