"""`record.json`: exact there and back, strict about everything else."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_samples import errored, full, solved, unsolved

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.model.result import EndReason, Outcome, Record, Scores, Setup
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict, Ruling
from pytest_dataclaw.record.codec import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the place of every field of a document, except below `extra`, which is free."""
    if path[:1] == ("extra",):
        return
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _spelled(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


DOCUMENT = to_json(full())
FIELDS = [path for path in _paths(DOCUMENT) if isinstance(path[-1], str) and path[-2:-1] != ("digests",)]
EVERYTHING = list(_paths(DOCUMENT))


def _parent(document: Any, path: Path) -> Any:
    for step in path[:-1]:
        document = document[step]
    return document


def test_every_field_of_a_record_is_in_its_document() -> None:
    assert set(DOCUMENT) == set(Record.__dataclass_fields__)
    assert DOCUMENT["schema"] == 1
    assert next(iter(DOCUMENT)) == "schema"
    assert DOCUMENT["setup"]["digests"] == {"task": "aa", "gold": "bb"}
    assert DOCUMENT["outcome"] == "unsolved"
    assert DOCUMENT["milestones"][0] == {
        "key": "企业数量",
        "ruling": "yes",
        "turn": 6,
        "evidence": "value",
        "reason": "seen",
    }


@pytest.mark.parametrize("record", [full(), solved(1), unsolved(2), errored(3)], ids=lambda r: r.outcome.value)
def test_there_and_back(record: Record) -> None:
    assert from_json(json.loads(json.dumps(to_json(record)))) == record


@pytest.mark.parametrize("path", FIELDS, ids=_spelled)
def test_a_missing_field_is_named(path: Path) -> None:
    document = copy.deepcopy(DOCUMENT)
    del _parent(document, path)[path[-1]]
    with pytest.raises(RecordError) as caught:
        from_json(document)
    assert str(caught.value) == f"{_spelled(path)}: missing"


@pytest.mark.parametrize("path", EVERYTHING, ids=_spelled)
@pytest.mark.parametrize("wrong", [True, -1, math.nan, math.inf, [7], b"bytes"], ids=str)
def test_a_wrong_value_is_named(path: Path, wrong: Any) -> None:
    document = copy.deepcopy(DOCUMENT)
    _parent(document, path)[path[-1]] = wrong
    with pytest.raises(RecordError) as caught:
        from_json(document)
    assert str(caught.value).startswith(_spelled(path))


@pytest.mark.parametrize("path", [path for path in EVERYTHING if path[-1] not in ("scores", "cost_usd")], ids=_spelled)
def test_null_is_refused_where_a_value_is_needed(path: Path) -> None:
    optional = path[0] == "scores" and path[-1] != "acc"
    document = copy.deepcopy(DOCUMENT)
    _parent(document, path)[path[-1]] = None
    if optional or path == ("milestones", 1, "turn"):
        from_json(document)
        return
    with pytest.raises(RecordError) as caught:
        from_json(document)
    assert str(caught.value).startswith(_spelled(path))


@pytest.mark.parametrize("path", [(), ("setup",), ("scores",), ("parts", 0), ("milestones", 1), ("agent_usage",)])
def test_an_unknown_field_is_named(path: Path) -> None:
    document = copy.deepcopy(DOCUMENT)
    _parent(document, (*path, "new"))["new"] = 1
    with pytest.raises(RecordError) as caught:
        from_json(document)
    assert str(caught.value) == f"{_spelled((*path, 'new'))}: unknown field"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), 2, "schema: version 2 is not the 1"),
        (("schema",), "1", "schema: expected a whole number"),
        (("outcome",), "won", "outcome: unknown value 'won'; known are solved, unsolved, errored"),
        (("end_reason",), "bored", "end_reason: unknown value 'bored'"),
        (("parts", 1, "ruling"), "maybe", r"parts\[1\].ruling: unknown value 'maybe'"),
        (("repeat",), 0, "repeat: expected a whole number >= 1"),
        (("turns",), 2.0, "turns: expected a whole number"),
        (("scores", "acc"), 1.5, "scores.acc: expected a finite number from 0 to 1"),
        (("wall_seconds",), 10**400, "wall_seconds: expected a finite number"),
        (("extra",), {"a": [{"b": math.nan}]}, r"extra.a\[0\].b: expected a finite number"),
        # Contradictions between fields.
        (("scores",), None, "scores: must be null if, and only if, the outcome is errored"),
        (("end_reason",), "rate_limited", "end_reason: rate_limited cannot go with outcome unsolved"),
        (("outcome",), "solved", "scores.acc: 0.5 cannot go with outcome solved"),
        (("milestones", 0, "turn"), None, r"milestones\[0\].turn: None cannot go with ruling yes"),
        (("milestones", 1, "turn"), 3, r"milestones\[1\].turn: 3 cannot go with ruling no"),
    ],
)
def test_what_is_wrong_is_said(path: Path, value: Any, message: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    _parent(document, path)[path[-1]] = value
    with pytest.raises(RecordError, match=f"^{message}"):
        from_json(document)


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_a_document_that_is_no_object(document: Any) -> None:
    with pytest.raises(RecordError, match="document: expected an object"):
        from_json(document)


def test_whole_numbers_are_taken_for_fractions() -> None:
    document = to_json(full()) | {"wall_seconds": 12}
    seconds = from_json(document).wall_seconds
    assert seconds == 12.0
    assert isinstance(seconds, float)


_texts = st.text(max_size=20)
_counts = st.integers(0, 10**12)
_numbers = st.floats(0, 1e12)
_shares = st.floats(0, 1)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)
_parts = st.lists(st.builds(PartVerdict, _texts, st.sampled_from(Ruling), _texts), max_size=3).map(tuple)
_milestones = st.lists(
    st.builds(
        lambda key, ruling, turn, evidence, reason: MilestoneVerdict(
            key, ruling, turn if ruling is Ruling.YES else None, evidence, reason
        ),
        _texts,
        st.sampled_from(Ruling),
        st.integers(1, 500),
        _texts,
        _texts,
    ),
    max_size=3,
).map(tuple)
_usages = st.builds(
    Usage, _counts, _counts, _counts, _counts, _counts, _counts, st.none() | _numbers, _numbers, _numbers
)
_scores = st.builds(
    Scores, _shares, st.none() | _numbers, st.none() | _shares, st.none() | _shares, st.none() | _shares,
    st.none() | _shares,
)  # fmt: skip
_setups = st.builds(Setup, *[_texts] * 6, _numbers, _texts, _counts, st.dictionaries(_texts, _texts, max_size=3))


@st.composite
def _records(draw: st.DrawFn) -> Record:
    reason = draw(st.sampled_from(EndReason))
    scores = None if reason.errored else draw(_scores)
    judged = Outcome.SOLVED if scores is not None and scores.acc == 1.0 else Outcome.UNSOLVED
    return Record(
        run_id=draw(_texts),
        node_id=draw(_texts),
        task_id=draw(_texts),
        repeat=draw(st.integers(1, 99)),
        suite=draw(_texts),
        category=draw(_texts),
        level=draw(_texts),
        setup=draw(_setups),
        outcome=Outcome.ERRORED if scores is None else judged,
        end_reason=reason,
        detail=draw(_texts),
        answer=draw(_texts),
        turns=draw(_counts),
        gold_steps=draw(_counts),
        scores=scores,
        parts=draw(_parts),
        milestones=draw(_milestones),
        rules_parts=draw(_parts),
        rules_milestones=draw(_milestones),
        flags=tuple(draw(st.lists(_texts, max_size=3))),
        agent_usage=draw(_usages),
        judge_usage=draw(_usages),
        started_at=draw(_texts),
        wall_seconds=draw(_numbers),
        side_exchanges=draw(_counts),
        extra=draw(st.dictionaries(_texts, _json, max_size=3)),
    )


@given(_records())
def test_any_record_comes_back_exactly(record: Record) -> None:
    assert from_json(json.loads(json.dumps(to_json(record), allow_nan=False))) == record


def test_the_document_does_not_share_the_records_dictionaries() -> None:
    record = full()
    to_json(record)["setup"]["digests"]["task"] = "changed"
    to_json(record)["extra"]["note"] = "changed"
    assert record == replace(full())
