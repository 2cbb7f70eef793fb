"""Express the count as a percentage of those that report."""

import json

with open(".step_03.json", encoding="utf-8") as file:
    counts = json.load(file)
print(f"{counts['above'] / counts['reporting'] * 100:.2f}%")
