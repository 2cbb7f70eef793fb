"""分组计算营业收入同比增减幅的中位数。"""

import json
from statistics import median

with open(".step_02.json", encoding="utf-8") as file:
    samples = json.load(file)
medians = {group: median(growth for _, growth in pairs) for group, pairs in samples.items()}
for group, value in medians.items():
    print(f"{group}企业营业收入同比增减幅中位数（%）：{value:.3f}")
with open(".step_04.json", "w", encoding="utf-8") as file:
    json.dump(medians, file)
