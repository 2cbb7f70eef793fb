"""What a container of any image gets before it starts: our programs, and a workspace that belongs to its user."""

from __future__ import annotations

import io
import re
import tarfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.base import PROGRAMS
from pytest_dataclaw.provision.engine import engine_errors, remove
from pytest_dataclaw.provision.recipe import recipe_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import DockerClient

_AGENT = re.compile(rb"^agent:[^:]*:(\d+):(\d+):[^:]*:(/[^:]*):", re.MULTILINE)
"""The line of passwd(5) on the user `agent`."""


@dataclass(frozen=True, slots=True)
class AgentUser:
    """The user that everything in a container runs as; `home` is a folder there."""

    name: str
    uid: int
    gid: int
    home: str


_ROOT = AgentUser("root", 0, 0, "/root")


def agent_user(client: DockerClient, image: str, labels: Mapping[str, str]) -> AgentUser:
    """Return the user `agent` of an image, root where it has none; looked up in a container that is never started."""
    with engine_errors(f"cannot look into the image {image}"):
        container: str = client.api.create_container(image, ["true"], labels=dict(labels))["Id"]
        try:
            users = _read(client, container, "/etc/passwd")
        finally:
            remove(client, container)
    agent = _AGENT.search(users)
    return _ROOT if agent is None else AgentUser("agent", int(agent[1]), int(agent[2]), agent[3].decode())


def outfit(user: AgentUser, workspace: str) -> bytes:
    """Return a tar file for the container's root: the programs, which only root may change, and the user's workspace.

    SandboxError where the programs are not to be found.
    """
    programs = sorted((recipe_folder() / "docker").glob("*.mjs"))
    if not programs:
        raise SandboxError(f"{recipe_folder()} holds no docker/*.mjs: pytest-dataclaw is not installed in full")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(_entry(PROGRAMS, tarfile.DIRTYPE, _ROOT))
        for program in programs:
            data = program.read_bytes()
            entry = _entry(f"{PROGRAMS}/{program.name}", tarfile.REGTYPE, _ROOT)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        tar.addfile(_entry(workspace, tarfile.DIRTYPE, user))
    return buffer.getvalue()


def _read(client: DockerClient, container: str, path: str) -> bytes:
    """Return a regular file of a container; nothing where there is none."""
    from docker.errors import NotFound

    try:
        pieces, _ = client.api.get_archive(container, path)
    except NotFound:
        return b""
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as tar:
        file = tar.extractfile(tar.getmembers()[0])
        return b"" if file is None else file.read()


def _entry(path: str, kind: bytes, owner: AgentUser) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type = kind
    entry.mode = 0o755 if kind == tarfile.DIRTYPE else 0o444
    entry.uid, entry.gid = owner.uid, owner.gid
    entry.mtime = int(time.time())
    return entry
