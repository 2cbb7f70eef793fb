"""A trial's container as a sandbox: commands and files in it, its end, and what became of it."""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError, UsageError
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.provision.base import ExecResult, Fate
from pytest_dataclaw.provision.capture import HeadTail
from pytest_dataclaw.provision.container_script import ContainerScript
from pytest_dataclaw.provision.engine import engine_errors, listens
from pytest_dataclaw.provision.image import package_hash
from pytest_dataclaw.provision.inside import AWAIT_PORT, NOTHING, READ, RUN, SIGNAL, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from docker import DockerClient
    from docker.models.containers import Container

    from pytest_dataclaw.model.run import ModelEndpoint
    from pytest_dataclaw.provision.events import EventStream, Watch
    from pytest_dataclaw.provision.outfit import AgentUser
    from pytest_dataclaw.provision.shared_data import DataSet, SharedData

WORKSPACE = "/tmp_workspace"
MODEL_PORT = 18999
"""Where the image's main process forwards from, on the container's own loopback."""
EGRESS_PORT = 18998
"""The same for the egress proxy, in containers of web tasks."""

_MARK = "DATACLAW_COMMAND"
_KEEP_BYTES = 64 * 1024
"""How much of a command's output is kept at either end, as in the local sandbox."""
_GRACE_SECONDS = 0.5
"""Between SIGTERM and SIGKILL."""
_DRAIN_SECONDS = 0.2
"""How long output may still come in once a command's processes have been killed."""
_FILE_SECONDS = 60.0
_ENGINE_SECONDS = 15.0
"""How long may take what the engine normally does in a tenth of a second."""

_BAD_START, _PROXY_GONE, _TIME_UP = 119, 121, 124
"""Exit codes of the image's main process, docker/entry.mjs."""
_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Engine:
    """What all sandboxes of a provider share; `image` is the image's id, `packages` a folder for lists of packages."""

    client: DockerClient
    events: EventStream
    image: str
    user: AgentUser
    data: SharedData
    packages: Path


class _EndedError(Exception):
    """The container has ended from inside; never leaves the sandbox."""

    def __init__(self, fate: Fate) -> None:
        self.fate = fate


class DockerSandbox:
    """A container that runs for `seconds` at most. Where it ended from inside, `fate` says why, and commands fail."""

    kind = "docker"
    workspace = WORKSPACE

    def __init__(
        self,
        engine: Engine,
        container: Container,
        data: DataSet,
        socket_path: Path,
        seconds: float,
        egress_socket: Path | None = None,
    ) -> None:
        assert container.id is not None
        self.egress_socket = egress_socket
        self.home = engine.user.home
        self._engine = engine
        self._id = container.id
        self._watch: Watch = engine.events.watch(container.id)
        self._data = data
        self._seconds = seconds
        self._started_at = time.time()
        self._commands = 0
        self._stopped = False
        self._killed_by_us = False
        self._socket = socket_path
        with engine_errors("cannot start the container"):
            container.start()

    @property
    def socket(self) -> Path:
        """Where the proxy has to listen for this trial."""
        return self._socket

    @property
    def sealed(self) -> bool:
        """Whether there is no way out but to the model; for a web task there is one through the egress proxy."""
        return self.egress_socket is None

    def reach(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        """Return the endpoint at the forwarder's port."""
        return replace(endpoint, base_url=f"http://127.0.0.1:{MODEL_PORT}/v1")

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file as the agent's user, in place of what is there; in a container that has ended, do nothing."""
        with suppress(_EndedError):
            code = self._run(WRITE, path, timeout=_FILE_SECONDS, stdin=data)
            if code != 0:
                raise SandboxError(f"cannot write {path} in the container: exit code {code}")

    def read_file(self, path: str, *, limit: int) -> bytes | None:
        """Return the start of a regular file that the agent's user may read; None too if the container has ended."""
        content = bytearray()
        with suppress(_EndedError):
            if self._run(READ, path, str(limit), timeout=_FILE_SECONDS, sink=content.extend) == 0:
                return bytes(content)
        return None

    def exec(self, command: str, *, timeout: float) -> ExecResult:
        """Run a command in the workspace. In a container that has ended, its output says so and it counts as killed."""
        output = HeadTail(_KEEP_BYTES)
        stdin = command.encode("utf-8", "replace")
        try:
            code = self._run(RUN, WORKSPACE, timeout=timeout, stdin=stdin, sink=output.feed)
        except _EndedError as ended:
            text = f"{output.text()}[the sandbox has ended: {ended.fate.detail}]\n"
            return ExecResult(text, -9, dropped_bytes=output.dropped)
        return ExecResult(output.text(), _signed(code), code is None, output.dropped)

    def stop(self) -> None:
        """Kill the container and wait for its end; the engine removes it afterwards. Idempotent."""
        from docker.errors import APIError

        self._stopped = True
        if self._watch.ended.is_set():
            return
        with engine_errors("cannot stop the container"):
            try:
                self._engine.client.api.kill(self._id)
                self._killed_by_us = True
            except APIError as error:  # it has ended meanwhile (409), or is removed already (404)
                if error.status_code not in (404, 409):
                    raise
        if not self._watch.ended.wait(_ENGINE_SECONDS):
            raise SandboxError(f"the container {self._id[:12]} has not ended {_ENGINE_SECONDS:g} s after it was killed")

    def verify(self) -> None:
        """Raise SandboxError, naming the file, if an original or the copy that was mounted has changed."""
        self._engine.data.check(self._data)

    def fate(self) -> Fate | None:
        """Tell why the container ended before `stop`, if what is in it was the cause; SandboxError for other causes."""
        if self._killed_by_us or not self._watch.ended.is_set():
            self._engine.events.check()
            return None
        self._watch.removed.wait(_ENGINE_SECONDS)  # all that the engine tells of its end has been told by then
        watch = self._watch
        if watch.exit_code is None or watch.was_killed:
            self._engine.events.check()
            raise SandboxError("the container was killed or removed by somebody outside")
        if watch.ran_out_of_memory:
            return Fate(EndReason.OOM, "the container ended as memory ran out")
        if cause := self._failure(watch.exit_code, watch.ended_at / 1e9 - self._started_at):
            raise SandboxError(f"the container ended by itself: {cause}")
        return Fate(EndReason.AGENT_CRASH, f"the container's main process ended with exit code {watch.exit_code}")

    def digests(self) -> Mapping[str, str]:
        """Return `data`, `image` (its id) and `packages` (of the list of all that is installed in it)."""
        engine = self._engine
        try:
            packages = package_hash(engine.client, engine.image, engine.packages)
        except UsageError as error:
            raise SandboxError(str(error)) from error
        return {"data": self._data.digest, "image": engine.image, "packages": packages}

    def _run(
        self,
        script: str,
        *arguments: str,
        timeout: float,
        stdin: bytes = b"",
        sink: Callable[[bytes], object] = lambda piece: None,
    ) -> int | None:
        """Run a script; return its exit code, or None if time was up and it was killed with all its children."""
        if self._stopped:
            raise SandboxError("the sandbox has been stopped; it runs no more commands")
        self._commands += 1
        if self._commands == 1:
            # The main process, a Node program, takes longer to start than this: nobody may find its port closed.
            script = AWAIT_PORT.format(port=MODEL_PORT) + script
        mark = f"{_MARK}={self._commands}"
        try:
            with closing(self._start(script, *arguments, environment=[mark], stdin=stdin, sink=sink)) as running:
                if not running.run(timeout):
                    self._kill(running, mark)
                    return None
                code = running.exit_code()
        except SandboxError:
            self._raise_if_ended()
            raise
        if code in (126, 137):  # what the engine says where a container has just ended; commands may exit so, too
            self._raise_if_ended()
        return code

    def _start(
        self,
        script: str,
        *arguments: str,
        environment: Sequence[str] = (),
        stdin: bytes = b"",
        sink: Callable[[bytes], object] = lambda piece: None,
    ) -> ContainerScript:
        api = self._engine.client.api
        return ContainerScript(api, self._id, script, *arguments, environment=environment, stdin=stdin, sink=sink)

    def _kill(self, running: ContainerScript, mark: str) -> None:
        groups = self._signal("TERM", mark)
        running.run(_GRACE_SECONDS)
        self._signal("KILL", mark, *groups)
        running.run(_DRAIN_SECONDS)

    def _signal(self, name: str, mark: str, *groups: str) -> list[str]:
        """Signal the processes that carry a mark, and return their groups."""
        printed = bytearray()
        with closing(self._start(SIGNAL, name, mark, *groups, sink=printed.extend)) as running:
            if not running.run(_ENGINE_SECONDS) or running.exit_code() != 0:
                raise SandboxError("the processes of a command whose time was up cannot be killed")
        return printed.decode().split()

    def _raise_if_ended(self) -> None:
        """Return if the container runs; the engine knows of its end a moment later than those who ran in it."""
        if not self._watch.ended.is_set():
            if self._answers():
                return
            if not self._watch.ended.wait(_ENGINE_SECONDS):
                raise SandboxError("the container runs no commands any more")
        fate = self.fate()
        if fate is not None:
            raise _EndedError(fate)

    def _answers(self) -> bool:
        try:
            with closing(self._start(NOTHING)) as running:
                return running.run(_ENGINE_SECONDS) and running.exit_code() == 0
        except SandboxError:
            return False

    def _failure(self, exit_code: int, lifetime: float) -> str:
        """Return which failure of ours an exit code tells of; "" for none.

        The agent may have made the main process exit so: what is not seen from here too is taken for its doing.
        """
        if exit_code == _BAD_START and lifetime < _START_SECONDS:
            return "its main process could not start"
        if exit_code == _PROXY_GONE and not listens(self._socket):
            return "the model proxy did not listen"
        if exit_code == _TIME_UP and lifetime >= self._seconds:
            return f"nobody had stopped it after {self._seconds:g} s"
        return ""


def _signed(code: int | None) -> int | None:
    """Return an exit code with signal n as -n, as `subprocess` has it."""
    return 128 - code if code is not None and 128 < code <= 128 + 64 else code
