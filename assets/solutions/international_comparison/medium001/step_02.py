"""List the private domestic companies of special-purpose equipment manufacturing."""

import csv
import json

with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    private = [
        row["bmCode"]
        for row in csv.DictReader(file)
        if (row["industry"], row["ownership"], row["isResult"]) == ("专用设备制造业", "民营企业", "1")
    ]
print(f"Private domestic companies of the industry: {len(private)}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump(private, file)
