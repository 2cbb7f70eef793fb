"""The local sandbox: a fresh folder on this machine, for the built-in models and for code that is trusted.

It isolates nothing: a command can read and write whatever the user can, and reach the network. It gives each trial
its own copies, a clean environment and a sure end, and it notices when a benchmark file was changed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.base import ExecResult
from pytest_dataclaw.provision.command import ShellCommand
from pytest_dataclaw.provision.digests import DigestCache, combined_sha256
from pytest_dataclaw.provision.processes import kill_all
from pytest_dataclaw.provision.workspace import place, remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_dataclaw.model.run import ModelEndpoint, TrialKey
    from pytest_dataclaw.model.task import Brief, WorkspaceFile
    from pytest_dataclaw.provision.base import Sandbox

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TRIAL_MARK = "DATACLAW_TRIAL"
_COMMAND_MARK = "DATACLAW_COMMAND"


class LocalSandbox:
    """A folder with `workspace/`, `home/` and `tmp/`; isolates nothing (see the module's docstring)."""

    kind = "local"
    socket = None
    egress_socket = None

    def __init__(self, root: Path, brief: Brief, cache: DigestCache) -> None:
        self._trial = secrets.token_hex(16)
        self._cache = cache
        self._commands: list[ShellCommand] = []
        self._started = 0
        self._stopped = False
        self._environment = _environment(root, self._trial)
        self._shell = _shell(self._environment["PATH"])
        self.workspace = str(root / "workspace")
        self.home = self._environment["HOME"]
        for name in ("workspace", "home", "tmp"):
            (root / name).mkdir()
        self._digests = {file: self._provide(file) for file in brief.workspace_files}

    def reach(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """Return the endpoint as it is: what runs here reaches this machine's loopback."""
        return endpoint

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file for this user only."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)

    def read_file(self, path: str, *, limit: int) -> bytes | None:
        """Return the start of a regular file; a link or a pipe, which the agent may have put there, is none."""
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return None
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return file.read(limit)
        except OSError:
            return None

    def fate(self) -> None:
        """A folder does not end by itself."""

    def exec(self, command: str, *, timeout: float) -> ExecResult:
        """Run a command in the workspace; a workspace that the agent made unusable is the command's failure."""
        if self._stopped:
            raise SandboxError("the sandbox has been stopped; it runs no more commands")
        self._started += 1
        number = f"{self._trial}-{self._started}"
        try:
            running = ShellCommand(
                command,
                shell=self._shell,
                folder=self.workspace,
                environment={**self._environment, _COMMAND_MARK: number},
                mark=f"{_COMMAND_MARK}={number}",
            )
        except OSError as error:
            if error.filename == self.workspace:
                return ExecResult(f"cannot enter the working directory: {error.strerror}\n", 126)
            raise SandboxError(f"cannot start a command: {error}") from error
        self._commands.append(running)
        return running.result(timeout)

    def stop(self) -> None:
        """Kill all process groups and, on Linux, all processes that carry the trial's mark. Idempotent."""
        self._stopped = True
        kill_all([command.group for command in self._commands], f"{_TRIAL_MARK}={self._trial}")
        while self._commands:
            self._commands.pop().reap()

    def verify(self) -> None:
        """Raise SandboxError, naming the file, if an original is not what it was when the trial began."""
        for file in self._digests:
            try:
                self._cache.check(file.source)
            except OSError as error:
                raise SandboxError(f"{file.source}: cannot be read after the trial: {error}") from error

    def digests(self) -> Mapping[str, str]:
        """Return `data`: one digest over all files provided and their places."""
        return {"data": combined_sha256({file.dest: digest for file, digest in self._digests.items()})}

    def _provide(self, file: WorkspaceFile) -> str:
        """Copy a file to its place and return the digest of the original."""
        try:
            digest = self._cache.check(file.source)
            place(file, Path(self.workspace))
        except OSError as error:
            raise SandboxError(f"cannot provide {file.dest} from {file.source}: {error}") from error
        return digest


class LocalProvider:
    """Makes local sandboxes below `base` (the system's temporary folder by default); one per worker process."""

    def __init__(self, base: Path | None = None) -> None:
        self._base = base
        self._cache = DigestCache()

    @contextmanager
    def provision(self, brief: Brief, key: TrialKey) -> Iterator[Sandbox]:
        """Enter a sandbox for one trial; raise SandboxError where its folder or a file cannot be made."""
        try:
            root = Path(tempfile.mkdtemp(prefix=f"dataclaw-{key.run_id}-", dir=self._base))
        except OSError as error:
            raise SandboxError(f"cannot make a folder for the trial: {error}") from error
        try:
            sandbox = LocalSandbox(root, brief, self._cache)
            try:
                yield sandbox
            finally:
                sandbox.stop()
        finally:
            remove_tree(root)

    def close(self) -> None:
        """Nothing is left: a folder is removed before its trial ends."""


def _environment(root: Path, trial: str) -> dict[str, str]:
    """Return all variables that a command gets: made up here, none taken over from this process."""
    return {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), _SYSTEM_PATH)),
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "USER": "agent",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        _TRIAL_MARK: trial,
    }


def _shell(path: str) -> str:
    shell = shutil.which("bash", path=path) or shutil.which("sh", path=path)
    if shell is None:
        raise SandboxError(f"neither bash nor sh is on {path}")
    return shell
