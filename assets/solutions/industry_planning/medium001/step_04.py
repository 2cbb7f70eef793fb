"""Compound the base revenue over three years."""

import json

with open(".step_03.json", encoding="utf-8") as file:
    plan = json.load(file)
print(f"{plan['base'] * (1 + plan['growth'] / 100) ** 3:.2f}")
