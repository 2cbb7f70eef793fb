from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.task import WorkspaceFile
from pytest_dataclaw.provision.workspace import place, remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534


@pytest.fixture
def file(tmp_path: Path) -> WorkspaceFile:
    source = tmp_path / "a.csv"
    source.write_bytes(b"abc")
    source.chmod(0o444)
    return WorkspaceFile(source, PurePosixPath("database/x/a.csv"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user whom locks keep out; root, whom none do, becomes nobody for the while."""
    folder = Path(tempfile.mkdtemp())
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_a_copy_is_writable_and_its_own(file: WorkspaceFile, target: Path) -> None:
    place(file, target)
    copy = target / "database/x/a.csv"
    assert copy.stat().st_mode & stat.S_IWUSR
    assert not copy.is_symlink()
    assert copy.stat().st_ino != file.source.stat().st_ino
    copy.write_bytes(b"xyz")
    assert file.source.read_bytes() == b"abc"


def test_blocks_are_shared_where_the_file_system_can(
    file: WorkspaceFile, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clone(copy: int, request: int, source: int) -> int:
        assert request == 0x40049409  # FICLONE
        assert os.pread(source, 9, 0) == b"abc"
        return os.write(copy, b"shared")

    monkeypatch.setattr(fcntl, "ioctl", clone)
    place(file, target)
    assert (target / "database/x/a.csv").read_bytes() == b"shared"


def test_nothing_is_overwritten(file: WorkspaceFile, target: Path) -> None:
    place(file, target)
    with pytest.raises(FileExistsError):
        place(file, target)


def test_locked_folders_are_removed(unprivileged: Path) -> None:
    root = unprivileged / "trial"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch(0o000)
    for folder, mode in ((root / "a" / "b", 0o000), (root / "a", 0o500), (root, 0o000)):
        folder.chmod(mode)
    with pytest.raises(PermissionError):
        shutil.rmtree(root)
    remove_tree(root)
    assert not root.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(0o750)
    (outside / "kept").touch(0o400)
    root = tmp_path / "trial"
    root.mkdir()
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "kept")
    (root / "dangling").symlink_to(tmp_path / "absent")
    remove_tree(root)
    assert not root.exists()
    assert (outside / "kept").exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o750


def test_a_folder_that_cannot_be_removed_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="absent"):
        remove_tree(tmp_path / "absent")
