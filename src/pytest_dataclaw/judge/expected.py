"""What one part of a gold answer expects, as something that rules on a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_dataclaw.model.verdict import Ruling


@dataclass(frozen=True, slots=True)
class Finding:
    """A ruling on one statement. The reason speaks of the form only: it never holds the gold value."""

    ruling: Ruling
    reason: str


class Expected(Protocol):
    """One part of a gold answer. No method raises, whatever the text; all are linear in its length."""

    def carries(self, text: str) -> bool:
        """Tell whether a line holds something of the expected kind (a number, a yes or no, ...) or a refusal."""

    def is_bare(self, statement: str) -> bool:
        """Tell whether a tidied statement holds such a thing and nothing else."""

    def rule(self, statement: str) -> Finding:
        """Rule on a statement as the final answer."""


def combine(findings: list[Finding], mixed: str) -> Finding:
    """Return the finding that all agree on, else undecided for the reason `mixed`."""
    rulings = {finding.ruling for finding in findings}
    return findings[0] if len(rulings) == 1 else Finding(Ruling.UNDECIDED, mixed)
