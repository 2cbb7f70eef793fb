"""List the companies of special-purpose equipment manufacturing, each once."""

import csv
import json

INDUSTRY = "专用设备制造业"

with open("database/internal_metrics.csv", encoding="utf-8", newline="") as file:
    definitions = [row["interal_knowladge"] for row in csv.DictReader(file)]
for name in ("Enterprise count", "Subsidy utilisation efficiency"):
    print(next(text for text in definitions if text.startswith(name)))

with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    seats = {
        row["bmCode"]: row["province"]
        for row in csv.DictReader(file)
        if row["industry"] == INDUSTRY and row["isResult"] == "1"
    }
print(f"Companies of the industry, each counted once: {len(seats)}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(seats, file)
