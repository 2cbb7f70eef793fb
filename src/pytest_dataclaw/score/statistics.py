"""Means with their n, 95 % intervals, and the agreement of two judges."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and the number of values behind it; `value` is None where `n` is 0."""

    value: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval; `method` is `Wilson` or `t`."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a score in [0, 1] over clusters of equal weight; None where there is no value.

    `n` counts the values, `clusters` the clusters (the tasks, where a task has several trials). `interval` is None
    where the data do not tell: fewer than two clusters, or all at one same fraction.
    """

    value: float | None
    n: int
    clusters: int
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two judges agree on the same `n` items.

    `rate` is None where `n` is 0. `kappa` is Cohen's (1960), None where chance agreement is certain; `note` says why.
    """

    n: int
    rate: float | None
    kappa: float | None
    note: str = ""


def mean(values: Iterable[float]) -> Mean:
    """Return the plain mean of the values."""
    known = list(values)
    return Mean(math.fsum(known) / len(known) if known else None, len(known))


def clustered_mean(clusters: Iterable[Sequence[float]]) -> Estimate:
    """Return the mean of the clusters' means, each of equal weight, and its interval; empty clusters do not count.

    Trials of one task are not independent, so the interval is taken over the cluster means: Wilson where each is 0 or
    1, else Student's t, cut to [0, 1].
    """
    filled = [cluster for cluster in clusters if cluster]
    means = [math.fsum(cluster) / len(cluster) for cluster in filled]
    if not means:
        return Estimate(None, 0, 0, None)
    interval = wilson(round(sum(means)), len(means)) if set(means) <= {0.0, 1.0} else t_interval(means)
    return Estimate(math.fsum(means) / len(means), sum(map(len, filled)), len(means), interval)


def wilson(successes: int, n: int) -> Interval:
    """Return Wilson's (1927) score interval, without continuity correction, for `successes` of `n` >= 1."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n}")
    share = successes / n
    denominator = 1 + _Z**2 / n
    centre = (share + _Z**2 / (2 * n)) / denominator
    half = _Z / denominator * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    # At the ends the formula gives exactly 0 and 1, but for rounding.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, "Wilson")


def t_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's t interval for the mean of values in [0, 1], cut to [0, 1].

    None for fewer than two values or values all alike, whose spread says nothing.
    """
    if len(values) < 2 or (spread := stdev(values)) == 0.0:
        return None
    centre = math.fsum(values) / len(values)
    half = _t_quantile(len(values) - 1) * spread / math.sqrt(len(values))
    return Interval(max(0.0, centre - half), min(1.0, centre + half), "t")


def _t_quantile(freedom: int) -> float:
    """Return the two-sided quantile of Student's t: exact for 1 and 2 degrees of freedom, else within 0.2 %.

    Source: Abramowitz and Stegun 26.7.5, the expansion around the normal quantile.
    """
    if freedom == 1:
        return math.tan(math.pi * CONFIDENCE / 2)
    if freedom == 2:
        return CONFIDENCE * math.sqrt(2 / (1 - CONFIDENCE**2))
    z = _Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def agreement(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement:
    """Compare the labels that two judges gave to the same items, one pair an item."""
    n = len(pairs)
    if n == 0:
        return Agreement(0, None, None, "nothing to compare")
    rate = sum(first == second for first, second in pairs) / n
    firsts = Counter(first for first, _ in pairs)
    seconds = Counter(second for _, second in pairs)
    # Kept in whole numbers, so that certain chance agreement is recognised exactly.
    by_chance = sum(count * seconds[label] for label, count in firsts.items())
    if by_chance == n * n:
        return Agreement(n, rate, None, "both judges gave every part the same ruling")
    expected = by_chance / (n * n)
    return Agreement(n, rate, (rate - expected) / (1 - expected))
