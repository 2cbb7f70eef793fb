"""The deterministic judge on milestones: the value, its context, and the turn that first shows both."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.judge.base import Case
from pytest_dataclaw.judge.rules import RulesJudge
from pytest_dataclaw.model.task import Gold, Milestone
from pytest_dataclaw.model.trajectory import ToolCall, Trajectory, Turn
from pytest_dataclaw.model.verdict import MilestoneVerdict, Ruling

if TYPE_CHECKING:
    from pytest_dataclaw.model.task import Json

YES, NO, OPEN = "yes", "no", "undecided"


def judge(key: str, value: Json, *turns: Turn, aliases: tuple[frozenset[str], ...] = ()) -> MilestoneVerdict:
    gold = Gold("", "", 1, (), 1, (Milestone(key, value),), (), Path("gold.json"))
    verdict = RulesJudge().judge_process(Case(gold, "x", Trajectory(turns), aliases)).milestones[0]
    assert (verdict.turn is not None) == (verdict.ruling is Ruling.YES)
    assert verdict.evidence == ("value" if verdict.ruling is Ruling.YES else "none")
    return verdict


def turn(index: int, result: str = "", text: str = "", arguments: str = "") -> Turn:
    calls = (ToolCall(f"call{index}", "exec", arguments),) if result or arguments else ()
    return Turn(index, text, calls, (result,) if calls else ())


@pytest.mark.parametrize(
    ("key", "value", "shown", "expected"),
    [
        ("Number of valid samples", 362, "valid samples: 362", YES),
        ("Number of valid samples", 362, "valid samples: 361", NO),
        ("Number of valid samples", 362, "362 rows read", OPEN),
        ("Number of valid samples", 362, "valid samples\n362", YES),
        ("Number of valid samples", 362, "valid samples\n\n\n362", OPEN),
        ("Number of valid samples", 362, "valid_samples=362.0", YES),
        ("Total chemical enterprises", 4608, "chemical enterprises 4640", YES),
        ("Total chemical enterprises", 4608, "chemical enterprises 4660", NO),
        ("Median operating profit margin (%)", 10.5, "median profit margin 10.58", YES),
        ("Median operating profit margin (%)", 10.5, "median profit margin 10.62", NO),
        ("Median operating profit margin (%)", 10.5, "median profit margin 0.1049", YES),
        ("Median operating profit margin (%)", 10.5, "median profit margin -10.5", NO),
        ("Median government subsidy (yuan)", 10019029.08, "10019029.08", YES),
        ("Median government subsidy (yuan)", 10019029.08, "1.001902908E+7", YES),
        ("Median government subsidy (yuan)", 10019029.08, "10019030.08", OPEN),
        ("Median government subsidy (yuan)", 10019029.08, "subsidy median 10,019,030", YES),
        ("Financial health", 0.07, "financial health 0.0713", YES),
        ("Financial health", 0.07, "financial health 0.0763", NO),
        ("year-over-year change rate", "28.63 %", "change rate over year 28.63", YES),
        ("year-over-year change rate", "28.63 %", "change rate over year 29.63", NO),
        ("湖南省2022年研发投入总额（亿元）", 18.32, "湖南 研发投入合计 1832000000.0", YES),
        ("湖南省2022年研发投入总额（亿元）", 18.32, "湖南 研发投入合计 18.32亿元", YES),
        ("湖南省2022年研发投入总额（亿元）", 18.32, "湖南 研发投入合计 28.32", NO),
        ("有政策省份有效企业数（家）", 56, "有政策省份: 有效企业 56", YES),
        ("有政策省份有效企业数（家）", 56, "行数 56", OPEN),
        ("Policy count", 0, "policy rows: 0", YES),
        ("Province of location", "Jiangsu Province", "location 江苏省", YES),
        ("Province of location", "Jiangsu Province", "location: Jiangxi Province", NO),
        ("Province of location", "Jiangsu Province", "江苏省 is in the east", OPEN),
        ("High concentration provinces", ["Shanghai", "Zhejiang"], "high concentration: 上海市, 浙江省", YES),
        ("High concentration provinces", ["Shanghai", "Zhejiang"], "high concentration: 上海市", NO),
        ("High concentration provinces", ["Shanghai", "Zhejiang"], "上海市" + " x" * 200 + "浙江省", OPEN),
        ("Comparison result", "Yes", "Comparison: Yes", YES),
        ("Comparison result", "Yes", "Yes", OPEN),
        ("Comparison result", "Yes", "Comparison: No", NO),
        (
            "Trend",
            "Both operating revenue and R&D investment declined",
            "both operating revenue and R&D investment declined.",
            YES,
        ),
        ("Trend", "Both operating revenue and R&D investment declined", "they fell", OPEN),
        ("Difference", 94.35, "the difference is 94.35", YES),
    ],
)
def test_value_and_context(key: str, value: Json, shown: str, expected: str) -> None:
    assert judge(key, value, turn(1, shown)).ruling.value == expected
    assert judge(key, value, turn(1, text=shown)).ruling.value == expected


def test_the_first_turn_that_shows_value_and_context_counts() -> None:
    turns = (
        turn(1, "12 rows"),
        turn(2, "362"),
        turn(3, "valid samples 362"),
        turn(4, text="There are 362 valid samples."),
    )
    assert judge("Number of valid samples", 362, *turns).turn == 3


def test_arguments_give_context_but_no_value() -> None:
    script = json.dumps({"command": "print(len(valid_samples))"})
    assert judge("Number of valid samples", 362, turn(1, "362\n", arguments=script)).turn == 1
    written = json.dumps({"command": "valid_samples = 362"})
    assert judge("Number of valid samples", 362, turn(1, "done", arguments=written)).ruling is Ruling.NO


def test_arguments_give_no_context_to_a_long_list_of_numbers() -> None:
    script = json.dumps({"command": "print(valid_samples)"})
    listing = "\n".join(str(number) for number in range(355, 370))
    assert judge("Number of valid samples", 362, turn(1, listing, arguments=script)).ruling is Ruling.UNDECIDED


def test_an_alias_stands_for_the_name_in_the_key() -> None:
    aliases = (frozenset({"泽安锦机电公司", "Zean Jin Electromechanical Company"}),)
    key = "Zean Jin Electromechanical Company patents"
    assert judge(key, 59, turn(1, "泽安锦机电公司 59"), aliases=aliases).ruling is Ruling.YES
    assert judge(key, 59, turn(1, "泽安锦机电公司 59")).ruling is Ruling.UNDECIDED


def test_reasons_do_not_hold_the_value() -> None:
    for value in (362, "Jiangsu Province", 10019029.08):
        for shown in ("362", "Jiangsu Province", "10019029.08", ""):
            assert str(value) not in judge("Number of valid samples", value, turn(1, shown)).reason


@pytest.mark.parametrize(
    "text", ["1 " * 60_000, "362 valid samples " * 8_000, "上海市" * 20_000, "{" * 60_000, "Yes\n" * 20_000]
)
def test_long_results_take_linear_time(text: str) -> None:
    started = time.process_time()
    values: list[Json] = [1, 362, "Yes", "Shanghai", ["Shanghai", "Zhejiang"], "A free text of some words"]
    for value in values:
        judge("Some other thing", value, turn(1, text, arguments=text))
    assert time.process_time() - started < 20
