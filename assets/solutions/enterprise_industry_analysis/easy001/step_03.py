"""Answer with the leader's first English name."""

import json

with open(".step_02.json", encoding="utf-8") as file:
    leader = json.load(file)["leader"]
with open("database/bilingual_translation_english_chinese.json", encoding="utf-8") as file:
    english = json.load(file)["company_items"][leader]
print(english[0] if isinstance(english, list) else english)
