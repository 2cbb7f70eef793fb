"""What a judge is: it sees the question, the gold and what the agent produced; never the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_dataclaw.model.trajectory import Trajectory

if TYPE_CHECKING:
    from pytest_dataclaw.model.task import Gold
    from pytest_dataclaw.model.verdict import OutcomeVerdict, ProcessVerdict


@dataclass(frozen=True, slots=True)
class Case:
    """What is to be judged: an answer (not empty) against a gold, and the trajectory that led to it."""

    gold: Gold
    answer: str
    trajectory: Trajectory = field(default_factory=Trajectory)
    aliases: tuple[frozenset[str], ...] = ()
    """Sets of names that mean the same body, from the task root's bilingual map."""


class Judge(Protocol):
    """Rules on a case. Both methods raise JudgeError where no usable verdict can be had."""

    @property
    def name(self) -> str:
        """The judge's name for records and summaries: `rules`, `oracle`, or a model id."""

    def judge_outcome(self, case: Case) -> OutcomeVerdict:
        """Rule on every part of the answer."""

    def judge_process(self, case: Case) -> ProcessVerdict:
        """Rule on every milestone; called only for cases that have milestones and turns."""
