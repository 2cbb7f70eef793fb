"""Answer with the first province, its score, the second, and the lead between them."""

import json

with open(".step_05.json", encoding="utf-8") as file:
    scores = json.load(file)
first, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
lead = scores[first] - scores[second]
print(json.dumps([first, round(scores[first], 1), second, round(lead, 1)], ensure_ascii=False))
