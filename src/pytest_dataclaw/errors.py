"""The exceptions of the package; imports nothing of it.

DataclawError
├── UsageError             the call, a setting or the machine is wrong; nothing was started, nothing spent
├── TaskError              a benchmark file is wrong: file, line, field, what was expected
├── RecordError            a record or progress file on disk is damaged or foreign
└── InfrastructureError    a trial failed for reasons that are not the agent's; carries an end reason
    ├── SandboxError       the sandbox could not be provided, broke, or changed what it must not
    ├── ProviderError      a model exchange failed for good
    └── JudgeError         no usable verdict could be had
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class DataclawError(Exception):
    """Base of every error that the package raises on purpose."""


class UsageError(DataclawError):
    """Say what is wrong with the call and the ways out; raised before anything costs money."""


class TaskError(DataclawError):
    """Name a fault of a benchmark file.

    `line` is 1-based; None where the fault has no place in the file (an absent file, say).
    """

    def __init__(self, path: Path, message: str, *, line: int | None = None, field: str | None = None) -> None:
        self.path = path
        self.line = line
        self.field = field
        self.message = message
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {field}: {message}" if field else f"{place}: {message}")


class RecordError(DataclawError):
    """Name a record or progress file that cannot be used, and why."""


class InfrastructureError(DataclawError):
    """A trial failed for reasons outside the agent; `end_reason` is the value of an errored `EndReason`."""

    end_reason = "sandbox_error"


class SandboxError(InfrastructureError):
    """The sandbox could not be provided, broke, or changed what it must not."""

    end_reason = "sandbox_error"


class ProviderError(InfrastructureError):
    """A model exchange failed for good; `rate_limited` tells a provider's refusal by quota from other failures."""

    def __init__(self, message: str, *, rate_limited: bool = False) -> None:
        super().__init__(message)
        self.end_reason = "rate_limited" if rate_limited else "provider_error"


class JudgeError(InfrastructureError):
    """No usable verdict could be had; `chat` holds the attempts, one row each, as they go to the judge's file."""

    end_reason = "judge_error"

    def __init__(self, message: str, *, chat: tuple[dict[str, Any], ...] = ()) -> None:
        super().__init__(message)
        self.chat = chat


class TaskWarning(UserWarning):
    """A doubt about a benchmark file that does not stop it from being used."""
