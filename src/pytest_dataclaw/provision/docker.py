"""The Docker sandbox: a container per trial without a network, that reaches its model through one unix socket.

In the container is what the image holds (any with Node 22, bash, and the agent's runtime), our programs, and the
brief's files, mounted read-only from a copy. Its main process forwards to the socket and ends by itself, so that no
container outlives its run for long; the engine then removes it. That of a web task has no network either, but a second
socket, at which the egress proxy is served.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.base import PROGRAMS
from pytest_dataclaw.provision.container import EGRESS_PORT, MODEL_PORT, WORKSPACE, DockerSandbox, Engine
from pytest_dataclaw.provision.engine import connect, engine_errors, remove
from pytest_dataclaw.provision.events import EventStream
from pytest_dataclaw.provision.outfit import agent_user, outfit
from pytest_dataclaw.provision.owner import FOLDER_PREFIX, OWNER_LABEL, RUN_LABEL, TRIAL_LABEL, this_process
from pytest_dataclaw.provision.shared_data import SharedData
from pytest_dataclaw.provision.workspace import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker.models.containers import Container

    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.model.task import Brief
    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.provision.shared_data import DataSet

SOCKET_ROOT = Path("/tmp")
"""Short, as the path of a unix socket is limited to about a hundred bytes."""
_SOCKET_FOLDER = "/run/dataclaw"
_SOCKET_NAME = "model.sock"
_EGRESS_NAME = "egress.sock"
_ENVIRONMENT = {
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}
"""All variables that a container gets besides its image's own, HOSTNAME, and those on its user; none is taken over from
this process."""
_PROXY_VARIABLES = {
    "HTTP_PROXY": f"http://127.0.0.1:{EGRESS_PORT}",
    "HTTPS_PROXY": f"http://127.0.0.1:{EGRESS_PORT}",
    "NO_PROXY": "127.0.0.1,localhost",
}
_WEB = {**_PROXY_VARIABLES, **{name.lower(): value for name, value in _PROXY_VARIABLES.items()}}
"""What those of web tasks get on top: the egress proxy, their only way out."""
_CLOSE_SECONDS = 30.0


class DockerProvider:
    """Makes Docker sandboxes; one per worker process, to be closed at its end.

    `seconds_for` says how long a brief's container may live, `grace` for how long it may find nobody listening on its
    socket. `memory` (swap included) is in Docker's notation, `cpus` in cores, `pids` counts threads. `packages` is a
    folder for the lists of what is installed in images, which take seconds to make. The engine is asked for at the
    first trial.
    """

    def __init__(
        self,
        image: str,
        *,
        seconds_for: Callable[[Brief], float],
        packages: Path,
        memory: str = "4g",
        cpus: float = 2.0,
        pids: int = 512,
        grace: float = 30.0,
        base: Path = SOCKET_ROOT,
    ) -> None:
        self._image = image
        self._seconds_for = seconds_for
        self._packages = packages
        self._memory = memory
        self._cpus = cpus
        self._pids = pids
        self._grace = grace
        self._base = base
        self._owner = str(this_process())
        self._folder: Path | None = None
        self._engine: Engine | None = None

    @contextmanager
    def provision(self, brief: Brief, key: TrialKey) -> Iterator[Sandbox]:
        """Enter a sealed container for one trial; SandboxError where engine, image or a file is missing."""
        engine, folder = self._open()
        data = engine.data.provide(brief.workspace_files)
        with _socket_folder(folder) as socket_folder:
            seconds = self._seconds_for(brief)
            container = self._create(engine, data, socket_folder, key, seconds, web=brief.web)
            try:
                with engine_errors("cannot put our programs into the container"):
                    container.put_archive("/", outfit(engine.user, WORKSPACE))
                egress = socket_folder / _EGRESS_NAME if brief.web else None
                sandbox = DockerSandbox(engine, container, data, socket_folder / _SOCKET_NAME, seconds, egress)
            except BaseException:
                remove(engine.client, str(container.id))
                raise
            try:
                yield sandbox
            finally:
                sandbox.stop()

    def close(self) -> None:
        """Wait until the engine has removed all containers, 30 s at most, then remove what is left. Idempotent."""
        engine, self._engine = self._engine, None
        folder, self._folder = self._folder, None
        try:
            if engine is not None:
                end = time.monotonic() + _CLOSE_SECONDS
                for container_id, watch in engine.events.remaining().items():
                    if not watch.removed.wait(max(0.0, end - time.monotonic())):
                        remove(engine.client, container_id)
                engine.events.close()
                engine.client.close()
        finally:
            if folder is not None:
                remove_tree(folder)

    def _open(self) -> tuple[Engine, Path]:
        """Return the engine and this provider's folder, which the first call makes."""
        if self._folder is None:
            try:
                self._folder = Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{self._owner}-", dir=self._base))
            except OSError as error:
                raise SandboxError(f"cannot make a folder below {self._base}: {error}") from error
        if self._engine is None:
            client = connect()
            try:
                with engine_errors(f"cannot use the image {self._image}"):
                    image = str(client.images.get(self._image).id)
                user = agent_user(client, image, {OWNER_LABEL: self._owner})
                events = EventStream(client, f"{OWNER_LABEL}={self._owner}")
            except BaseException:
                client.close()
                raise
            self._engine = Engine(client, events, image, user, SharedData(self._folder), self._packages)
        return self._engine, self._folder

    def _create(
        self, engine: Engine, data: DataSet, sockets: Path, key: TrialKey, seconds: float, *, web: bool
    ) -> Container:
        from docker.types import LogConfig, Mount

        def mount(source: Path, target: str) -> Mount:
            return Mount(target, str(source), type="bind", read_only=True)

        entry = ["--socket", f"{_SOCKET_FOLDER}/{_SOCKET_NAME}", "--port", str(MODEL_PORT)]
        if web:
            entry += ["--forward", f"{EGRESS_PORT}={_SOCKET_FOLDER}/{_EGRESS_NAME}"]
        files = [mount(data.folder / name, f"{WORKSPACE}/{name}") for name in data.entries]
        user = engine.user
        with engine_errors("cannot make the container"):
            return engine.client.containers.create(
                engine.image,
                [*entry, "--seconds", str(seconds), "--grace", str(self._grace)],
                entrypoint=["node", f"{PROGRAMS}/entry.mjs"],
                init=True,
                auto_remove=True,
                user=f"{user.uid}:{user.gid}",
                environment={**_ENVIRONMENT, "HOME": user.home, "USER": user.name, **(_WEB if web else {})},
                use_config_proxy=False,  # the SDK would pass on the proxies of this user's Docker configuration
                working_dir=WORKSPACE,
                mounts=[*files, mount(sockets, _SOCKET_FOLDER)],
                tmpfs={"/tmp": "exec,mode=1777,size=1g"},
                network_mode="none",
                # No name server of the host is told, and asking for a name fails at once.
                dns=["127.0.0.1"],
                dns_opt=["timeout:1", "attempts:1"],
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                mem_limit=self._memory,
                memswap_limit=self._memory,
                nano_cpus=round(self._cpus * 1e9),
                pids_limit=self._pids,
                log_config=LogConfig(type="json-file", config={"max-size": "5m", "max-file": "1"}),
                labels={OWNER_LABEL: self._owner, RUN_LABEL: key.run_id, TRIAL_LABEL: key.node_id},
            )


@contextmanager
def _socket_folder(base: Path) -> Iterator[Path]:
    """Make a folder that other users may reach into, but not list: the container's user is one."""
    try:
        folder = Path(tempfile.mkdtemp(dir=base))
        folder.chmod(0o711)
    except OSError as error:
        raise SandboxError(f"cannot make a folder for the model proxy's socket: {error}") from error
    try:
        yield folder
    finally:
        remove_tree(folder)
