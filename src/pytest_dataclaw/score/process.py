"""EE, GPR, TPE and TGPR: how a trajectory compares with the gold solution. Source: arXiv 2605.02503.

N is the number of gold steps, T the number of turns, t the 1-based turn at which a milestone was first reached.
A formula that has nothing to divide by gives None, never 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GAMMA = 0.9
"""Discount per turn beyond N."""


def efficiency(gold_steps: int, turns: int) -> float | None:
    """Return EE = N / T, which may exceed 1; None where N or T is 0."""
    if gold_steps <= 0 or turns <= 0:
        return None
    return gold_steps / turns


def gpr(achieved: int, total: int) -> float | None:
    """Return the share of milestones that were achieved; None where there are none."""
    if total <= 0:
        return None
    if not 0 <= achieved <= total:
        raise ValueError(f"{achieved} of {total} milestones achieved")
    return achieved / total


def turn_penalties(gold_steps: int, turns: Sequence[int]) -> tuple[float, ...]:
    """Return GAMMA ** max(t - N, 0) for the turn t of every achieved milestone; ValueError for a t below 1."""
    if any(turn < 1 for turn in turns):
        raise ValueError(f"turns are counted from 1, got {list(turns)}")
    return tuple(GAMMA ** max(turn - gold_steps, 0) for turn in turns)


def tpe(penalties: Sequence[float]) -> float:
    """Return TPE by the leaderboard's convention: the mean penalty, 0 where no milestone was achieved."""
    return math.fsum(penalties) / len(penalties) if penalties else 0.0


def tpe_achieved(penalties: Sequence[float]) -> float | None:
    """Return TPE by the convention of the paper's v3 tables: None where no milestone was achieved."""
    return tpe(penalties) if penalties else None


def tgpr(penalties: Sequence[float], total: int) -> float | None:
    """Return the sum of the penalties over all milestones, achieved or not; None where there are none."""
    return math.fsum(penalties) / total if total > 0 else None
