"""Count the policies of Jiangsu that list the industry, and add their uplift."""

import csv
import json

with open(".step_02.json", encoding="utf-8") as file:
    plan = json.load(file)
with open("database/policy/policy_resource.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
if not rows:
    raise SystemExit("policy_resource.csv holds no policy")
count = sum(row["province"] == "江苏省" and "医药制造业" in row["industry"].split("；") for row in rows)
plan["growth"] += 1.5 * count
print(f"Policies of Jiangsu that list the industry: {count}")
print(f"Annual growth of the projection (%): {plan['growth']:.2f}")
with open(".step_03.json", "w", encoding="utf-8") as file:
    json.dump(plan, file)
