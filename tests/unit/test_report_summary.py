"""Records to summary, with every mean worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from record_samples import SETUP, errored, part, solved, unsolved

from pytest_dataclaw.model.result import EndReason, Scores
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.model.verdict import Ruling
from pytest_dataclaw.report.agreement import PartPlace
from pytest_dataclaw.report.summary import RunFacts, summarize
from pytest_dataclaw.score.statistics import Mean, wilson

YES, NO, UNDECIDED = Ruling.YES, Ruling.NO, Ruling.UNDECIDED


def facts(**changes: Any) -> RunFacts:
    """Return the facts of a run of ten trials."""
    known: dict[str, Any] = {
        "model": "vendor/model-1",
        "judge": "vendor/judge-1",
        "agent": "react",
        "profile": "default",
        "sandbox": "local",
        "run_id": "ab12cd34",
        "output": Path("output"),
        "suite": "all",
        "runs": 1,
        "planned": 10,
        "total": 10,
        "selection": "",
        "process": "unsolved",
        "isolated": False,
        "wall_seconds": 60.0,
    }
    return RunFacts(**known | changes)


def _node(number: int) -> str:
    return f"tasks/task_{number:03d}.md::task_{number:03d}"


def test_a_mixed_run() -> None:
    records = [
        solved(1, ee=0.5),
        solved(2, ee=0.8),
        solved(3, ee=None),  # solved without a turn: no EE
        unsolved(4, scores=Scores(0.5, gpr=0.5, tpe=0.9, tpe_achieved=0.9, tgpr=0.45)),
        unsolved(5, scores=Scores(0.0, gpr=0.0, tpe=0.0, tpe_achieved=None, tgpr=0.0)),
        unsolved(6),  # milestones not judged
        errored(7, EndReason.RATE_LIMITED),
        errored(8, EndReason.RATE_LIMITED),
    ]
    summary = summarize(records, facts(), {_node(9): "worker gw0 died"})
    overall = summary.overall
    # Acc = (1 + 1 + 1 + 0.5 + 0 + 0) / 6 = 3.5 / 6
    assert overall.acc.value == pytest.approx(3.5 / 6)
    assert overall.acc.n == 6
    assert overall.acc.interval is not None
    assert overall.acc.interval.method == "t"
    # Acc(all) = 3.5 / (6 + 2 errored + 1 crashed) = 3.5 / 9
    assert overall.acc_all.value == pytest.approx(3.5 / 9)
    assert overall.acc_all.n == 9
    assert overall.ee == Mean(0.65, 2)  # (0.5 + 0.8) / 2
    assert overall.gpr == Mean(0.25, 2)  # (0.5 + 0) / 2
    assert overall.tpe == Mean(0.45, 2)  # leaderboard: (0.9 + 0) / 2
    assert overall.tpe_achieved == Mean(0.9, 1)  # paper v3: the other one is left out
    assert overall.tgpr == Mean(0.225, 2)
    assert (overall.solved, overall.unsolved, overall.errored, summary.skipped) == (3, 3, 3, 1)
    assert summary.errors == (("rate_limited", 2), ("crashed", 1))
    assert summary.end_reasons == (("answered", 6),)
    assert summary.spreads == ()


def test_single_answers_get_a_wilson_interval() -> None:
    summary = summarize([solved(1), unsolved(2), unsolved(3)], facts())
    assert summary.overall.acc.interval == wilson(1, 3)


def test_nothing_judged_has_no_mean() -> None:
    overall = summarize([errored(1)], facts()).overall
    assert (overall.acc.value, overall.acc.n) == (None, 0)
    assert (overall.acc_all.value, overall.acc_all.n) == (0.0, 1)
    empty = summarize([], facts())
    assert (empty.overall.acc_all.value, empty.overall.acc_all.n, empty.skipped) == (None, 0, 10)


def test_milestones_of_solved_trials_are_never_in_the_headline() -> None:
    scores = Scores(1.0, ee=0.5, gpr=1.0, tpe=1.0, tpe_achieved=1.0, tgpr=1.0)
    overall = summarize([solved(1, scores=scores), unsolved(2, scores=Scores(0.0, gpr=0.2, tpe=0.3))], facts()).overall
    assert (overall.gpr, overall.tpe) == (Mean(0.2, 1), Mean(0.3, 1))


def test_by_category_and_level() -> None:
    records = [
        solved(1, category="b", level="hard"),
        unsolved(2, category="a", level="hard"),
        errored(3, category="a", level="easy"),
        solved(4, category="b", level=""),
        solved(5, category="b", level="extreme"),
    ]
    summary = summarize(records, facts())
    assert [(g.name, g.metrics.acc.value, g.metrics.acc.n, g.metrics.acc_all.value) for g in summary.categories] == [
        ("a", 0.0, 1, 0.0),
        ("b", 1.0, 3, 1.0),
    ]
    assert [(g.name, g.metrics.acc.value, g.metrics.errored) for g in summary.levels] == [
        ("easy", None, 1),
        ("hard", 0.5, 0),
        ("", 1.0, 0),
        ("extreme", 1.0, 0),
    ]


def test_several_runs_weigh_tasks_the_same() -> None:
    records = [
        solved(1),
        unsolved(1, repeat=2),
        solved(2),
        errored(2, repeat=2),
        unsolved(3, acc=0.5),
    ]
    summary = summarize(records, facts(runs=2, planned=6, total=6), {f"{_node(3)}[run2]": "died"})
    # Judged: task 1 (1 + 0) / 2 = 0.5; task 2 1; task 3 0.5. Mean of tasks = 2 / 3, not 2.5 / 4.
    assert summary.overall.acc.value == pytest.approx(2 / 3)
    assert (summary.overall.acc.n, summary.overall.acc.clusters) == (4, 3)
    # All: task 1 0.5; task 2 (1 + 0) / 2 = 0.5; task 3 (0.5 + 0) / 2 = 0.25. Mean 1.25 / 3.
    assert summary.overall.acc_all.value == pytest.approx(1.25 / 3)
    assert (summary.overall.acc_all.n, summary.overall.acc_all.clusters) == (6, 3)
    assert [(s.task, s.n, s.low, s.high) for s in summary.spreads] == [
        (_node(1), 2, 0.0, 1.0),
        (_node(2), 1, 1.0, 1.0),
        (_node(3), 1, 0.5, 0.5),
    ]


def test_the_order_of_records_does_not_matter() -> None:
    records = [solved(1, ee=0.1), solved(2, ee=0.7), unsolved(3, acc=1 / 3), errored(4)]
    assert summarize(records, facts()) == summarize(records[::-1], facts())


def test_a_trial_counts_once() -> None:
    with pytest.raises(ValueError, match=r"more than one result for tasks/task_001\.md::task_001"):
        summarize([solved(1), unsolved(1)], facts())
    with pytest.raises(ValueError, match="more than one result"):
        summarize([solved(1)], facts(), {_node(1): "died"})


def test_more_trials_than_planned_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 records and 0 crashed trials, but 1 planned"):
        summarize([solved(1), solved(2)], facts(planned=1))


def test_usage_is_summed_by_role_and_unknown_cost_is_told() -> None:
    records = [
        solved(1, agent_usage=Usage(2, 100, 10, cost_usd=0.5, wall_seconds=3.0, waiting_seconds=1.0)),
        errored(2, agent_usage=Usage(1, 50, 5)),  # spent, at no known price
        solved(3, judge_usage=Usage(1, 7, 1)),
    ]
    summary = summarize(records, facts())
    assert summary.agent_usage.usage == Usage(3, 150, 15, cost_usd=0.5, wall_seconds=3.0, waiting_seconds=1.0)
    assert summary.agent_usage.unpriced == 1
    assert (summary.judge_usage.usage.cost_usd, summary.judge_usage.unpriced) == (None, 1)
    nothing = summarize([solved(1)], facts())
    assert (nothing.agent_usage.usage, nothing.agent_usage.unpriced) == (Usage(), 0)


def test_agreement_of_the_judge_with_the_rules() -> None:
    records = [
        solved(1, rules_parts=(part(YES),)),
        solved(2, rules_parts=(part(NO),)),
        unsolved(3, rules_parts=(part(NO),)),
        unsolved(4, rules_parts=(part(UNDECIDED),)),
        unsolved(
            5,
            acc=0.5,
            parts=(part(YES, "part_0"), part(NO, "part_1")),
            rules_parts=(part(YES, "part_0"), part(YES, "part_1")),
        ),
        unsolved(6),  # an empty answer: the rules were not asked
        errored(7),
    ]
    check = summarize(records, facts()).judge_check
    # Decided pairs (judge, rules): yy, yn, nn, yy, ny. Agreement 3/5;
    # chance = (3 * 3 + 2 * 2) / 25 = 0.52; kappa = (0.6 - 0.52) / 0.48 = 1/6.
    assert (check.agreement.n, check.agreement.rate) == (5, 0.6)
    assert check.agreement.kappa == pytest.approx(1 / 6)
    assert check.disagreements == (PartPlace(_node(2), "match"), PartPlace(_node(5), "part_1"))
    assert check.undecided == (PartPlace(_node(4), "match"),)
    assert check.undecided_scored == ()


def test_undecided_parts_are_listed_where_the_rules_are_the_sole_judge() -> None:
    rules = replace(SETUP, judge="rules")
    records = [
        solved(1, setup=rules),
        unsolved(2, setup=rules, parts=(part(UNDECIDED, "part_0"), part(NO, "part_1"))),
    ]
    check = summarize(records, facts(judge="rules")).judge_check
    assert check.undecided_scored == (PartPlace(_node(2), "part_0"),)
    assert (check.agreement.n, check.undecided, check.disagreements) == (0, (), ())


def test_rulings_on_different_parts_are_an_error() -> None:
    with pytest.raises(ValueError, match="different parts"):
        summarize([solved(1, rules_parts=(part(YES, "part_0"),))], facts())


def test_suspicious_trials_are_pointed_out() -> None:
    records = [
        solved(1, scores=Scores(1.0, ee=1.0, gpr=0.05, tpe=0.0)),
        solved(2, scores=Scores(1.0, ee=1.0, gpr=0.1, tpe=0.0)),
        unsolved(3, scores=Scores(0.0, gpr=1.0, tpe=1.0)),
        unsolved(4, scores=Scores(0.5, gpr=1.0, tpe=1.0)),
        unsolved(5, turns=2),
        unsolved(6, turns=3),
        solved(7, turns=1),
        unsolved(8, end_reason=EndReason.AGENT_TIMEOUT),
        unsolved(9, flags=("the answer imitates a verdict",)),
    ]
    found = {suspicion.what: suspicion.node_ids for suspicion in summarize(records, facts()).suspicions}
    assert found == {
        "solved with GPR below 0.1": (_node(1),),
        "Acc 0 with every milestone reached": (_node(3),),
        "unsolved within 2 turns": (_node(5),),
        "ended by time-out": (_node(8),),
        "the answer imitates a verdict": (_node(9),),
    }
