"""What a sandbox is: where an agent's commands run, holding the brief's files and nothing else of the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_dataclaw.model.result import EndReason
    from pytest_dataclaw.model.run import ModelEndpoint, TrialKey
    from pytest_dataclaw.model.task import Brief


PROGRAMS = "/opt/dataclaw"
"""Where a container has the programs of `docker/`: its provider puts them there, whatever the image."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command did. `output` is stdout and stderr as they came, its middle cut out past the sandbox's limit.

    `exit_code` is negative for a signal, as in `subprocess`; None if the command was stopped by its time limit.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Fate:
    """How a sandbox ended by itself: an end reason that its contents caused (`oom`, `agent_crash`, ...) and details."""

    end_reason: EndReason
    detail: str


class Sandbox(Protocol):
    """A provisioned sandbox. Errors of the sandbox itself are SandboxError; a failing command is an ExecResult."""

    @property
    def kind(self) -> str:
        """`local` or `docker`."""

    @property
    def workspace(self) -> str:
        """The working directory as the agent sees it; the files lie below it at their `dest`."""

    @property
    def home(self) -> str:
        """The home folder, in the sandbox, of the user that commands run as; it is outside the workspace."""

    @property
    def socket(self) -> Path | None:
        """Where the proxy has to listen for this trial; None if what runs in the sandbox reaches its loopback."""

    @property
    def egress_socket(self) -> Path | None:
        """Where the egress proxy has to listen for this trial; None for a task without the web, and where what runs in
        the sandbox reaches the web by itself."""

    def reach(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """Return a leased endpoint as it is reached from inside the sandbox."""

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file in the sandbox (absolute path there), readable by the agent's user only; parents are made."""

    def read_file(self, path: str, *, limit: int) -> bytes | None:
        """Return the first `limit` bytes of a regular file in the sandbox, following no link; None if there is none."""

    def exec(self, command: str, *, timeout: float) -> ExecResult:
        """Run a shell command in the workspace; kill it and all its children after `timeout` seconds."""

    def stop(self) -> None:
        """Stop everything that runs in the sandbox, background processes too. Idempotent."""

    def verify(self) -> None:
        """Raise SandboxError if the benchmark's own files were changed since provisioning. Call after `stop`."""

    def fate(self) -> Fate | None:
        """Tell what became of the sandbox from inside, where it ended before it was stopped; None otherwise."""

    def digests(self) -> Mapping[str, str]:
        """Return SHA-256 digests by name of what was provisioned: at least `data`."""


class SandboxProvider(Protocol):
    """Makes sandboxes; one per worker process."""

    def provision(self, brief: Brief, key: TrialKey) -> AbstractContextManager[Sandbox]:
        """Enter a sandbox for one trial; on exit everything is stopped and removed, whatever happened."""

    def close(self) -> None:
        """Wait until what is still being removed is gone, a bounded time. Idempotent."""
