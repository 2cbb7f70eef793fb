"""Put the foreign company's R&D, expensed and capitalised, in relation to its revenue."""

import json

expensed, capitalised, revenue = 812.4, 182.3, 18420.0  # million NOK, from the question
ratio = (expensed + capitalised) / revenue * 100
print(f"R&D ratio of Halvreik Maskin ASA (%): {ratio:.2f}")
with open(".step_01.json", "w", encoding="utf-8") as file:
    json.dump(ratio, file)
