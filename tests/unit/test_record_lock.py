"""One live run of a model in an output folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.record.lock import RunLock, lock_path

if TYPE_CHECKING:
    from pathlib import Path

_HOLDER = """
import subprocess, sys
from pathlib import Path
from pytest_dataclaw.record.lock import RunLock
RunLock(Path(sys.argv[1]), "ab12cd34").acquire()
child = subprocess.Popen(["sleep", "60"], close_fds=False)
print(child.pid, flush=True)
child.wait()
"""


def test_a_second_holder_is_told_who_holds_it(tmp_path: Path) -> None:
    path = lock_path(tmp_path / "output", "oracle")
    assert path == tmp_path / "output" / ".lock_oracle"
    with RunLock(path, "ab12cd34"):
        assert json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid()
        with pytest.raises(UsageError, match=rf"pid {os.getpid()} on .*, run ab12cd34"):
            RunLock(path, "other").acquire()
    with RunLock(path, "next"):
        assert json.loads(path.read_text(encoding="utf-8"))["run_id"] == "next"


def test_another_process_is_told_and_a_killed_holder_frees_it_though_its_child_lives(tmp_path: Path) -> None:
    path = tmp_path / ".lock_oracle"
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            with pytest.raises(UsageError, match=rf"pid {holder.pid} on .*, run ab12cd34"):
                RunLock(path, "other").acquire()
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            os.kill(child, 0)  # the orphan is alive and has not inherited the lock
            with RunLock(path, "other"):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


def test_locks_of_two_models_do_not_meet(tmp_path: Path) -> None:
    with RunLock(lock_path(tmp_path, "a"), "1"), RunLock(lock_path(tmp_path, "b"), "2"):
        pass


def test_release_is_idempotent(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / ".lock_a", "1")
    lock.release()
    lock.acquire()
    lock.release()
    lock.release()
    lock.acquire()
    lock.release()


def test_a_holder_that_has_not_named_itself(tmp_path: Path) -> None:
    path = tmp_path / ".lock_a"
    with RunLock(path, "1"):
        path.write_text("", encoding="utf-8")
        with pytest.raises(UsageError, match="it has not said which"):
            RunLock(path, "2").acquire()


def test_an_output_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be locked"):
        RunLock(tmp_path / "file" / ".lock_a", "1").acquire()
