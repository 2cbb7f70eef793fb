"""Keep those whose operating profit, subsidy and liabilities are all reported and above zero."""

import json

with open(".step_02.json", encoding="utf-8") as file:
    large = json.load(file)
tested = [[name, *map(float, texts)] for name, *texts in large if all(texts) and min(map(float, texts)) > 0]
print(f"Companies under test: {len(tested)}")
with open(".step_03.json", "w", encoding="utf-8") as file:
    json.dump(tested, file)
