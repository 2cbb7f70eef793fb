"""The process to which containers and folders belong, so that what a dead one left behind can be told and removed."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

OWNER_LABEL = "dataclaw.owner"
RUN_LABEL = "dataclaw.run"
TRIAL_LABEL = "dataclaw.trial"
FOLDER_PREFIX = "dclw-"
"""A provider's folder is called by this prefix, the owner, and something random."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of some machine; `started` is its start in clock ticks since boot (0 where there is no /proc).

    `machine` stands for host and process namespace: elsewhere the process id would mean another process.
    """

    machine: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.machine}-{self.pid}-{self.started}"

    @property
    def is_gone(self) -> bool:
        """Whether the process is known to have ended; False for one of another machine, which may be alive."""
        if self.machine != _machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return self.started != _started(self.pid)


def this_process() -> Owner:
    """Return this process as an owner."""
    return Owner(_machine(), os.getpid(), _started(os.getpid()))


def read_owner(text: str) -> Owner | None:
    """Read an owner as `str` writes it; None where the text is something else."""
    machine, *numbers = text.split("-")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    return Owner(machine, int(numbers[0]), int(numbers[1]))


def _machine() -> str:
    namespace = _PROC / "self/ns/pid"
    name = f"{platform.node()} {namespace.readlink() if namespace.is_symlink() else ''}"
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def _started(pid: int) -> int:
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[19])  # `starttime`, the 22nd of proc(5), counted from behind the name, which may hold spaces
