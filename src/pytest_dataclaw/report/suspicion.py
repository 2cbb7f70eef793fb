"""Trials that a person should look at before believing the means."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.model.result import EndReason, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_dataclaw.model.result import Record

FEW_TURNS = 2
LITTLE_PROGRESS = 0.1


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A doubt and the trials that raise it."""

    what: str
    node_ids: tuple[str, ...]


def suspicions(judged: Iterable[Record]) -> tuple[Suspicion, ...]:
    """Group the doubts about judged trials by kind, in the alphabet's order."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in judged:
        for what in _doubts(record):
            found[what].append(record.node_id)
    return tuple(Suspicion(what, tuple(node_ids)) for what, node_ids in sorted(found.items()))


def _doubts(record: Record) -> Iterator[str]:
    scores = record.scores
    if scores is None:
        return
    if scores.acc == 1.0 and scores.gpr is not None and scores.gpr < LITTLE_PROGRESS:
        yield f"solved with GPR below {LITTLE_PROGRESS}"
    if scores.acc == 0.0 and scores.gpr == 1.0:
        yield "Acc 0 with every milestone reached"
    if record.outcome is Outcome.UNSOLVED and record.turns <= FEW_TURNS:
        yield f"unsolved within {FEW_TURNS} turns"
    if record.end_reason is EndReason.AGENT_TIMEOUT:
        yield "ended by time-out"
    yield from dict.fromkeys(record.flags)
