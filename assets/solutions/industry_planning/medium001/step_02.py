"""Compute the base revenue and the median growth."""

import json
from math import fsum
from statistics import median

with open(".step_01.json", encoding="utf-8") as file:
    pairs = json.load(file)
base = fsum(revenue for revenue, _ in pairs) / 10**8
growth = median(value for _, value in pairs)
print(f"Combined revenue of 2022 (100 million yuan): {base:.2f}")
print(f"Median revenue growth (%): {growth:.2f}")
with open(".step_02.json", "w", encoding="utf-8") as file:
    json.dump({"base": base, "growth": growth}, file)
