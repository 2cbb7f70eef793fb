"""The deadline of a trial, and how it moves by what was lost; on a clock that is turned by hand."""

from __future__ import annotations

import time

import pytest

from pytest_dataclaw.model.run import Deadline


class Lost:
    """A clock, and the seconds lost so far."""

    def __init__(self) -> None:
        self.now = 500.0
        self.seconds = 0.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.seconds


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Lost:
    lost = Lost()
    monkeypatch.setattr(time, "monotonic", lambda: lost.now)
    return lost


def test_a_deadline_that_does_not_move(lost: Lost) -> None:
    deadline = Deadline(10)
    lost.now += 4
    assert (deadline.remaining(), deadline.at_most(), deadline.passed) == (6, 6, False)
    assert (deadline.allowance(5), deadline.allowance(9)) == (5, 6)
    lost.now += 7
    assert (deadline.remaining(), deadline.at_most(), deadline.passed) == (0, 0, True)
    assert deadline.allowance(5) == 0


def test_it_moves_by_what_was_lost_and_asks_only_when_time_seems_up(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.seconds = 3
    lost.now += 9
    assert (deadline.remaining(), deadline.at_most(), lost.asked) == (1, 11, 0)
    lost.now += 2
    assert (deadline.remaining(), lost.asked) == (2, 1)
    lost.seconds = 5
    lost.now += 3
    assert (deadline.remaining(), lost.asked) == (1, 2)
    lost.now += 2
    assert (deadline.passed, lost.asked) == (True, 3)


def test_once_passed_it_stays_passed(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.now += 10
    assert deadline.passed
    lost.seconds = 5
    assert deadline.passed
    assert lost.asked == 1


def test_it_moves_once_over_at_most(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.seconds = 1000
    lost.now += 15
    assert (deadline.remaining(), deadline.at_most()) == (5, 5)
    lost.now += 5
    assert deadline.passed
    assert lost.asked == 1


def test_a_wait_under_way_keeps_it_open_and_it_asks_once_a_second(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.now += 9.9
    for _ in range(50):  # five seconds of waiting, seen every tenth of a second
        lost.now += 0.1
        lost.seconds += 0.1
        assert not deadline.passed
    assert 4 <= lost.asked <= 6
    lost.now += 1.1
    assert deadline.passed


def test_a_long_span_asks_at_once_a_short_one_does_not(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.seconds = 3
    lost.now += 8
    assert (deadline.allowance(2), lost.asked) == (2, 0)
    assert (deadline.allowance(60), lost.asked) == (5, 1)
    assert (deadline.allowance(60), lost.asked) == (5, 1)


def test_nothing_lost_grants_nothing(lost: Lost) -> None:
    deadline = Deadline(10, lost)
    lost.now += 9.5
    assert deadline.allowance(60) == pytest.approx(0.5)
    lost.now += 0.5
    assert deadline.passed
