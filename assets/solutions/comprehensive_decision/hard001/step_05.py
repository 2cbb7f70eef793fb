"""Compute the three indicators, scale them over the considered provinces, and weight them."""

import json
from math import fsum

WEIGHTS = (0.5, 0.3, 0.2)

with open(".step_03.json", encoding="utf-8") as file:
    considered = json.load(file)
with open(".step_04.json", encoding="utf-8") as file:
    policies = json.load(file)

indicators = {}
for province, rows in considered.items():
    research, revenue, subsidy = (fsum(column) for column in zip(*rows))
    indicators[province] = (research / revenue * 100, revenue / subsidy, policies[province])
ranges = [(min(column), max(column)) for column in zip(*indicators.values())]
scores = {
    province: fsum(w * (v - low) / (high - low) * 100 for w, v, (low, high) in zip(WEIGHTS, values, ranges))
    for province, values in indicators.items()
}

order = sorted(scores, key=scores.__getitem__, reverse=True)
for rank, province in zip(("first", "second"), order):
    intensity, efficiency, _ = indicators[province]
    print(f"Pooled R&D intensity of the {rank} province {province} (%): {intensity:.2f}")
    print(f"Subsidy utilisation efficiency of the {rank} province {province}: {efficiency:.2f}")
    print(f"Composite score of the {rank} province {province}: {scores[province]:.1f}")
with open(".step_05.json", "w", encoding="utf-8") as file:
    json.dump(scores, file)
