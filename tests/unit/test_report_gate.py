"""`--dataclaw-fail-under`."""

from __future__ import annotations

import pytest
from record_samples import errored, solved, unsolved
from test_report_summary import facts

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.report.gate import Gate, parse_gate
from pytest_dataclaw.report.summary import summarize


@pytest.mark.parametrize(("text", "least"), [("acc=0.45", 0.45), ("acc = 1", 1.0), ("acc=0", 0.0)])
def test_bounds(text: str, least: float) -> None:
    assert parse_gate(text) == Gate(least)


@pytest.mark.parametrize(
    "text", ["", "acc", "acc=", "0.45", "acc=x", "acc=1.01", "acc=-0.1", "acc=nan", "gpr=0.5", "acc=45%"]
)
def test_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="expected acc=NUMBER"):
        parse_gate(text)


def test_errored_trials_count_against_the_gate() -> None:
    # Acc = 1, Acc(all) = 1/2.
    summary = summarize([solved(1), errored(2)], facts(planned=2, total=2))
    assert Gate(0.5).failed(summary) is None
    assert Gate(0.51).failed(summary) == "Acc(all) 0.5000 of 2 trials is under 0.51"


def test_a_run_that_left_trials_out_does_not_pass() -> None:
    summary = summarize([solved(1), unsolved(2)], facts(planned=3, total=3))
    assert Gate(0.1).failed(summary) == "1 of 3 planned trials were never started"


def test_an_empty_run_does_not_pass() -> None:
    message = Gate(0.0).failed(summarize([], facts(planned=0, total=0)))
    assert message is not None
    assert "no trial was run" in message
