"""汇总答案：样本数、相关系数及其差、中位数之差。"""

import json


def load(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


samples, correlations, medians = load(".step_02.json"), load(".step_03.json"), load(".step_04.json")
answer = [
    len(samples["民营"]),
    round(correlations["民营"], 4),
    round(correlations["民营"] - correlations["国有"], 3),
    round(medians["民营"] - medians["国有"], 1),
]
print(json.dumps(answer, ensure_ascii=False))
