"""One live run of a model in an output folder."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

if sys.platform == "win32":
    import msvcrt

    # The locked byte lies past the text: Windows forbids others to read what is locked.
    _LOCKED_BYTE = 1 << 20

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """An exclusive lock on a file; the kernel frees it when the process dies, however it dies.

    The file stays: to remove it would race with a run that has opened it and is about to lock it.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock; UsageError naming the other run where it is held."""
        descriptor = self._open()
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError) as error:
            holder = _holder(os.read(descriptor, 4096))
            os.close(descriptor)
            raise UsageError(
                f"another run of this model is live in {self._path.parent}: {holder}; "
                "wait for it to end, or write to another folder with --dataclaw-output"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise self._unusable(error) from error
        self._descriptor = descriptor
        content = {"pid": os.getpid(), "host": socket.gethostname(), "run_id": self._run_id}
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps(content).encode())

    def release(self) -> None:
        """Free the lock. Idempotent."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        # os.open makes descriptors that no child process inherits (PEP 446): an orphan must not keep the lock.
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> UsageError:
        return UsageError(
            f"{self._path} cannot be locked ({error}); choose a writable folder on a local disk with --dataclaw-output"
        )

    def __enter__(self) -> RunLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def lock_path(output: Path, model_slug: str) -> Path:
    """Return the lock file of a model's runs in an output folder."""
    return output / f".lock_{model_slug}"


def _holder(content: bytes) -> str:
    """Describe the run that holds a lock; it may not have had the time to write its name."""
    try:
        known = json.loads(content)
        return f"pid {known['pid']} on {known['host']}, run {known['run_id']}"
    except (ValueError, KeyError, TypeError):
        return "it has not said which"
