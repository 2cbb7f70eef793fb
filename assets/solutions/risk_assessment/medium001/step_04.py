"""Apply the scenario and count the losses."""

import json

with open(".step_03.json", encoding="utf-8") as file:
    tested = json.load(file)
if not tested:
    raise SystemExit("no company under test")
print(sum(profit - 0.6 * subsidy - 0.01 * debts < 0 for _, profit, subsidy, debts in tested))
