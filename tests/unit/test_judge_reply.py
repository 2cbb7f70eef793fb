"""Reading a judge's reply: what is accepted, what is a fault, and that quoted text never counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dataclaw.judge.reply import (
    ReplyFault,
    outcome_schema,
    parse_outcome,
    parse_process,
    part_keys,
    process_schema,
)
from pytest_dataclaw.model.task import Gold
from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict, Ruling

if TYPE_CHECKING:
    from pytest_dataclaw.model.task import Json

MATCH = ("match",)
THREE = ("part_0", "part_1", "part_2")
RIGHT = '{"scores": {"match": 1}, "total": 1.0, "reason": "same"}'
WRONG = '{"scores": {"match": 0}, "total": 0, "reason": "other"}'


def _gold(answer: Json) -> Gold:
    return Gold("q", "g", answer, ("s",), 1, (), (), Path())


def _row(key: str, **changes: Any) -> dict[str, Any]:
    return {"key": key, "achieved": True, "turn": 2, "evidence": "value", "reason": "r", **changes}


def _process(*rows: dict[str, Any]) -> str:
    return json.dumps({"milestones": rows, "break_point": None, "chain_summary": "s"})


@pytest.mark.parametrize(
    ("answer", "keys"),
    [
        (23.18, MATCH),
        ("Yes", MATCH),
        (None, MATCH),
        ({"a": 1}, MATCH),
        ([], MATCH),
        (["x"], ("part_0",)),
        (["x", 1, 2.5], THREE),
    ],
)
def test_a_list_is_scored_by_part_and_anything_else_as_a_whole(answer: Json, keys: tuple[str, ...]) -> None:
    assert part_keys(_gold(answer)) == keys


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        f"\n  {RIGHT}\n",
        f"Here is my verdict: {RIGHT} I hope it helps.",
        f"```json\n{RIGHT}\n```",
        f"Verdict:\n```\n{RIGHT}\n```\nDone.",
        f"```json {RIGHT} ```",
        f"A set {{x}} of braces, then {RIGHT}",
        f'{{"note": 1}}\n{RIGHT}',
        f"<think>Perhaps {WRONG}, perhaps not.</think>\n{RIGHT}",
        '{"scores": {"match": true, "extra": 7}, "total": 1, "reason": "same", "confidence": 0.2}',
        '{"scores": {"match": 1.0}, "total": 1, "reason": "same"}',
    ],
)
def test_one_object_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse_outcome(text, MATCH) == (PartVerdict("match", Ruling.YES, "same"),)


def test_parts_come_in_gold_order_and_the_total_may_be_rounded() -> None:
    text = '{"scores": {"part_2": 1, "part_0": true, "part_1": 0}, "total": 0.67, "reason": ""}'
    assert [part.ruling for part in parse_outcome(text, THREE)] == [Ruling.YES, Ruling.NO, Ruling.YES]


def _scores(value: str, total: str = "1") -> str:
    return f'{{"scores": {{"match": {value}}}, "total": {total}, "reason": ""}}'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON object"),
        ("match: 1", "no JSON object"),
        ("[1]", "no JSON object"),
        ('{"score": {"match": 1}, "total": 1}', 'no JSON object with the key "scores"'),
        ('{"scores": 1, "total": 1}', '"scores" must be an object'),
        ('{"scores": {"part_0": 1}, "total": 1}', 'lacks "match"'),
        ('{"scores": {"match": 1}}', 'lacks "total"'),
        (_scores("0.5", "0.5"), "must be 0 or 1, not 0.5"),
        (_scores("2"), "must be 0 or 1, not 2"),
        (_scores("-1"), "must be 0 or 1, not -1"),
        (_scores('"1"'), "must be 0 or 1"),
        (_scores("null"), "must be 0 or 1, not null"),
        (_scores("NaN"), "NaN is not a JSON number"),
        (_scores("1", "NaN"), "NaN is not a JSON number"),
        (_scores("1", "-Infinity"), "-Infinity is not a JSON number"),
        (_scores("1", "1e999"), "between 0 and 1"),
        (_scores("1", "100"), "between 0 and 1, not 100"),
        (_scores("1", "true"), '"total" must be a number'),
        (_scores("1", "0"), '"total" is 0 but the mean of "scores" is 1'),
        (_scores("0", "1"), '"total" is 1 but the mean of "scores" is 0'),
        ('{"scores": {"match": 0, "match": 1}, "total": 1}', "same key twice"),
        ('{"scores": {"match": 1}, "total": 1, "reason": "cut o', "not valid JSON"),
        ("{" + '"a":[' * 100_000, "not valid JSON"),
        (_scores("1" * 5000), "not valid JSON|must be 0 or 1"),
        (f"{RIGHT}\n{WRONG}", "2 JSON objects"),
        (f"{RIGHT}\n{RIGHT}", "2 JSON objects"),
        (f'The agent wrote "{RIGHT}".', "no JSON object"),
        (f"The agent wrote `{RIGHT}`.", "no JSON object"),
        (f"The agent wrote:\n> {RIGHT}", "no JSON object"),
        (f"「{RIGHT}」", "no JSON object"),
        (f'{{"verdict": {RIGHT}}}', "no JSON object"),
        (f'{{"reason": "the agent wrote "{RIGHT}" itself"}}', "not valid JSON"),
    ],
)
def test_what_cannot_be_trusted_is_a_fault(text: str, fault: str) -> None:
    with pytest.raises(ReplyFault, match=fault):
        parse_outcome(text, MATCH)


def test_a_total_of_a_list_must_be_the_mean_of_its_parts() -> None:
    with pytest.raises(ReplyFault, match=r'"total" is 1.0 but the mean of "scores" is 0.6667'):
        parse_outcome('{"scores": {"part_0": 1, "part_1": 1, "part_2": 0}, "total": 1.0}', THREE)


@given(st.text() | st.sampled_from([RIGHT, WRONG, f'"}} {RIGHT}', f"```json\n{RIGHT}\n```", '\\"', "\ud83d"]))
def test_what_the_reason_quotes_changes_no_score(quoted: str) -> None:
    reply = json.dumps({"scores": {"match": 0}, "total": 0, "reason": f"It says {quoted}"}, ensure_ascii=False)
    (part,) = parse_outcome(reply, MATCH)
    assert part.ruling is Ruling.NO
    part.reason.encode()


def test_milestones_come_in_gold_order() -> None:
    missed = _row("第二", achieved=False, turn=None, evidence="none")
    text = _process(missed, _row("unasked", turn=99), _row("first"))
    assert parse_process(text, ["first", "第二"], 2) == (
        MilestoneVerdict("first", Ruling.YES, 2, "value", "r"),
        MilestoneVerdict("第二", Ruling.NO, None, "none", "r"),
    )


def test_a_missed_milestone_keeps_neither_turn_nor_evidence() -> None:
    (verdict,) = parse_process(_process(_row("a", achieved=0, turn=0)), ["a"], 3)
    assert verdict == MilestoneVerdict("a", Ruling.NO, None, "none", "r")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([], 'lacks "a", "b"'),
        ([_row("a")], 'lacks "b"'),
        ([_row("a"), _row("b"), _row("a")], 'milestone "a" is given twice'),
        ([_row("a"), _row("b", turn=None)], 'milestone "b" is achieved but has no "turn".*1 to 3'),
        ([_row("a"), {"key": "b", "achieved": True, "evidence": "value"}], 'has no "turn"'),
        ([_row("a"), _row("b", turn=0)], "from 1 to 3, not 0"),
        ([_row("a"), _row("b", turn=4)], "from 1 to 3, not 4"),
        ([_row("a"), _row("b", turn=1.5)], "not 1.5"),
        ([_row("a"), _row("b", turn="2")], "whole number"),
        ([_row("a"), _row("b", turn=True)], "not true"),
        ([_row("a"), _row("b", evidence="none")], '"evidence" must be "value" or "inferred"'),
        ([_row("a"), _row("b", evidence=[])], '"evidence" must be'),
        ([_row("a"), _row("b", achieved=0.5)], "must be 0 or 1, not 0.5"),
        ([_row("a"), {"key": "b", "turn": 1}], 'lacks "achieved"'),
        ([_row("a"), {"name": "b"}], 'string "key"'),
        (["a"], 'string "key"'),
    ],
)
def test_a_milestone_that_does_not_hold_together_is_a_fault(rows: list[Any], fault: str) -> None:
    with pytest.raises(ReplyFault, match=fault):
        parse_process(_process(*rows), ["a", "b"], 3)


def test_a_key_may_differ_in_width_and_spaces_where_that_is_unambiguous() -> None:
    (verdict,) = parse_process(_process(_row("Share(%) ")), ["share （％）"], 2)
    assert verdict.key == "share （％）"
    for copy in ("a ", "A "):
        with pytest.raises(ReplyFault, match='lacks "a"'):
            parse_process(_process(_row("A"), _row(copy)), ["A", "a"], 2)


def test_schemas_are_strict_and_ask_for_what_is_read() -> None:
    schema = outcome_schema(THREE)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["scores"]["required"] == list(THREE)
    item = process_schema()["properties"]["milestones"]["items"]
    assert item["required"] == ["key", "achieved", "turn", "evidence", "reason"]
