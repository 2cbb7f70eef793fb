"""Records of a run to the summary of the run: pure arithmetic."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.model.result import Outcome
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.report.agreement import JudgeCheck, check_judge
from pytest_dataclaw.report.suspicion import Suspicion, suspicions
from pytest_dataclaw.score.statistics import Estimate, Mean, clustered_mean, mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_dataclaw.model.result import Record

CRASHED = "crashed"
"""Stands beside the end reasons for trials whose worker died and left no record."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run apart from its records. `planned` of `total` trials were selected by `selection`."""

    model: str
    judge: str
    agent: str
    profile: str
    sandbox: str
    run_id: str
    output: Path
    suite: str
    runs: int
    planned: int
    total: int
    selection: str
    """How the trials were selected, as the user wrote it; "" where all were to run."""
    process: str
    isolated: bool
    """Whether the sandbox keeps the agent from the rest of the machine."""
    wall_seconds: float
    web_search_off: str = ""
    """Why there is no web search in web tasks; "" where there is, or where the agent has no tool for it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of some trials, each with its n.

    `acc` is over judged trials, `acc_all` counts errored ones as 0. `ee` is over solved trials; `gpr`, `tpe`
    (leaderboard), `tpe_achieved` (paper v3) and `tgpr` are over unsolved ones whose milestones were judged.
    """

    acc: Estimate
    acc_all: Estimate
    ee: Mean
    gpr: Mean
    tpe: Mean
    tpe_achieved: Mean
    tgpr: Mean
    solved: int
    unsolved: int
    errored: int


@dataclass(frozen=True, slots=True)
class Group:
    """The metrics of one category or level. Crashed trials, whose category nobody recorded, are in none."""

    name: str
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class TaskSpread:
    """The lowest and highest accuracy among the judged trials of one task."""

    task: str
    n: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Usage of one role over all trials; `unpriced` counts the trials with requests whose cost is not known."""

    usage: Usage
    unpriced: int


@dataclass(frozen=True, slots=True)
class Summary:
    """All that is said of a run at its end."""

    facts: RunFacts
    records: tuple[Record, ...]
    crashed: tuple[tuple[str, str], ...]
    """Node id and what is known, of trials that left no record."""
    overall: Metrics
    categories: tuple[Group, ...]
    levels: tuple[Group, ...]
    skipped: int
    """Planned, never started."""
    errors: tuple[tuple[str, int], ...]
    """Errored trials by end reason, `crashed` among them; the most frequent first."""
    end_reasons: tuple[tuple[str, int], ...]
    """Judged trials by end reason."""
    agent_usage: UsageTotal
    judge_usage: UsageTotal
    judge_check: JudgeCheck
    suspicions: tuple[Suspicion, ...]
    spreads: tuple[TaskSpread, ...]
    """One a task, where tasks have several trials."""


def summarize(records: Sequence[Record], facts: RunFacts, crashed: Mapping[str, str] | None = None) -> Summary:
    """Sum up the records of a run; `crashed` maps node ids without a record to what is known of them.

    ValueError where a node id comes twice or there are more trials than were planned: no mean would be right.
    """
    crashed = crashed or {}
    ordered = sorted(records, key=lambda record: record.node_id)
    _check_unique([record.node_id for record in ordered] + list(crashed))
    skipped = facts.planned - len(ordered) - len(crashed)
    if skipped < 0:
        raise ValueError(f"{len(ordered)} records and {len(crashed)} crashed trials, but {facts.planned} planned")
    judged = [record for record in ordered if record.scores is not None]
    errored = [record.end_reason.value for record in ordered if record.scores is None] + [CRASHED] * len(crashed)
    return Summary(
        facts=facts,
        records=tuple(ordered),
        crashed=tuple(sorted(crashed.items())),
        overall=_metrics(ordered, tuple(crashed)),
        categories=_groups(ordered, [record.category for record in ordered], ()),
        levels=_groups(ordered, [record.level for record in ordered], ("easy", "medium", "hard")),
        skipped=skipped,
        errors=tuple(Counter(errored).most_common()),
        end_reasons=tuple(Counter(record.end_reason.value for record in judged).most_common()),
        agent_usage=_total(record.agent_usage for record in ordered),
        judge_usage=_total(record.judge_usage for record in ordered),
        judge_check=check_judge(judged),
        suspicions=suspicions(judged),
        spreads=_spreads(judged) if facts.runs > 1 else (),
    )


def task_node(node_id: str) -> str:
    """Return the node id of a trial's task: the trial's own without the `[run2]` of a repeat."""
    return re.sub(r"\[run\d+\]$", "", node_id)


def _check_unique(node_ids: Sequence[str]) -> None:
    twice = [node_id for node_id, count in Counter(node_ids).items() if count > 1]
    if twice:
        raise ValueError(f"more than one result for {', '.join(twice)}")


def _metrics(records: Sequence[Record], crashed: Sequence[str] = ()) -> Metrics:
    judged: dict[str, list[float]] = defaultdict(list)
    everything: dict[str, list[float]] = defaultdict(list)
    for record in records:
        everything[task_node(record.node_id)].append(0.0 if record.scores is None else record.scores.acc)
        if record.scores is not None:
            judged[task_node(record.node_id)].append(record.scores.acc)
    for node_id in crashed:
        everything[task_node(node_id)].append(0.0)
    solved = [record.scores for record in records if record.scores and record.outcome is Outcome.SOLVED]
    unsolved = [record.scores for record in records if record.scores and record.outcome is Outcome.UNSOLVED]
    return Metrics(
        acc=clustered_mean(judged.values()),
        acc_all=clustered_mean(everything.values()),
        ee=_mean_of_known(scores.ee for scores in solved),
        gpr=_mean_of_known(scores.gpr for scores in unsolved),
        tpe=_mean_of_known(scores.tpe for scores in unsolved),
        tpe_achieved=_mean_of_known(scores.tpe_achieved for scores in unsolved),
        tgpr=_mean_of_known(scores.tgpr for scores in unsolved),
        solved=len(solved),
        unsolved=len(unsolved),
        errored=len(records) - len(solved) - len(unsolved) + len(crashed),
    )


def _mean_of_known(values: Iterable[float | None]) -> Mean:
    return mean(value for value in values if value is not None)


def _groups(records: Sequence[Record], names: Sequence[str], first: tuple[str, ...]) -> tuple[Group, ...]:
    """Group the records by their names: those in `first` in that order, then the rest by the alphabet."""
    grouped: dict[str, list[Record]] = defaultdict(list)
    for record, name in zip(records, names, strict=True):
        grouped[name].append(record)
    order = [name for name in first if name in grouped] + sorted(grouped.keys() - set(first))
    return tuple(Group(name, _metrics(grouped[name])) for name in order)


def _total(usages: Iterable[Usage]) -> UsageTotal:
    used = [usage for usage in usages if usage.requests]
    return UsageTotal(sum(used, Usage()), sum(usage.cost_usd is None for usage in used))


def _spreads(judged: Sequence[Record]) -> tuple[TaskSpread, ...]:
    tasks: dict[str, list[float]] = defaultdict(list)
    for record in judged:
        if record.scores is not None:
            tasks[task_node(record.node_id)].append(record.scores.acc)
    return tuple(TaskSpread(task, len(accs), min(accs), max(accs)) for task, accs in sorted(tasks.items()))
