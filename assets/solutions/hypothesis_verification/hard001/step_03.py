"""分组计算研发投入占比与营业收入同比增减幅的皮尔逊相关系数。"""

import json
from math import fsum, sqrt

with open(".step_02.json", encoding="utf-8") as file:
    samples = json.load(file)


def pearson(pairs):
    mean_x, mean_y = (fsum(column) / len(pairs) for column in zip(*pairs))
    products = fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
    return products / sqrt(fsum((x - mean_x) ** 2 for x, _ in pairs) * fsum((y - mean_y) ** 2 for _, y in pairs))


correlations = {group: pearson(pairs) for group, pairs in samples.items()}
for group, r in correlations.items():
    print(f"{group}企业相关系数：{r:.4f}")
with open(".step_03.json", "w", encoding="utf-8") as file:
    json.dump(correlations, file)
