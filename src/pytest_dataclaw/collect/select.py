"""Select tasks by id, as `--dataclaw-suite` asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class SuiteFilter:
    """Which tasks to run: ids or id prefixes that end at an underscore boundary; no entries mean every task."""

    entries: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SuiteFilter:
        """Read a comma-separated list; "" and "all" mean every task."""
        entries = tuple(dict.fromkeys(entry for part in text.split(",") if (entry := part.strip())))
        return cls(() if "all" in entries else entries)

    def matches(self, task_id: str) -> bool:
        """Tell whether the task is selected: `task_001` selects `task_001_easy`, not `task_0011_easy`."""
        return not self.entries or any(_selects(entry, task_id) for entry in self.entries)

    def unknown(self, seen_ids: Iterable[str]) -> tuple[str, ...]:
        """Return the entries that selected none of the ids, in the order given."""
        ids = tuple(seen_ids)
        return tuple(entry for entry in self.entries if not any(_selects(entry, task_id) for task_id in ids))


def _selects(entry: str, task_id: str) -> bool:
    return task_id == entry or task_id.startswith(entry.removesuffix("_") + "_")
