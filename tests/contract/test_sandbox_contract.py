"""What every sandbox backend must do. To check another one, add it to `BACKENDS`."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import tempfile
import time
import tracemalloc
import uuid
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import SandboxError, UsageError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision.base import ExecResult
from pytest_dataclaw.provision.docker import DockerProvider
from pytest_dataclaw.provision.engine import connect
from pytest_dataclaw.provision.image import LOCAL_IMAGE, image_digest
from pytest_dataclaw.provision.local import LocalProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_dataclaw.provision.base import Sandbox, SandboxProvider


def docker_provider(base: Path) -> DockerProvider:
    packages = Path(tempfile.gettempdir()) / f"dataclaw-test-packages-{os.getuid()}"
    return DockerProvider(LOCAL_IMAGE, seconds_for=lambda brief: 300, packages=packages, base=base)


BACKENDS: dict[str, Callable[[Path], SandboxProvider]] = {
    "local": LocalProvider,
    "docker": docker_provider,
}
"""How to make a provider that keeps all it needs below the given folder, by kind."""

KINDS = [pytest.param("local"), pytest.param("docker", marks=pytest.mark.docker)]

KEY = TrialKey("run1", "tasks/task_001.md::task_001", "task_001")
BYTES = "行业,值\r\n甲,1\n".encode() + bytes(range(256))
KIB = 1024


@pytest.fixture(scope="session")
def docker_image() -> str:
    """The image that the Docker cases need, or a skip that says what is missing."""
    try:
        client = connect()
    except SandboxError as error:
        pytest.skip(str(error))
    try:
        image_digest(client, LOCAL_IMAGE)
    except UsageError as error:
        pytest.skip(f"{error}; docker/build-image makes it")
    finally:
        client.close()
    return LOCAL_IMAGE


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        request.getfixturevalue("docker_image")
    return str(request.param)


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder for the provider: with a short path, as that of a unix socket is limited."""
    base = Path(tempfile.mkdtemp(prefix="dclw-test-"))
    yield base
    shutil.rmtree(base)


@pytest.fixture
def provider(kind: str, base: Path) -> Iterator[SandboxProvider]:
    provider = BACKENDS[kind](base)
    yield provider
    close(provider)


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """The benchmark's own folder: two files that the brief names, and others that the agent must not see."""
    folder = tmp_path / "assets"
    (folder / "database" / "policy").mkdir(parents=True)
    (folder / "qa_gold").mkdir()
    (folder / "database" / "a.csv").write_bytes(BYTES)
    (folder / "database" / "policy" / "b.csv").write_bytes(b"")
    (folder / "database" / "unused.csv").write_bytes(b"x")
    (folder / "qa_gold" / "gold.json").write_text('{"answer": 42}')
    return folder


@pytest.fixture
def brief(assets: Path) -> Brief:
    places = {"database/a.csv": "database/a.csv", "database/policy/b.csv": "database/deep/er/b.csv"}
    files = tuple(WorkspaceFile(assets / source, PurePosixPath(dest)) for source, dest in places.items())
    return Brief("task_001", "n", "risk_assessment", "easy", "Question?", 60.0, files, web=False)


@pytest.fixture
def sandbox(provider: SandboxProvider, brief: Brief) -> Iterator[Sandbox]:
    with provider.provision(brief, KEY) as sandbox:
        yield sandbox


@pytest.fixture
def label() -> str:
    """A word by which a process can be found from outside, whatever namespace it is in."""
    return f"label-{uuid.uuid4().hex}"


def close(provider: SandboxProvider) -> None:
    """End a provider that has something to end."""
    if isinstance(provider, DockerProvider):
        provider.close()


def run(sandbox: Sandbox, command: str, timeout: float = 20.0) -> ExecResult:
    return sandbox.exec(command, timeout=timeout)


def sleeper(label: str, prefix: str = "") -> str:
    """A command that does nothing for long, under a command line that holds the label."""
    return f"{prefix} python3 -c 'import time; time.sleep(1000)' {label}"


def alive(label: str) -> int:
    """Count the processes that carry a label, shells whose script happens to hold it left out."""
    found = 0
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += label.encode() in words
    return found


def wait_for(label: str, count: int) -> None:
    """Wait for so many labelled processes: what has been sent a signal may take a moment to be gone."""
    end = time.monotonic() + 5
    while alive(label) != count:
        assert time.monotonic() < end, f"{alive(label)} processes, expected {count}"
        time.sleep(0.02)


class TestFiles:
    def test_only_the_briefs_files_are_there(self, sandbox: Sandbox) -> None:
        found = run(sandbox, "find . ! -type d | sort").output
        assert found == "./database/a.csv\n./database/deep/er/b.csv\n"

    def test_bytes_are_the_originals(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "sha256sum < database/a.csv").output.split()[0] == hashlib.sha256(BYTES).hexdigest()
        assert run(sandbox, "wc -c < database/deep/er/b.csv").output.strip() == "0"

    def test_commands_cannot_change_the_originals_through_their_files(self, sandbox: Sandbox, assets: Path) -> None:
        run(sandbox, "echo x >> database/a.csv; echo y > database/deep/er/b.csv; chmod 777 database/a.csv")
        run(sandbox, "rm -f database/a.csv")
        left = run(sandbox, "cat database/a.csv | wc -c").output.splitlines()[-1]
        assert left == ("0" if sandbox.kind == "local" else str(len(BYTES)))
        assert (assets / "database/a.csv").read_bytes() == BYTES
        assert (assets / "database/policy/b.csv").read_bytes() == b""
        sandbox.stop()
        sandbox.verify()

    def test_no_links_to_the_originals(self, sandbox: Sandbox, assets: Path) -> None:
        assert run(sandbox, "find . -type l").output == ""
        assert (assets / "database/a.csv").stat().st_nlink == 1

    def test_nothing_else_of_the_assets_is_within_reach(self, sandbox: Sandbox) -> None:
        if sandbox.kind == "local":
            pytest.skip("the local sandbox isolates nothing")
        found = run(
            sandbox, "find / -xdev -name '*gold*' -path '*json*' 2>/dev/null; grep -c gold /proc/self/mountinfo"
        )
        assert found.output == "0\n"
        assert run(sandbox, "find / -name unused.csv 2>/dev/null; find / -name a.csv 2>/dev/null").output == (
            f"{sandbox.workspace}/database/a.csv\n"
        )

    def test_a_brief_knows_nothing_of_the_gold(self) -> None:
        names = {field.name for field in dataclasses.fields(Brief)}
        assert names == {
            "task_id", "name", "category", "level", "prompt", "timeout_seconds", "workspace_files", "web", "suite"
        }  # fmt: skip

    def test_a_missing_source_is_named(self, provider: SandboxProvider, brief: Brief, assets: Path) -> None:
        (assets / "database/policy/b.csv").unlink()
        with pytest.raises(SandboxError, match=r"b\.csv") as caught, provider.provision(brief, KEY):
            pytest.fail("provided")
        assert isinstance(caught.value.__cause__, FileNotFoundError)

    @pytest.mark.parametrize("dest", ["../a.csv", "/tmp/a.csv", "database/../../a.csv"])
    def test_a_destination_outside_is_refused(self, provider: SandboxProvider, assets: Path, dest: str) -> None:
        files = (WorkspaceFile(assets / "database/a.csv", PurePosixPath(dest)),)
        brief = Brief("task_001", "n", "c", "easy", "Question?", 60.0, files, web=False)
        with pytest.raises(SandboxError, match="below the workspace"), provider.provision(brief, KEY):
            pytest.fail("provided")


class TestCommands:
    def test_kind(self, sandbox: Sandbox, kind: str) -> None:
        assert sandbox.kind == kind

    def test_working_directory(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "cd database; pwd -P").output == f"{sandbox.workspace}/database\n"
        assert run(sandbox, "pwd -P").output == f"{sandbox.workspace}\n"

    @pytest.mark.parametrize(
        ("command", "code"), [("true", 0), ("false", 1), ("exit 77", 77), ("no_such_program", 127)]
    )
    def test_exit_codes(self, sandbox: Sandbox, command: str, code: int) -> None:
        result = run(sandbox, command)
        assert (result.exit_code, result.timed_out, result.dropped_bytes) == (code, False, 0)

    def test_a_signal_is_a_negative_exit_code(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "echo before; kill -KILL $$") == ExecResult("before\n", -9)

    def test_output_and_errors_are_merged_as_they_came(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "echo 1; echo 2 >&2; echo 3; echo 4 >&2").output == "1\n2\n3\n4\n"

    def test_bytes_that_are_no_text(self, sandbox: Sandbox) -> None:
        assert run(sandbox, r"printf 'a\0b\377c\n甲'").output == "a\0b\ufffdc\n甲"

    def test_standard_input_is_empty(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "cat; echo end", timeout=5) == ExecResult("end\n", 0)

    def test_several_lines_and_quotes(self, sandbox: Sandbox) -> None:
        command = "cat <<'EOF' > s.py\nprint('a\"b', 1 +\n  1)\nEOF\npython3 s.py\nfalse || echo \"$(echo '$x')\""
        assert run(sandbox, command).output == 'a"b 2\n$x\n'

    def test_a_command_longer_than_an_argument_may_be(self, sandbox: Sandbox) -> None:
        text = "0123456789abcdef" * (300 * KIB // 16)
        result = run(sandbox, f"cat > long <<'EOF'\n{text}\nEOF\nwc -c < long")
        assert (result.output.strip(), result.exit_code) == (str(300 * KIB + 1), 0)

    @pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800", ""], ids=["NUL", "surrogate", "empty"])
    def test_odd_commands_are_no_error_of_the_sandbox(self, sandbox: Sandbox, command: str) -> None:
        run(sandbox, command)
        assert run(sandbox, "echo still here").output == "still here\n"

    def test_files_stay_from_command_to_command(self, sandbox: Sandbox) -> None:
        run(sandbox, "mkdir work; echo 5 > work/x; export Y=1")
        assert run(sandbox, "cat work/x; echo [$Y]").output == "5\n[]\n"

    def test_big_output_keeps_head_and_tail_in_little_memory(self, sandbox: Sandbox) -> None:
        tracemalloc.start()
        try:
            result = run(sandbox, "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=60)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert result.output.startswith("first\nxxx")
        assert result.output.endswith("xxx\nlast\n")
        # 6 + 50,000,000 + 1 + 5 bytes were printed; all but one line of the output was
        kept = "".join(line for line in result.output.splitlines(keepends=True) if "bytes dropped" not in line)
        assert f"{result.dropped_bytes} bytes dropped" in result.output
        assert 0 <= len(kept) - (50_000_012 - result.dropped_bytes) <= 1  # the marker's own line break
        assert len(result.output) < 200 * KIB
        assert peak < 2_000_000


class TestEnvironment:
    def test_nothing_of_the_host_comes_in(
        self, provider: SandboxProvider, brief: Brief, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
        monkeypatch.setenv("SOME_VARIABLE", "planted-too")
        with provider.provision(brief, KEY) as sandbox:
            output = run(sandbox, "env").output
        assert "planted" not in output
        names = {line.partition("=")[0] for line in output.splitlines()}
        allowed = {"PATH", "HOME", "TMPDIR", "LANG", "TZ", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "USER"}
        of_image = {"HOSTNAME", "NODE_COMPILE_CACHE"} if isinstance(provider, DockerProvider) else set()
        assert names - allowed - of_image <= {"DATACLAW_TRIAL", "DATACLAW_COMMAND", "PWD", "OLDPWD", "SHLVL", "_"}
        assert allowed <= names

    def test_the_same_everywhere(self, sandbox: Sandbox) -> None:
        output = run(sandbox, "echo $LANG $TZ $PYTHONHASHSEED; date -d @0 +%H").output
        assert output == "C.UTF-8 UTC 0\n00\n"

    def test_home_and_temporary_folder_are_writable_and_not_the_workspace(self, sandbox: Sandbox) -> None:
        result = run(sandbox, "echo x > $HOME/f && echo x > $TMPDIR/f && find . -name f")
        assert (result.output, result.exit_code) == ("", 0)

    def test_python(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "python3 -c 'import csv, json, statistics; print(3)'").output == "3\n"

    def test_trials_do_not_see_each_other(self, provider: SandboxProvider, brief: Brief) -> None:
        with provider.provision(brief, KEY) as first, provider.provision(brief, KEY) as second:
            run(first, "echo mine > note; echo x >> database/deep/er/b.csv")
            assert run(second, "ls; cat database/deep/er/b.csv").output == "database\n"


class TestTimeLimit:
    def test_output_so_far_is_kept(self, sandbox: Sandbox) -> None:
        started = time.monotonic()
        result = run(sandbox, "echo so far; sleep 60; echo never", timeout=0.5)
        assert result == ExecResult("so far\n", None, timed_out=True)
        assert 0.5 <= time.monotonic() - started < 4

    def test_all_children_are_killed(self, sandbox: Sandbox, label: str) -> None:
        command = f"{sleeper(label)} & {sleeper(label, 'setsid')} & {sleeper(label, 'nohup')} & wait"
        assert run(sandbox, command, timeout=1.0).timed_out
        wait_for(label, 0)

    def test_a_command_that_ignores_signals(self, sandbox: Sandbox, label: str) -> None:
        started = time.monotonic()
        command = f"trap '' TERM INT HUP; {sleeper(label, 'setsid')} & {sleeper(label)}; sleep 60"
        assert run(sandbox, command, timeout=0.5).timed_out
        assert time.monotonic() - started < 4
        wait_for(label, 0)

    def test_a_command_that_prints_without_end(self, sandbox: Sandbox) -> None:
        started = time.monotonic()
        result = run(sandbox, "yes", timeout=0.5)
        assert result.timed_out
        assert time.monotonic() - started < 4

    def test_a_command_that_closed_its_output(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "exec >&- 2>&-; sleep 60", timeout=0.5).timed_out
        assert run(sandbox, "echo a; exec >&- 2>&-; sleep 0.2; exit 6") == ExecResult("a\n", 6)

    def test_earlier_background_processes_live_on(self, sandbox: Sandbox, label: str) -> None:
        run(sandbox, f"{sleeper(label)} > /dev/null 2>&1 &")
        wait_for(label, 1)
        assert run(sandbox, "sleep 60", timeout=0.3).timed_out
        assert alive(label) == 1


class TestBackground:
    def test_a_child_that_holds_the_output_does_not_delay_the_end(self, sandbox: Sandbox, label: str) -> None:
        started = time.monotonic()
        assert run(sandbox, f"{sleeper(label)} & echo done; exit 3") == ExecResult("done\n", 3)
        assert time.monotonic() - started < 3
        wait_for(label, 1)

    def test_a_child_that_prints_without_end_does_not_delay_the_end(self, sandbox: Sandbox) -> None:
        started = time.monotonic()
        assert run(sandbox, "yes & echo done; exit 3").exit_code == 3
        assert time.monotonic() - started < 3

    def test_stop_leaves_nothing(self, sandbox: Sandbox, label: str) -> None:
        run(sandbox, f"{sleeper(label)} & {sleeper(label, 'setsid')} & {sleeper(label, 'nohup setsid')} & true")
        run(sandbox, f"{sleeper(label, 'env -i PATH=$PATH')} > /dev/null 2>&1 & true")
        run(sandbox, f"set -m; ({sleeper(label)} &) > /dev/null 2>&1")
        wait_for(label, 5)
        sandbox.stop()
        wait_for(label, 0)

    def test_stop_may_be_called_again_and_ends_the_commands(self, sandbox: Sandbox) -> None:
        sandbox.stop()
        sandbox.stop()
        with pytest.raises(SandboxError, match="stopped"):
            run(sandbox, "true")

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_leaving_stops_everything_whatever_happened(
        self, provider: SandboxProvider, brief: Brief, label: str, error: type[BaseException], base: Path
    ) -> None:
        def trial() -> None:
            with provider.provision(brief, KEY) as sandbox:
                run(sandbox, f"{sleeper(label, 'setsid')} > /dev/null & true")
                wait_for(label, 1)
                raise error

        with pytest.raises(error):
            trial()
        wait_for(label, 0)
        close(provider)
        assert list(base.iterdir()) == []


class TestVerify:
    def test_digest_of_the_data(self, sandbox: Sandbox) -> None:
        first, second = hashlib.sha256(BYTES).hexdigest(), hashlib.sha256(b"").hexdigest()
        lines = f"{first}  database/a.csv\n{second}  database/deep/er/b.csv\n"
        assert sandbox.digests()["data"] == hashlib.sha256(lines.encode()).hexdigest()

    def test_untouched(self, sandbox: Sandbox) -> None:
        sandbox.stop()
        sandbox.verify()

    def test_touched_but_equal(self, sandbox: Sandbox, assets: Path) -> None:
        (assets / "database/a.csv").touch()
        sandbox.verify()

    def test_changed_under_the_same_size_and_time(self, sandbox: Sandbox, assets: Path) -> None:
        file = assets / "database/a.csv"
        before = file.stat()
        file.write_bytes(BYTES[::-1])
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = file.stat()
        assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        with pytest.raises(SandboxError, match=r"a\.csv"):
            sandbox.verify()

    def test_removed(self, sandbox: Sandbox, assets: Path) -> None:
        (assets / "database/policy/b.csv").unlink()
        with pytest.raises(SandboxError, match=r"b\.csv"):
            sandbox.verify()

    def test_no_later_trial_works_on_what_was_changed(
        self, provider: SandboxProvider, brief: Brief, assets: Path
    ) -> None:
        with provider.provision(brief, KEY):
            (assets / "database/a.csv").write_bytes(b"changed")
        with pytest.raises(SandboxError, match=r"a\.csv"), provider.provision(brief, KEY):
            pytest.fail("provided")
        (assets / "database/a.csv").write_bytes(BYTES)
        with provider.provision(brief, KEY) as sandbox:
            sandbox.verify()
