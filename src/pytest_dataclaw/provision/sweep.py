"""Remove what dead runs left behind; live ones are spared."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from pytest_dataclaw.provision.docker import SOCKET_ROOT
from pytest_dataclaw.provision.engine import connect, engine_errors, remove
from pytest_dataclaw.provision.owner import FOLDER_PREFIX, OWNER_LABEL, RUN_LABEL, read_owner
from pytest_dataclaw.provision.workspace import remove_tree

if TYPE_CHECKING:
    from pathlib import Path


def sweep(run_id: str | None = None, *, base: Path = SOCKET_ROOT) -> list[str]:
    """Remove containers and folders whose process on this machine has ended; return their ids and paths.

    `run_id` leaves the containers of other runs alone; folders do not tell their run. SandboxError where no engine
    answers. A container ends by itself and is then removed by the engine, unless it never started.
    """
    with closing(connect()) as client:
        labels = [OWNER_LABEL] if run_id is None else [OWNER_LABEL, f"{RUN_LABEL}={run_id}"]
        with engine_errors("cannot list the containers"):
            containers = client.api.containers(all=True, filters={"label": labels})
        orphans = [found["Id"] for found in containers if _is_orphan(found["Labels"][OWNER_LABEL])]
        for container_id in orphans:
            remove(client, container_id)
    return orphans + _sweep_folders(base)


def _sweep_folders(base: Path) -> list[str]:
    removed = []
    for folder in base.glob(f"{FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).rpartition("-")[0]
        if _is_orphan(owner) and not folder.is_symlink() and folder.stat().st_uid == os.getuid():
            remove_tree(folder)
            removed.append(str(folder))
    return removed


def _is_orphan(owner: str) -> bool:
    process = read_owner(owner)
    return process is not None and process.is_gone
