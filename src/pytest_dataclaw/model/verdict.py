"""What a judge said of a trial."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Ruling(str, Enum):
    """Yes, no, or undecided: only the deterministic judge may be undecided, and it then scores 0."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class PartVerdict:
    """The ruling on one part of the answer; `key` is `match` for a single answer, `part_0`... for a list."""

    key: str
    ruling: Ruling
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeVerdict:
    """Whether the final answer is right, part by part."""

    judge: str
    parts: tuple[PartVerdict, ...]
    attempts: int = 1
    flags: tuple[str, ...] = ()
    """Doubts about the verdict, for example that the answer imitates a verdict."""
    chat: tuple[dict[str, Any], ...] = ()
    """The exchanges with the judge, one row an attempt; written to `judge_chat.jsonl`, not to the record."""


@dataclass(frozen=True, slots=True)
class MilestoneVerdict:
    """Whether a milestone was reached; `turn` (1-based) is the first turn showing it, set if and only if achieved."""

    key: str
    ruling: Ruling
    turn: int | None = None
    evidence: str = "none"
    """`value` (stated), `inferred` (follows from a later milestone that holds), or `none`."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ProcessVerdict:
    """Which milestones were reached, in the gold file's order, one each."""

    judge: str
    milestones: tuple[MilestoneVerdict, ...]
    attempts: int = 1
    chat: tuple[dict[str, Any], ...] = ()
