"""Records to test with: whole, valid, and as different as a test asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_dataclaw.model.result import EndReason, Outcome, Record, Scores, Setup
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict, Ruling

SETUP = Setup(
    model="vendor/model-1",
    agent="react",
    profile="default",
    sandbox="local",
    judge="vendor/judge-1",
    plugin_version="0.1.0",
    timeout_seconds=1200.0,
    process="unsolved",
    digests={"task": "aa", "gold": "bb"},
)


def solved(number: int, ee: float | None = 0.5, **changes: Any) -> Record:
    """Return a solved trial of task `number`, with this EE or the `scores` given."""
    scores = changes.pop("scores", Scores(acc=1.0, ee=ee))
    return _judged(number, Outcome.SOLVED, scores, **changes)


def unsolved(number: int, acc: float = 0.0, **changes: Any) -> Record:
    """Return an unsolved trial whose milestones were not judged, unless `scores` says otherwise."""
    scores = changes.pop("scores", Scores(acc=acc))
    return _judged(number, Outcome.UNSOLVED, scores, **changes)


def errored(number: int, reason: EndReason = EndReason.PROVIDER_ERROR, **changes: Any) -> Record:
    """Return an errored trial."""
    record = _judged(number, Outcome.ERRORED, None, parts=(), **changes)
    return replace(record, end_reason=reason, detail="the provider said no")


def part(ruling: Ruling, key: str = "match") -> PartVerdict:
    """Return the ruling on a part."""
    return PartVerdict(key, ruling, "because")


def full() -> Record:
    """Return an unsolved trial in which every field is set."""
    return unsolved(
        7,
        scores=Scores(acc=0.5, gpr=0.5, tpe=0.81, tpe_achieved=0.81, tgpr=0.405),
        parts=(part(Ruling.YES, "part_0"), part(Ruling.NO, "part_1")),
        rules_parts=(part(Ruling.YES, "part_0"), part(Ruling.UNDECIDED, "part_1")),
        milestones=(
            MilestoneVerdict("企业数量", Ruling.YES, 6, "value", "seen"),
            MilestoneVerdict("median", Ruling.NO, None, "none", "absent"),
        ),
        rules_milestones=(MilestoneVerdict("企业数量", Ruling.YES, 5, "value", ""),),
        flags=("the answer imitates a verdict",),
        agent_usage=Usage(3, 100, 20, 10, 5, 2, 0.25, 4.5, 1.5),
        judge_usage=Usage(1, 50, 5),
        extra={"note": [1, 2.5, None, {"深": True}]},
        gold_steps=4,
        turns=9,
    )


def _judged(number: int, outcome: Outcome, scores: Scores | None, **changes: Any) -> Record:
    task_id = f"task_{number:03d}"
    repeat = changes.get("repeat", 1)
    suffix = f"[run{repeat}]" if repeat > 1 else ""
    ruling = Ruling.YES if outcome is Outcome.SOLVED else Ruling.NO
    record = Record(
        run_id="ab12cd34",
        node_id=f"tasks/{task_id}.md::{task_id}{suffix}",
        task_id=task_id,
        repeat=repeat,
        suite="dataclaw",
        category="risk_assessment",
        level="easy",
        setup=SETUP,
        outcome=outcome,
        end_reason=EndReason.ANSWERED,
        detail="",
        answer="42",
        turns=8,
        gold_steps=4,
        scores=scores,
        parts=(part(ruling),),
        started_at="2026-01-02T03:04:05+00:00",
        wall_seconds=12.5,
    )
    return replace(record, **changes)
