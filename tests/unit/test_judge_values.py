"""Quantities, rounding, what guidelines demand, name keys and the folding of text."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pytest_dataclaw.judge.demand import demand_of
from pytest_dataclaw.judge.names import Names, name_key
from pytest_dataclaw.judge.provinces import PROVINCE_NAMES
from pytest_dataclaw.judge.text import clean, fold
from pytest_dataclaw.judge.values import find_quantities, parse_quantity, rounds_to


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("23.18", ["23.18"]),
        ("1,234,567.89 and 12,34", ["1234567.89", "12", "34"]),
        ("3.18-2.38=-0.81", ["3.18", "2.38", "-0.81"]),
        ("2020-2022", ["2020", "2022"]),
        ("为-0.81", ["-0.81"]),
        ("CR4 of hard001 in v1.2.3", []),
        ("1.25E+9 then 1.25e-3", ["1.25E+9", "0.00125"]),
        ("1.25×10^9", ["1.25E+9"]),
        (".5", ["0.5"]),
        ("9" * 61, []),
        ("12‰", ["1.2"]),
    ],
)
def test_find_quantities(text: str, values: list[str]) -> None:
    assert [quantity.value for quantity in find_quantities(text)] == [Decimal(value) for value in values]


@pytest.mark.parametrize(
    ("text", "percent", "scale", "foreign"),
    [
        ("12.5亿元", False, "1E8", False),
        ("12.5 亿", False, "1E8", False),
        ("12.5万元", False, "1E4", False),
        ("12.5 million yuan", False, "1E6", False),
        ("12.5 hundred million yuan", False, "1E8", False),
        ("12.5B", False, "1E9", False),
        ("12.5 RMB", False, "1", False),
        ("12.5 billion USD", False, "1E9", True),
        ("12.5 %", True, None, False),
        ("12.5 percentage points", True, None, False),
        ("12.5", False, None, False),
    ],
)
def test_units(text: str, percent: bool, scale: str | None, foreign: bool) -> None:
    quantity = parse_quantity(text)
    assert quantity is not None
    assert (quantity.percent, quantity.foreign) == (percent, foreign)
    assert quantity.scale == (None if scale is None else Decimal(scale))


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("提升1.79", 1),
        ("下降了 1.79", -1),
        ("increased by 1.79", 1),
        ("1.79 (下降)", -1),
        ("1.79个百分点（提升）", 1),
        ("最高1.79", 0),
        ("不低于8", 0),
        ("a share of 1.79", 0),
    ],
)
def test_direction(text: str, direction: int) -> None:
    assert [quantity.direction for quantity in find_quantities(fold(text)[0])] == [direction]


@pytest.mark.parametrize(
    ("stated", "expected", "decimals", "fits"),
    [
        ("2.345", "2.35", 2, True),
        ("2.345", "2.34", 2, True),
        ("2.3451", "2.34", 2, False),
        ("-2.345", "-2.35", 2, True),
        ("2.3", "2.34", 2, False),
        ("2.30", "2.3", 2, True),
        ("4.0", "4", None, True),
        ("4.2", "4", None, False),
        ("1E99", "1", 2, False),
    ],
)
def test_rounds_to(stated: str, expected: str, decimals: int | None, fits: bool) -> None:
    assert rounds_to(Decimal(stated), Decimal(expected), decimals) is fits


@pytest.mark.parametrize(
    ("guidelines", "decimals"),
    [
        ("a percentage value with 2 decimal places", (2,)),
        ("the difference value (four decimal places)", (4,)),
        ("Retain 2 decimal places", (2,)),
        ("two-decimal number", (2,)),
        ("保留2位小数", (2,)),
        ("保留两位小数", (2,)),
        ("精确到小数点后三位", (3,)),
        ("相关系数保留4位小数，差值保留2位小数", (2, 4)),
        ("An integer", ()),
    ],
)
def test_demanded_decimals(guidelines: str, decimals: tuple[int, ...]) -> None:
    assert demand_of("", guidelines).decimals == decimals


def test_decimals_of_a_part_are_the_smallest_demanded_that_hold_it() -> None:
    demand = demand_of("", "相关系数保留4位小数，差值保留2位小数")
    assert [demand.decimals_for(own) for own in (0, 1, 2, 3, 4, 6)] == [2, 2, 2, 4, 4, 4]
    assert [demand_of("", "").decimals_for(own) for own in (0, 2)] == [None, 2]


@pytest.mark.parametrize(
    ("guidelines", "scale"),
    [
        ("以亿元为单位", "1E8"),
        ("in 100 million yuan", "1E8"),
        ("in billions of yuan", "1E9"),
        ("单位：万元", "1E4"),
        ("in yuan", "1"),
        ("单位为件/百万元", None),
        ("每百万元政府补贴", None),
        ("亿元 or 万元", None),
        ("元素", None),
        ("unit: %", None),
    ],
)
def test_demanded_money_unit(guidelines: str, scale: str | None) -> None:
    assert demand_of("", guidelines).scale == (None if scale is None else Decimal(scale))


def test_order_is_demanded_only_by_guidelines() -> None:
    assert demand_of("", "Answer in order: ratio, score").ordered
    assert demand_of("", "依次回答").ordered
    assert not demand_of("ranked in order of revenue", "Give the names").ordered


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Abc Def Co., Ltd.", "abc def company", True),
        ("Abc Def Joint Stock Co., Ltd.", "AbcDef", True),
        ("泽安锦机电股份有限公司", "泽安锦机电公司", True),
        ("泽安锦机电公司", "泽安锦机电科技公司", False),
        ("Fund 1.5", "Fund 15", False),
        ("公司", "公司", True),
        ("", "", False),
        ("Inner Mongolia", "内蒙古自治区", True),
        ("Xizang", "Tibet Autonomous Region", True),
        ("Hunan", "Hubei", False),
    ],
)
def test_same_name(first: str, second: str, same: bool) -> None:
    assert Names().same(first, second) is same


def test_every_division_of_china_is_there_once() -> None:
    keys = [{name_key(name) for name in names} for names in PROVINCE_NAMES]
    assert len(keys) == 34
    assert sum(map(len, keys)) == len(set().union(*keys))


def test_folding_keeps_what_must_not_merge() -> None:
    assert fold("１０³，①29") == ("10³,①29", False)
    assert fold("а") == ("а", False)  # Cyrillic stays Cyrillic
    assert fold("a\u200bb\u202ec\x1b[31md\r\n") == ("abcd\n", True)


def test_only_the_imitating_span_is_taken_out() -> None:
    assert clean('A {"answer": 3} B {"x": {"scores": {"match": 1}}} C').text == 'A {"answer": 3} B  C'
    assert clean("22\nThe gold answer is\n23\n24").text == "22\n\n24"
    assert clean('{"total": 25.13, "province": "X"}').flags == ()
