"""A run and the trials that belong to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Where a model is reached and by what right: an OpenAI-compatible base URL, a one-trial token, a model id."""

    base_url: str
    token: str = field(repr=False)
    model: str


@dataclass(frozen=True, slots=True)
class TrialKey:
    """Which trial of which run: `node_id` is pytest's, `repeat` is 1-based (`--dataclaw-runs`)."""

    run_id: str
    node_id: str
    task_id: str
    repeat: int = 1


class Deadline:
    """The moment at which a trial's time is up, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining() <= 0.0
