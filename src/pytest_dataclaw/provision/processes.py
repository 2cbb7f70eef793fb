"""Find and kill what a sandbox started, by process group and by a mark in the environment."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Collection

_PROC = Path("/proc")


def marked(mark: str) -> list[int]:
    """Return the live processes whose environment holds `mark` (`NAME=value`); none where there is no /proc (macOS).

    The environment is the one a process was started with: leaving the session does not shed it, `env -i` does.
    """
    if not (_PROC / "self" / "environ").exists():
        return []
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit() and _has_mark(entry, mark.encode())]


def signal_all(groups: Collection[int], mark: str, number: signal.Signals) -> list[int]:
    """Send a signal to process groups and to all marked processes; return the marked ones."""
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    found = marked(mark)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return found


def kill_all(groups: Collection[int], mark: str, *, within: float = 10.0) -> None:
    """Kill until no marked process is left, new ones included; raise SandboxError after `within` seconds."""
    end = time.monotonic() + within
    while survivors := signal_all(groups, mark, signal.SIGKILL):
        if time.monotonic() > end:
            raise SandboxError(f"processes of the sandbox cannot be killed: {', '.join(map(str, survivors))}")
        time.sleep(0.005)


def _has_mark(process: Path, mark: bytes) -> bool:
    try:
        environment = (process / "environ").read_bytes()
    except OSError:  # it has ended meanwhile, or belongs to someone else
        return False
    return mark in environment.split(b"\0")
