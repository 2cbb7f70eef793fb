"""Acc: the share of an answer's parts that are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dataclaw.model.verdict import Ruling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.model.verdict import PartVerdict


def accuracy(parts: Sequence[PartVerdict]) -> float:
    """Return the mean over the parts, YES as 1, NO and UNDECIDED as 0; ValueError where there is no part.

    Source: arXiv 2605.02503; a single answer is one part, a list gold has one part an item.
    """
    if not parts:
        raise ValueError("an outcome verdict without parts has no accuracy")
    return sum(part.ruling is Ruling.YES for part in parts) / len(parts)
