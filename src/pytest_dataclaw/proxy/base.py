"""What the other stages know of the model proxy: leases, and what went over them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.run import ModelEndpoint, TrialKey
    from pytest_dataclaw.model.trajectory import Traffic, Usage

_OVERFLOW = re.compile(
    r"context[ _](length|window|overflow|size)|maximum context|prompt (is )?too (long|large)|input is too long"
    r"|input token count|maximum prompt length|prompt exceeds max|range of input length|exceeded model token limit",
    re.IGNORECASE,
)


LIMIT_REACHED = "request_limit"
"""Error code of a request beyond what its trial may use."""


def is_context_overflow(text: str) -> bool:
    """Tell whether a provider's error says that a conversation no longer fits."""
    return _OVERFLOW.search(text) is not None


Role: TypeAlias = Literal["agent", "judge"]


@dataclass(frozen=True, slots=True)
class Script:
    """What the built-in `oracle` plays: one Python script per gold step, or the gold answer where there are none."""

    steps: tuple[str, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Egress:
    """Ask for a way to the web: the unix socket (as that of a lease) at which the egress proxy is served to the trial.

    `journal` is the file (absolute) to which a line is appended for every request, secrets scrubbed.
    """

    socket: Path
    journal: Path


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Ask for the right to use one model in one role of one trial."""

    key: TrialKey
    role: Role
    model: str
    journal: Path
    """File (absolute) to which every exchange is appended, secrets scrubbed."""
    script: Script = field(default_factory=Script)
    socket: Path | None = None
    """Unix socket (absolute path, its folder exists) at which the lease is served as well, and it alone; for sealed
    sandboxes, which cannot reach loopback. Made with mode 0666 when the lease is opened, removed when it is closed."""
    patience: float = 0.0
    """The most seconds that its requests, all together, wait before they are tried again at the provider. 0: no
    request is tried again."""
    max_requests: int | None = None
    """The most requests that are passed on; those that the proxy tries again count once. None: no limit."""
    egress: Egress | None = None
    """The trial's way to the web, as long as the lease is open; None where it has none, or none that we know of."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right granted: an endpoint on loopback, and the number by which the proxy knows it."""

    lease_id: str
    endpoint: ModelEndpoint


class Proxy(Protocol):
    """The proxy as a trial uses it, over its control interface; ProviderError where it cannot be reached."""

    def open_lease(self, request: LeaseRequest) -> Lease:
        """Grant a lease; raise UsageError for a model that no upstream serves."""

    def close_lease(self, lease: Lease) -> Traffic:
        """Refuse all further requests of the lease, wait for those in flight to be cut, and say what went over it."""

    def usage(self, key: TrialKey, role: Role) -> Usage:
        """Return what a trial has used so far in one role, all its leases together."""

    def is_healthy(self) -> bool:
        """Tell whether the proxy answers."""
