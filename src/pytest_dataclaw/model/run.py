"""A run and the trials that belong to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP_SECONDS = 1.0


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
    """The moment at which a trial's time is up, on the monotonic clock.

    `extra` says how many seconds have been lost so far through nobody's fault; the deadline moves by as many, by
    `seconds` at most. It is asked when it matters, once a second at most: granted time is a second at least.
    """

    def __init__(self, seconds: float, extra: Callable[[], float] | None = None) -> None:
        self.seconds = seconds
        self._extra = extra
        self._end = time.monotonic() + seconds
        self._last_end = self._end + (seconds if extra is not None else 0.0)
        self._first_end = self._end
        self._asked = float("-inf")

    def remaining(self) -> float:
        """Return the seconds left for certain, never negative; once 0, always 0."""
        if (left := self._end - time.monotonic()) <= 0.0:
            left = self._extended()
        return max(0.0, left)

    def allowance(self, seconds: float) -> float:
        """Return how much of a span of so many seconds fits in before the deadline."""
        if self.remaining() < seconds and time.monotonic() - self._asked >= _STEP_SECONDS:
            self._extended()
        return min(seconds, self.remaining())

    def at_most(self) -> float:
        """Return the seconds left if all the extra time that there can be is granted."""
        return max(0.0, self._last_end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining() <= 0.0

    def _extended(self) -> float:
        """Move the deadline by what was lost, and return the seconds left."""
        now = time.monotonic()
        if self._extra is not None and now < self._last_end:
            self._asked = now
            end = self._first_end + self._extra()
            if self._end <= now:
                if end <= now:
                    self._extra = None  # what is lost from now on, is lost after the end
                    return 0.0
                end = max(end, now + _STEP_SECONDS)
            self._end = max(self._end, min(end, self._last_end))
        return self._end - time.monotonic()
