"""The files of briefs for sandboxes that mount them: one read-only copy for all trials that use the same set."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.digests import DigestCache, combined_sha256
from pytest_dataclaw.provision.workspace import place

if TYPE_CHECKING:
    from pytest_dataclaw.model.task import WorkspaceFile


@dataclass(frozen=True, slots=True)
class DataSet:
    """A folder that holds the files of a brief at their `dest` and nothing else, and one digest over all of them."""

    folder: Path
    digest: str
    files: tuple[WorkspaceFile, ...]

    @property
    def entries(self) -> tuple[str, ...]:
        """The names at the top of the folder: what is mounted, each at its place in the workspace."""
        return tuple(sorted({file.dest.parts[0] for file in self.files}))


class SharedData:
    """Copies sets of files below `base`, each set once.

    Copies, not hard links or the files themselves: the assets may be unreadable for the container's user, lie on
    another file system, and have neighbours (the gold) that no mount may come near. Where the file system can, a copy
    shares the original's blocks.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._cache = DigestCache()
        self._sets: dict[tuple[WorkspaceFile, ...], DataSet] = {}

    def provide(self, files: tuple[WorkspaceFile, ...]) -> DataSet:
        """Return the copy of a set; SandboxError if a file is missing or is not what it was at first."""
        known = self._sets.get(files)
        if known is None:
            known = self._sets[files] = self._copy(files)
        self.check(known)
        return known

    def check(self, data: DataSet) -> None:
        """Raise SandboxError, naming the file, if an original or its copy is not what it was when it was copied."""
        for file in data.files:
            for path in (file.source, data.folder / file.dest):
                try:
                    self._cache.check(path)
                except OSError as error:
                    raise SandboxError(f"{path}: cannot be read: {error}") from error

    def _copy(self, files: tuple[WorkspaceFile, ...]) -> DataSet:
        try:
            folder = Path(tempfile.mkdtemp(dir=self._base))
        except OSError as error:
            raise SandboxError(f"cannot make a folder for the task's files: {error}") from error
        digests = {}
        for file in files:
            try:
                digests[file.dest] = self._cache.check(file.source)
                place(file, folder)
                copied = self._cache.check(folder / file.dest)
            except OSError as error:
                raise SandboxError(f"cannot provide {file.dest} from {file.source}: {error}") from error
            if copied != digests[file.dest]:
                raise SandboxError(f"{file.source}: changed while it was copied")
            _open_to_all(folder, file)
        return DataSet(folder, combined_sha256(digests), files)


def _open_to_all(folder: Path, file: WorkspaceFile) -> None:
    """Let every user read a copy, whatever the umask; the container's user has another id than this process."""
    (folder / file.dest).chmod(0o444)
    for parent in file.dest.parents:
        (folder / parent).chmod(0o755)
