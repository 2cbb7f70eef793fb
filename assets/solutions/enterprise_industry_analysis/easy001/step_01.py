"""Find the Chinese name behind the English alias, and the company's industry and province."""

import csv
import json

ASKED = "Xiao Lan Sheng Yao Ye Co., Ltd."

with open("database/bilingual_translation_english_chinese.json", encoding="utf-8") as file:
    company_items = json.load(file)["company_items"]
names = [
    chinese for chinese, english in company_items.items() if ASKED in (english if isinstance(english, list) else [english])
]
if len(names) != 1:
    raise SystemExit(f"{ASKED}: {len(names)} companies carry this alias")

with open("database/enterprise/company_profile.csv", encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["bmCompanyName"] == names[0] and row["isResult"] == "1"]
if len(rows) != 1:
    raise SystemExit(f"{names[0]}: {len(rows)} profile rows")
home = {"industry": rows[0]["industry"], "province": rows[0]["province"]}

print(f"Chinese name of {ASKED}: {names[0]}")
print(f"Industry of the company: {home['industry']}")
print(f"Province of the company: {home['province']}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(home, file)
