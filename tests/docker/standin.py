"""A small sandbox for tests of the OpenClaw agent: one sealed container, many turns, each with a home of its own."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from docker.errors import NotFound

from pytest_dataclaw.provision.base import ExecResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from docker.models.containers import Container

    from docker import DockerClient
    from pytest_dataclaw.model.run import ModelEndpoint
    from pytest_dataclaw.provision.base import Fate

MODEL_PORT = 18999
_USER_ID = 1000
_TIMED_OUT = 124


class StandIn:
    """A sandbox on a container that runs; `stop` ends what was started in it and leaves the container as it was."""

    kind = "docker"
    socket = None
    workspace = "/tmp_workspace"

    def __init__(self, container: Container) -> None:
        self.container = container

    def reach(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        return endpoint

    def write_file(self, path: str, data: bytes) -> None:
        *parents, _ = reversed(PurePosixPath(path).parents)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for folder in [parent for parent in [*parents, PurePosixPath(path).parent] if len(parent.parts) > 3]:
                entry = tarfile.TarInfo(str(folder.relative_to("/")))
                entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o700, _USER_ID, _USER_ID
                tar.addfile(entry)
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.uid, entry.gid = len(data), 0o600, _USER_ID, _USER_ID
            tar.addfile(entry, io.BytesIO(data))
        assert self.container.put_archive("/", buffer.getvalue())

    def read_file(self, path: str, *, limit: int) -> bytes | None:
        try:
            stream, _ = self.container.get_archive(path)
        except NotFound:
            return None
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            file = tar.extractfile(tar.getmembers()[0])
            return None if file is None else file.read(limit)

    def exec(self, command: str, *, timeout: float) -> ExecResult:
        argv = ["timeout", "--kill-after=1", f"{timeout:.3f}", "bash", "-c", command]
        code, output = self.container.exec_run(argv, workdir=self.workspace)
        text = output.decode("utf-8", "replace") if isinstance(output, bytes) else ""
        return ExecResult(text, None if code == _TIMED_OUT else code, code == _TIMED_OUT)

    def stop(self) -> None:
        keep = r"/docker-init|\/opt\/dataclaw\/entry.mjs|ps -eo/"
        self.exec(f"ps -eo pid=,args= | awk '!{keep} {{print $1}}' | xargs --no-run-if-empty kill -9", timeout=20)

    def verify(self) -> None:
        pass

    def fate(self) -> Fate | None:
        return None

    def digests(self) -> Mapping[str, str]:
        return {}

    def processes(self) -> list[str]:
        return self.exec("ps -eo args=", timeout=20).output.splitlines()

    def json_file(self, path: str) -> object:
        data = self.read_file(path, limit=1 << 20)
        assert data is not None, path
        return json.loads(data)


@contextmanager
def sealed_container(client: DockerClient, image: str, folder: Path, database: Path) -> Iterator[StandIn]:
    """Run a container without a network; `folder` holds the model's socket, `database` the task's files."""
    container = client.containers.run(
        image,
        ["--socket", "/run/dataclaw/model.sock", "--port", str(MODEL_PORT), "--seconds", "900"],
        entrypoint=["node", "/opt/dataclaw/entry.mjs"],
        detach=True,
        network_mode="none",
        init=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": "exec"},
        volumes={
            str(folder): {"bind": "/run/dataclaw", "mode": "ro"},
            str(database): {"bind": "/tmp_workspace/database", "mode": "ro"},
        },
    )
    try:
        yield StandIn(container)
    finally:
        container.remove(force=True, v=True)
