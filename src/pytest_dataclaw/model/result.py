"""The result of a trial: two fields that never mix, outcome and end reason, and all that was measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.trajectory import Usage

if TYPE_CHECKING:
    from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict

SCHEMA_VERSION = 1


class Outcome(str, Enum):
    """What the trial counts as. A trial that never started has no record at all."""

    SOLVED = "solved"
    UNSOLVED = "unsolved"
    ERRORED = "errored"


class EndReason(str, Enum):
    """Why the trial ended. The first group is judged on what was produced; the second is errored, never scored."""

    ANSWERED = "answered"
    EARLY_STOP = "early_stop"
    AGENT_TIMEOUT = "agent_timeout"
    TRIAL_BUDGET = "trial_budget"
    CONTEXT_OVERFLOW = "context_overflow"
    AGENT_CRASH = "agent_crash"
    OOM = "oom"
    DISK_FULL = "disk_full"
    PIDS = "pids"

    PROVIDER_ERROR = "provider_error"
    RATE_LIMITED = "rate_limited"
    SANDBOX_ERROR = "sandbox_error"
    JUDGE_ERROR = "judge_error"
    RUN_BUDGET = "run_budget"
    INTERRUPTED = "interrupted"

    @property
    def errored(self) -> bool:
        """Whether a trial that ended so leaves the denominator of Acc."""
        return self in _ERRORED


_ERRORED = frozenset(
    {
        EndReason.PROVIDER_ERROR,
        EndReason.RATE_LIMITED,
        EndReason.SANDBOX_ERROR,
        EndReason.JUDGE_ERROR,
        EndReason.RUN_BUDGET,
        EndReason.INTERRUPTED,
    }
)


@dataclass(frozen=True, slots=True)
class Scores:
    """The metrics of one judged trial, unrounded; None where a metric does not apply.

    `acc` in [0, 1]. `ee` (solved only) = N / T. `gpr`, `tpe`, `tgpr` in [0, 1] (unsolved only; with
    `--dataclaw-process=all` also on solved trials, which stay out of the headline). `tpe` counts a trial without any
    achieved milestone as 0 (leaderboard), `tpe_achieved` leaves it out (paper v3). Source: arXiv 2605.02503.
    """

    acc: float
    ee: float | None = None
    gpr: float | None = None
    tpe: float | None = None
    tpe_achieved: float | None = None
    tgpr: float | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """All that was set up for a trial and could move its score, by name."""

    model: str
    agent: str
    profile: str
    sandbox: str
    judge: str
    plugin_version: str
    timeout_seconds: float
    process: str
    max_requests: int = 0
    """The most requests that the agent may make; 0 where there is no limit."""
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 by name: `task`, `gold`, `data`."""


@dataclass(frozen=True, slots=True)
class Record:
    """One trial on disk (`record.json`), the only thing that summary, resume and rescore read."""

    run_id: str
    node_id: str
    task_id: str
    repeat: int
    suite: str
    category: str
    level: str
    setup: Setup
    outcome: Outcome
    end_reason: EndReason
    detail: str
    """One or two sentences for a person: the judge's reason, or what went wrong."""
    answer: str
    turns: int
    gold_steps: int
    scores: Scores | None
    """None if and only if the outcome is errored."""
    parts: tuple[PartVerdict, ...] = ()
    milestones: tuple[MilestoneVerdict, ...] = ()
    rules_parts: tuple[PartVerdict, ...] = ()
    """What the deterministic judge says of the same answer; runs beside every LLM judge."""
    rules_milestones: tuple[MilestoneVerdict, ...] = ()
    flags: tuple[str, ...] = ()
    agent_usage: Usage = field(default_factory=Usage)
    judge_usage: Usage = field(default_factory=Usage)
    started_at: str = ""
    """UTC, ISO 8601."""
    wall_seconds: float = 0.0
    side_exchanges: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA_VERSION
