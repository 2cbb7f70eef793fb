"""A shell command in a session of its own: its output, its end, and the end of all it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pytest_dataclaw.provision.base import ExecResult
from pytest_dataclaw.provision.capture import HeadTail
from pytest_dataclaw.provision.processes import kill_all, signal_all

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEEP_BYTES = 64 * 1024
"""How much of a command's output is kept at either end."""
_POLL_SECONDS = 0.05
_DRAIN_SECONDS = 0.2
"""How long output may still come in once the shell has ended: a background child may hold the pipe for ever."""
_GRACE_SECONDS = 0.5
"""Between SIGTERM and SIGKILL."""


class ShellCommand:
    """A command that runs. Its shell is reaped by `reap` alone: till then nobody else can be given its group id.

    `mark` is the entry of `environment` (`NAME=value`) that tells this command's processes from all others. Raises
    OSError where the command cannot be started.
    """

    def __init__(self, text: str, *, shell: str, folder: str, environment: Mapping[str, str], mark: str) -> None:
        self._mark = mark
        self._output = HeadTail(_KEEP_BYTES)
        # A command may be longer than an argument may be (128 KiB), so the shell reads it from a nameless file.
        with TemporaryFile() as script:
            script.write(text.encode("utf-8", "replace"))
            script.seek(0)
            self._process = subprocess.Popen(
                [shell, f"/dev/fd/{script.fileno()}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd=folder,
                env=environment,
                pass_fds=[script.fileno()],
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout

    @property
    def group(self) -> int:
        """The id of the command's process group, and of its session."""
        return self._process.pid

    def result(self, timeout: float) -> ExecResult:
        """Wait for the shell to end, `timeout` seconds at most, and say what came of it. Call once."""
        with self._pipe:
            exit_code = self._wait(timeout)
            if exit_code is None:
                signal_all([self.group], self._mark, signal.SIGTERM)
                self._read_for(_GRACE_SECONDS)
                kill_all([self.group], self._mark)
            self._read_for(_DRAIN_SECONDS)
        return ExecResult(self._output.text(), exit_code, exit_code is None, self._output.dropped)

    def reap(self) -> None:
        """Forget the command; call when all its processes have been killed."""
        self._pipe.close()
        self._process.wait()

    def _wait(self, timeout: float) -> int | None:
        """Return the exit code, or None if time is up first."""
        end = time.monotonic() + timeout
        pause = 0.0005
        is_open = True
        while True:
            exit_code = self._exit_code()
            left = end - time.monotonic()
            if exit_code is not None or left <= 0:
                return exit_code
            if is_open:
                is_open = self._read(min(left, _POLL_SECONDS))
            else:  # mostly the shell ends right after its output; it may also have closed it early
                time.sleep(min(left, pause))
                pause = min(2 * pause, _POLL_SECONDS)

    def _read_for(self, seconds: float) -> None:
        """Read until the pipe is closed at its other end or time is up."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._read(left):
            pass

    def _read(self, wait: float) -> bool:
        """Read once, waiting `wait` seconds at most; return False when nobody holds the pipe any more."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        if not poll.poll(wait * 1000):
            return True
        chunk = os.read(self._pipe.fileno(), _KEEP_BYTES)
        self._output.feed(chunk)
        return bool(chunk)

    def _exit_code(self) -> int | None:
        """Return the shell's exit code, negative for a signal; None while it runs."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll()
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
