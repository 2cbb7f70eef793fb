"""Acc, EE, GPR, TPE, TGPR against values worked out by hand."""

from __future__ import annotations

import pytest

from pytest_dataclaw.model.verdict import PartVerdict, Ruling
from pytest_dataclaw.score.acc import accuracy
from pytest_dataclaw.score.process import efficiency, gpr, tgpr, tpe, tpe_achieved, turn_penalties


def _parts(*rulings: Ruling) -> list[PartVerdict]:
    return [PartVerdict(f"part_{index}", ruling) for index, ruling in enumerate(rulings)]


@pytest.mark.parametrize(
    ("rulings", "expected"),
    [
        ((Ruling.YES,), 1.0),
        ((Ruling.NO,), 0.0),
        ((Ruling.UNDECIDED,), 0.0),
        ((Ruling.YES, Ruling.YES, Ruling.YES), 1.0),
        ((Ruling.YES, Ruling.NO, Ruling.UNDECIDED), 1 / 3),
        ((Ruling.YES, Ruling.NO, Ruling.YES, Ruling.YES), 0.75),
    ],
)
def test_accuracy_is_the_share_of_parts_ruled_yes(rulings: tuple[Ruling, ...], expected: float) -> None:
    assert accuracy(_parts(*rulings)) == expected


def test_accuracy_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="without parts"):
        accuracy([])


@pytest.mark.parametrize("n", range(1, 200))
def test_all_parts_right_is_exactly_one(n: int) -> None:
    assert accuracy(_parts(*[Ruling.YES] * n)) == 1.0


@pytest.mark.parametrize(
    ("gold_steps", "turns", "expected"),
    [
        (4, 5, 0.8),  # the oracle's N / (N + 1)
        (6, 3, 2.0),  # may exceed 1
        (4, 0, None),  # no turn
        (0, 4, None),  # no gold step: absent, not 0
    ],
)
def test_efficiency(gold_steps: int, turns: int, expected: float | None) -> None:
    assert efficiency(gold_steps, turns) == expected


def test_gpr() -> None:
    assert gpr(3, 4) == 0.75
    assert gpr(0, 4) == 0.0
    assert gpr(0, 0) is None
    with pytest.raises(ValueError, match="5 of 4"):
        gpr(5, 4)


def test_milestones_on_time_have_no_penalty() -> None:
    # N = 4: turns 1 to 4 are on time, 0.9 ** 0 = 1.
    assert turn_penalties(4, [1, 2, 4]) == (1.0, 1.0, 1.0)


def test_milestones_all_late() -> None:
    # N = 2: turn 3 is 1 late, 0.9; turn 4 is 2 late, 0.81; turn 5 is 3 late, 0.729.
    penalties = turn_penalties(2, [3, 4, 5])
    assert penalties == pytest.approx((0.9, 0.81, 0.729))
    # TPE = (0.9 + 0.81 + 0.729) / 3 = 2.439 / 3 = 0.813
    assert tpe(penalties) == pytest.approx(0.813)
    assert tpe_achieved(penalties) == pytest.approx(0.813)
    # TGPR over 6 milestones = 2.439 / 6 = 0.4065
    assert tgpr(penalties, 6) == pytest.approx(0.4065)


def test_some_late_some_on_time() -> None:
    # N = 3: turns 2 and 3 on time (1, 1), turn 5 two late (0.81). TPE = 2.81 / 3 = 0.936666...
    penalties = turn_penalties(3, [2, 3, 5])
    assert tpe(penalties) == pytest.approx(2.81 / 3)
    # 3 of 4 milestones: TGPR = 2.81 / 4 = 0.7025
    assert tgpr(penalties, 4) == pytest.approx(0.7025)


def test_the_two_conventions_where_nothing_was_achieved() -> None:
    penalties = turn_penalties(3, [])
    assert tpe(penalties) == 0.0  # leaderboard
    assert tpe_achieved(penalties) is None  # paper v3
    assert tgpr(penalties, 5) == 0.0
    assert tgpr(penalties, 0) is None


def test_turns_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        turn_penalties(3, [2, 0])
