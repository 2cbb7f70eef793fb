"""How far the judge and the rules agree on the parts of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.model.verdict import Ruling
from pytest_dataclaw.score.statistics import Agreement, agreement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_dataclaw.model.result import Record

RULES = "rules"


@dataclass(frozen=True, slots=True)
class PartPlace:
    """One part of one trial's answer."""

    node_id: str
    part: str


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The judge against the rules.

    `agreement` is over the parts that both decided. `undecided` are the parts that the rules left open: apart from the
    agreement where another judge ruled, and scored 0 where the rules are the sole judge.
    """

    agreement: Agreement
    disagreements: tuple[PartPlace, ...]
    undecided: tuple[PartPlace, ...]
    undecided_scored: tuple[PartPlace, ...]


def check_judge(judged: Iterable[Record]) -> JudgeCheck:
    """Compare, part by part, what the judge and the rules said of the judged trials.

    ValueError where the two did not rule on the same parts. Trials without rulings of the rules do not count.
    """
    pairs: list[tuple[Ruling, Ruling]] = []
    disagreements: list[PartPlace] = []
    undecided: list[PartPlace] = []
    undecided_scored: list[PartPlace] = []
    for record in judged:
        if record.setup.judge == RULES:
            undecided_scored += [
                PartPlace(record.node_id, part.key) for part in record.parts if part.ruling is Ruling.UNDECIDED
            ]
            continue
        for key, ruling, by_rules in _paired(record):
            if Ruling.UNDECIDED in (ruling, by_rules):
                undecided.append(PartPlace(record.node_id, key))
                continue
            pairs.append((ruling, by_rules))
            if ruling is not by_rules:
                disagreements.append(PartPlace(record.node_id, key))
    return JudgeCheck(agreement(pairs), tuple(disagreements), tuple(undecided), tuple(undecided_scored))


def _paired(record: Record) -> list[tuple[str, Ruling, Ruling]]:
    if not record.rules_parts:
        return []
    if [part.key for part in record.parts] != [part.key for part in record.rules_parts]:
        raise ValueError(f"{record.node_id}: the judge and the rules ruled on different parts")
    return [
        (part.key, part.ruling, by_rules.ruling)
        for part, by_rules in zip(record.parts, record.rules_parts, strict=True)
    ]
