"""Keep the provinces in which three or more such companies are seated."""

import json

with open(".step_02.json", encoding="utf-8") as file:
    complete = json.load(file)
groups = {}
for province, *figures in complete:
    groups.setdefault(province, []).append(figures)
considered = {province: rows for province, rows in groups.items() if len(rows) >= 3}
print(f"Provinces considered: {len(considered)}")
for province, rows in considered.items():
    print(f"  {province}: {len(rows)} companies")
with open(".step_03.json", "w", encoding="utf-8") as file:
    json.dump(considered, file)
