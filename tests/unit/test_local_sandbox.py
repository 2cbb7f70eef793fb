from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision import local
from pytest_dataclaw.provision.local import LocalProvider
from pytest_dataclaw.provision.processes import kill_all, marked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.provision.base import Sandbox

KEY = TrialKey("run-7f", "node", "task_1")


@pytest.fixture
def brief(tmp_path: Path) -> Brief:
    source = tmp_path / "a.csv"
    source.write_text("abc")
    files = (WorkspaceFile(source, PurePosixPath("database/a.csv")),)
    return Brief("task_1", "n", "risk_assessment", "easy", "?", 60.0, files, web=False)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "sandboxes"
    folder.mkdir()
    return folder


@pytest.fixture
def sandbox(brief: Brief, base: Path) -> Iterator[Sandbox]:
    with LocalProvider(base).provision(brief, KEY) as sandbox:
        yield sandbox


def mark_of(sandbox: Sandbox) -> str:
    return "DATACLAW_TRIAL=" + sandbox.exec("printf $DATACLAW_TRIAL", timeout=10).output


def test_folders(sandbox: Sandbox, base: Path) -> None:
    [root] = base.iterdir()
    assert root.name.startswith("dataclaw-run-7f-")
    assert sorted(folder.name for folder in root.iterdir()) == ["home", "tmp", "workspace"]
    assert sandbox.workspace == str(root / "workspace")
    assert sandbox.exec("echo $HOME $TMPDIR", timeout=10).output == f"{root}/home {root}/tmp\n"


def test_the_agents_python_is_this_one(sandbox: Sandbox) -> None:
    assert sandbox.exec("python3 -c 'import sys; print(sys.prefix)'", timeout=10).output.strip() == sys.prefix


def test_it_says_that_it_isolates_nothing() -> None:
    assert "isolates nothing" in str(local.__doc__)
    assert "isolates nothing" in str(local.LocalSandbox.__doc__)


def test_stop_leaves_no_process_with_the_mark(sandbox: Sandbox) -> None:
    mark = mark_of(sandbox)
    sandbox.exec("sleep 1000 & setsid sleep 1000 & (setsid nohup sleep 1000 &) > /dev/null; true", timeout=10)
    assert len(marked(mark)) == 3
    sandbox.stop()
    assert marked(mark) == []


def test_stop_reaps_the_shells(sandbox: Sandbox) -> None:
    shell = int(sandbox.exec("echo $$", timeout=10).output)
    assert os.waitid(os.P_PID, shell, os.WEXITED | os.WNOWAIT) is not None  # kept, so that its id stays taken
    sandbox.stop()
    with pytest.raises(ChildProcessError):
        os.waitid(os.P_PID, shell, os.WEXITED | os.WNOWAIT)


def test_other_trials_are_spared(brief: Brief, sandbox: Sandbox) -> None:
    with LocalProvider().provision(brief, KEY) as other:
        other.exec("sleep 1000 > /dev/null 2>&1 &", timeout=10)
        other_mark = mark_of(other)
        sandbox.stop()
        assert len(marked(other_mark)) == 1


def test_processes_that_keep_coming_are_hunted_down(sandbox: Sandbox) -> None:
    mark = mark_of(sandbox)
    # One at a time, 300 in all: each lives for a moment and leaves a successor in a session of its own.
    script, hops = (Path(sandbox.workspace) / name for name in ("hop.sh", "hops"))
    script.write_text('[ "$1" -lt 300 ] || exit\nsleep 0.02\necho >> hops\nsetsid sh hop.sh $(($1 + 1)) &\n')
    hops.touch()
    sandbox.exec("setsid sh hop.sh 0 > /dev/null 2>&1 &", timeout=10)
    end = time.monotonic() + 5
    while hops.stat().st_size < 3:
        assert time.monotonic() < end
    sandbox.stop()
    done = hops.stat().st_size
    assert done < 300
    time.sleep(0.2)
    assert hops.stat().st_size == done
    assert marked(mark) == []


def test_a_process_that_cannot_be_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "1000"], env={"PATH": os.environ["PATH"], "MARK": "m"})
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", lambda pid, number: None)
            with pytest.raises(SandboxError, match=str(process.pid)):
                kill_all([], "MARK=m", within=0.05)
        kill_all([], "MARK=m")
        assert process.wait(5) == -9
    finally:
        process.kill()
        process.wait()


def test_the_folder_is_removed_with_locked_folders_in_it(brief: Brief, base: Path) -> None:
    with LocalProvider(base).provision(brief, KEY) as sandbox:
        sandbox.exec("mkdir -p x/y && touch x/y/z && chmod 000 x/y x && chmod 000 .", timeout=10)
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("damage", ["rm -rf $PWD", "cd .. && rm -rf workspace && touch workspace"])
def test_a_workspace_that_the_agent_destroyed_fails_its_commands(sandbox: Sandbox, damage: str) -> None:
    sandbox.exec(damage, timeout=10)
    result = sandbox.exec("echo hello", timeout=10)
    assert result.exit_code == 126
    assert "cannot enter the working directory" in result.output


def test_no_shell_is_an_error_of_the_sandbox(brief: Brief, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    with pytest.raises(SandboxError, match="neither bash nor sh"), LocalProvider(base).provision(brief, KEY):
        pytest.fail("provided")
    assert list(base.iterdir()) == []


def test_a_full_disk(brief: Brief, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: full(Path(), Path()))
    provider = LocalProvider(base)
    with pytest.raises(SandboxError, match=r"database/a\.csv.*No space left") as caught, provider.provision(brief, KEY):
        pytest.fail("provided")
    assert isinstance(caught.value.__cause__, OSError)
    assert list(base.iterdir()) == []


def test_no_place_for_the_folder(brief: Brief, base: Path) -> None:
    provider = LocalProvider(base / "absent")
    with pytest.raises(SandboxError, match="cannot make a folder"), provider.provision(brief, KEY):
        pytest.fail("provided")


def test_errors_of_the_trial_are_passed_on_as_they_are(brief: Brief, base: Path) -> None:
    with pytest.raises(OSError, match="the trial's own") as caught, LocalProvider(base).provision(brief, KEY):
        raise OSError("the trial's own")
    assert type(caught.value) is OSError
    assert list(base.iterdir()) == []
