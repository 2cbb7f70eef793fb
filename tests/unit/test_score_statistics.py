"""Means, intervals, kappa against published or hand-made values."""

from __future__ import annotations

import pytest

from pytest_dataclaw.score.statistics import agreement, clustered_mean, mean, t_interval, wilson


def test_mean_carries_its_n() -> None:
    assert (mean([0.5, 0.25, 0.75]).value, mean([0.5, 0.25, 0.75]).n) == (0.5, 3)
    assert (mean([]).value, mean([]).n) == (None, 0)


def test_mean_does_not_depend_on_order() -> None:
    values = [0.1, 0.2, 0.3, 1e-17, 0.7, 1 / 3]
    assert mean(values) == mean(sorted(values, reverse=True))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # z = 1.959964, z^2 = 3.841459. 5 of 10: centre 0.5, half = z / (1 + z^2/10) * sqrt(0.025 + z^2/400)
        # = 1.959964 / 1.3841459 * sqrt(0.0346036) = 0.263405.
        (5, 10, 0.236595, 0.763405),
        # 0 of 10: high = (z^2/10) / (1 + z^2/10) = 0.3841459 / 1.3841459 = 0.277533.
        (0, 10, 0.0, 0.277533),
        # 7 of 7: low = 1 / (1 + z^2/7) = 1 / 1.548780 = 0.645670.
        (7, 7, 0.645670, 1.0),
    ],
)
def test_wilson(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson(successes, n)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-5)
    assert interval.method == "Wilson"


def test_wilson_ends_are_exact() -> None:
    assert all(wilson(0, n).low == 0.0 and wilson(n, n).high == 1.0 for n in range(1, 500))


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (3, 2), (-1, 4)])
def test_wilson_refuses_nonsense(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson(successes, n)


@pytest.mark.parametrize(
    ("values", "quantile"),
    [
        # Two-sided 5 % points of Student's t from the usual tables, for n - 1 degrees of freedom.
        ([0.49, 0.51], 12.706),
        ([0.49, 0.5, 0.51], 4.303),
        ([0.49, 0.5, 0.51, 0.5], 3.182),
        ([0.49, 0.5, 0.51, 0.5, 0.5, 0.5], 2.571),
        ([0.49, 0.51] * 15 + [0.5], 2.042),
    ],
)
def test_t_interval_uses_student_quantiles(values: list[float], quantile: float) -> None:
    n = len(values)
    centre = sum(values) / n
    spread = (sum((value - centre) ** 2 for value in values) / (n - 1)) ** 0.5
    interval = t_interval(values)
    assert interval is not None
    assert (interval.high - interval.low) / 2 == pytest.approx(quantile * spread / n**0.5, rel=2e-3)
    assert interval.method == "t"


def test_t_interval_is_cut_to_scores() -> None:
    interval = t_interval([0.0, 0.5, 1.0])
    assert interval is not None
    # 0.5 +- 4.303 * 0.5 / sqrt(3) = 0.5 +- 1.242
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_no_interval_where_the_data_do_not_tell() -> None:
    assert t_interval([0.5]) is None
    assert t_interval([0.5, 0.5, 0.5]) is None
    assert clustered_mean([]).value is None
    assert clustered_mean([]).interval is None
    assert clustered_mean([[0.5]]).interval is None


def test_single_trials_of_zero_or_one_get_wilson() -> None:
    estimate = clustered_mean([[1.0], [0.0], [1.0], [1.0]])
    assert (estimate.value, estimate.n, estimate.clusters) == (0.75, 4, 4)
    assert estimate.interval == wilson(3, 4)


def test_tasks_weigh_the_same_whatever_their_number_of_trials() -> None:
    # Task A: 1, 0, 0 -> 1/3; task B: 1 -> 1; task C has none. Mean of means = 2/3, not 2/4.
    estimate = clustered_mean([[1.0, 0.0, 0.0], [1.0], []])
    assert estimate.value == pytest.approx(2 / 3)
    assert (estimate.n, estimate.clusters) == (4, 2)
    assert estimate.interval == t_interval([1 / 3, 1.0])


def test_kappa_by_hand() -> None:
    # yes/yes 20, yes/no 5, no/yes 10, no/no 15 (n = 50): agreement 35/50 = 0.7;
    # chance = (25 * 30 + 25 * 20) / 2500 = 0.5; kappa = 0.2 / 0.5 = 0.4.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    result = agreement(pairs)
    assert (result.n, result.rate) == (50, 0.7)
    assert result.kappa == pytest.approx(0.4)
    assert result.note == ""


def test_kappa_of_perfect_agreement_on_two_classes_is_one() -> None:
    assert agreement([("y", "y"), ("n", "n")]).kappa == 1.0


def test_kappa_below_chance_is_negative() -> None:
    # Agreement 0, chance (1 * 1 + 1 * 1) / 4 = 0.5; kappa = -0.5 / 0.5 = -1.
    assert agreement([("y", "n"), ("n", "y")]).kappa == -1.0


def test_kappa_is_none_and_named_where_all_agree_on_one_class() -> None:
    result = agreement([("y", "y")] * 3)
    assert (result.n, result.rate, result.kappa) == (3, 1.0, None)
    assert "same ruling" in result.note


def test_kappa_of_nothing_is_none_and_named() -> None:
    result = agreement([])
    assert (result.n, result.rate, result.kappa, result.note) == (0, None, None, "nothing to compare")


def test_one_judge_that_never_varies_has_kappa_zero() -> None:
    # One says yes always, the other in 2 of 4: agreement 0.5, chance (4 * 2) / 16 = 0.5.
    assert agreement([("y", "y"), ("y", "y"), ("y", "n"), ("y", "n")]).kappa == 0.0
