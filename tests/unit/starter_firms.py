"""The starter database as company objects: a second view of it, apart from the step scripts and the generator."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
DATABASE = ROOT / "assets" / "database"

Row: TypeAlias = "dict[str, str]"


def rows_of(path: str) -> list[Row]:
    """Return the rows of a table of the starter database."""
    with (DATABASE / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Firm:
    """A company as its profile and its figures describe it; a blank figure is None."""

    def __init__(self, profile: Row, figures: Row) -> None:
        self.name, self.industry, self.province = (profile[k] for k in ("bmCompanyName", "industry", "province"))
        self.ownership, self.exchange = profile["ownership"], profile["exchange"]
        self.figures = {k: Decimal(v) if v else None for k, v in figures.items() if k not in ("企业名称", "bmCode")}

    def has(self, *columns: str) -> bool:
        """Tell whether the company reports all these figures."""
        return all(self.figures[column] is not None for column in columns)

    def __getitem__(self, column: str) -> Decimal:
        value = self.figures[column]
        assert value is not None
        return value


def all_firms() -> list[Firm]:
    """Return every company once."""
    figures = {row["bmCode"]: row for row in rows_of("enterprise/company_operation_status.csv")}
    profiles = [row for row in rows_of("enterprise/company_profile.csv") if row["isResult"] == "1"]
    assert [row["bmCompanyName"] for row in profiles] == [figures[row["bmCode"]]["企业名称"] for row in profiles]
    return [Firm(row, figures[row["bmCode"]]) for row in profiles]


def aliases() -> dict[str, list[str]]:
    """Return the English names of the companies that the bilingual map lists."""
    items = json.loads((DATABASE / "bilingual_translation_english_chinese.json").read_text(encoding="utf-8"))
    return {k: v if isinstance(v, list) else [v] for k, v in items["company_items"].items()}
