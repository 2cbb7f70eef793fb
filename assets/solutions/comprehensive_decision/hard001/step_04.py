"""Count the policies of each province that list the industry; no policy is a count of 0."""

import csv
import json

with open(".step_03.json", encoding="utf-8") as file:
    counts = dict.fromkeys(json.load(file), 0)
total = 0
with open("database/policy/policy_resource.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        total += 1
        if row["province"] in counts and "专用设备制造业" in row["industry"].split("；"):
            counts[row["province"]] += 1
if not total:
    raise SystemExit("policy_resource.csv holds no policy")
print(f"Policies of the considered provinces for the industry: {sum(counts.values())}")
for province, count in counts.items():
    print(f"  {province}: {count} policies")
with open(".step_04.json", "w", encoding="utf-8") as file:
    json.dump(counts, file)
