"""The files of a brief as an agent's own copies, and the removal of the folder that held them."""

from __future__ import annotations

import fcntl
import os
import shutil
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.task import WorkspaceFile

_FICLONE = 0x40049409
"""ioctl of Linux (uapi/linux/fs.h): share the blocks of another file until one of the two is written to."""


def place(file: WorkspaceFile, workspace: Path) -> None:
    """Copy a file to its `dest` below the workspace; raise OSError where that fails, or if something is there."""
    if file.dest.is_absolute() or ".." in file.dest.parts:
        raise SandboxError(f"{file.dest}: the destination of a workspace file must lie below the workspace")
    target = workspace / file.dest
    target.parent.mkdir(parents=True, exist_ok=True)
    with file.source.open("rb") as source, target.open("xb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
        except OSError:  # the two lie on different file systems, or on one that cannot share blocks
            shutil.copyfile(file.source, target)


def remove_tree(root: Path) -> None:
    """Remove a folder with all that an agent may have left in it, locked folders too; links are not followed."""
    try:
        _unlock(root)
        shutil.rmtree(root)
    except (OSError, RecursionError) as error:
        raise SandboxError(f"cannot remove the trial's folder {root}: {error}") from error


def _unlock(root: Path) -> None:
    folders = [str(root)]
    while folders:
        folder = folders.pop()
        os.chmod(folder, 0o700)  # noqa: PTH101 - plain strings are twice as fast here, and trees may be large
        with os.scandir(folder) as entries:
            folders.extend(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
