"""The folder that holds a benchmark's `assets/`, and what its tasks share there."""

from __future__ import annotations

import os
import re
import stat
from functools import cached_property
from pathlib import Path, PurePosixPath

from pytest_dataclaw.errors import TaskError
from pytest_dataclaw.model.task import WorkspaceFile

BILINGUAL_MAP = "database/bilingual_translation_english_chinese.json"
_HOST_ONLY = frozenset({"qa_gold", "qa_raw", "solutions"})
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LFS_POINTER_BYTES = 1024  # the LFS specification keeps pointers below this size
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class AssetError(Exception):
    """What is wrong with a path that a task names; `key` is `source` or `dest`."""

    def __init__(self, message: str, key: str = "source") -> None:
        super().__init__(message)
        self.key = key


class BenchmarkRoot:
    """A benchmark root. What is found out about shared files is remembered for the life of the object."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.assets = self.path / "assets"
        self._real_assets = Path(os.path.realpath(self.assets))
        self._holding: dict[str, bool] = {}
        self._workspace_files: dict[tuple[str, str], WorkspaceFile] = {}
        self._aliases: tuple[frozenset[str], ...] | None = None
        self.latest_list: tuple[list[object], tuple[WorkspaceFile, ...]] = ([], ())
        """The entries of the `workspace_files` that were checked last, and their files; tasks mostly share one list."""

    def asset(self, relative: str) -> Path:
        """Return the regular file at a path below `assets/`; raise AssetError if there is none or it lies elsewhere."""
        _check_relative(relative, "source")
        path = self.assets / relative
        place = str(path)
        try:
            mode = os.lstat(place).st_mode
            is_link = stat.S_ISLNK(mode)
            if is_link:
                mode = os.stat(place).st_mode  # noqa: PTH116  # a text costs a third of a Path here
        except OSError as exc:
            raise AssetError(f"absent file: {path}: {exc.strerror or exc}") from exc
        if not stat.S_ISREG(mode):
            raise AssetError(f"expected a regular file: {path}")
        if not (self._is_inside(place) if is_link else self._holds(os.path.dirname(place))):  # noqa: PTH120  # likewise
            raise AssetError(f"leaves the benchmark's assets by a symbolic link: {relative}")
        return path

    def workspace_file(self, source: str, dest: str) -> WorkspaceFile:
        """Return the file that a task puts into its workspace, checked once; raise AssetError if it cannot be used."""
        known = self._workspace_files.get((source, dest))
        if known is None:
            path = self._data_file(source)
            _check_relative(dest, "dest")
            known = WorkspaceFile(path, PurePosixPath(dest))
            self._workspace_files[source, dest] = known
        return known

    @cached_property
    def has_solutions(self) -> bool:
        """Whether any task of the benchmark may have step scripts; published ones have none."""
        return (self.assets / "solutions").is_dir()

    def solution_dir(self, category: str, gold_id: str) -> Path:
        """Return where the step scripts of a task lie (`step_01.py`, ...); tasks need not have any."""
        return self.assets.joinpath("solutions", category, gold_id)

    def aliases(self) -> tuple[frozenset[str], ...]:
        """Return the sets of names that mean the same body; none without a bilingual map.

        Raise TaskError for a map that is no JSON object of `company_items` and `policy_items`, each an object from a
        Chinese name to an English name or a list of them.
        """
        if self._aliases is None:
            path = self.assets / BILINGUAL_MAP
            self._aliases = _read_aliases(path) if path.exists() else ()
        return self._aliases

    def _holds(self, folder: str) -> bool:
        # To resolve a path costs a system call for each of its parts, and 492 gold files lie in seven folders.
        if folder not in self._holding:
            self._holding[folder] = self._is_inside(folder)
        return self._holding[folder]

    def _is_inside(self, path: str) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._real_assets)

    def _data_file(self, source: str) -> Path:
        path = self.asset(source)
        if Path(os.path.realpath(path)).relative_to(self._real_assets).parts[0] in _HOST_ONLY:
            raise AssetError(f"holds gold data, which no agent may get: {source}")
        try:
            with path.open("rb") as file:
                start = file.read(_LFS_POINTER_BYTES)
        except OSError as exc:
            raise AssetError(f"cannot be read: {path}: {exc.strerror or exc}") from exc
        if start.startswith(_LFS_POINTER):
            raise AssetError(f"is a Git LFS pointer, not the data; run `git lfs pull` in {self.path}: {path}")
        return path


def find_root(path: Path) -> Path | None:
    """Return the nearest folder, from the path upwards, that holds `assets/`."""
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if (folder / "assets").is_dir()), None)


def _check_relative(text: str, key: str) -> None:
    """Raise AssetError for a path that could lead out of the folder it is joined to, or names that folder."""
    parts = text.split("/")
    if text.startswith("/") or ".." in parts or "\\" in text or _CONTROL.search(text) or not {*parts} - {"", "."}:
        raise AssetError(f"expected a relative path that stays in its folder, got {text!r}", key)


def _read_aliases(path: Path) -> tuple[frozenset[str], ...]:
    # Imported here: they bring the YAML parser, which finding a root does not need.
    from pytest_dataclaw.collect.fields import Fields
    from pytest_dataclaw.collect.json_text import parse_json
    from pytest_dataclaw.collect.source import read_source

    source = read_source(path)
    values = parse_json(source)
    if not isinstance(values, dict):
        raise TaskError(path, "expected a JSON object", line=1)
    fields = Fields(path, values, source.text)
    sets = []
    for name in ("company_items", "policy_items"):
        for chinese, english in fields.get(dict, name, {}).items():
            names = english if isinstance(english, list) else [english]
            texts = [fields.check(str, text, name, chinese) for text in names]
            sets.append(frozenset({chinese, *texts} - {""}))
    return tuple(sets)
