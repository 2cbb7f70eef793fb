"""`--dataclaw-fail-under`: a lower bound on a metric that decides the exit status."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import UsageError

if TYPE_CHECKING:
    from pytest_dataclaw.report.summary import Summary


@dataclass(frozen=True, slots=True)
class Gate:
    """The least Acc(all), in [0, 1], that a run must have."""

    least: float

    def failed(self, summary: Summary) -> str | None:
        """Say why the run does not pass, or return None.

        Acc(all) counts errored trials as 0; a run that left planned trials out cannot pass, whatever its mean.
        """
        acc = summary.overall.acc_all
        if acc.value is None:
            return f"no trial was run, so Acc(all) cannot reach {self.least:g}"
        if acc.value < self.least:
            return f"Acc(all) {acc.value:.4f} of {acc.n} trials is under {self.least:g}"
        if summary.skipped:
            return f"{summary.skipped} of {summary.facts.planned} planned trials were never started"
        return None


def parse_gate(text: str) -> Gate:
    """Read `acc=0.45`; UsageError for any other metric or a bound outside [0, 1]."""
    metric, _, bound = text.partition("=")
    try:
        least = float(bound)
    except ValueError:
        least = math.nan
    if metric.strip() != "acc" or not 0 <= least <= 1:
        raise UsageError(f"--dataclaw-fail-under: expected acc=NUMBER with a number from 0 to 1, got {text!r}")
    return Gate(least)
