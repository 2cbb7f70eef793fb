"""Tell benchmark task files from other markdown, and find them; runs in foreign projects, so stdlib only."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SNIFFED_BYTES = 4096
_FRONT_MATTER_KEY = re.compile(rb"^(?:grading_type|gold_file):", re.MULTILINE)
_SKIPPED_DIRS = frozenset({"node_modules", "venv", "__pycache__"})


def is_task_file(path: Path) -> bool:
    """Tell whether a file is a benchmark task: by its place in a checkout, else by its first 4 KB.

    A file inside a checkout counts even if its content is broken, so that it becomes a collection error rather
    than a task that silently goes missing.
    """
    name = path.name
    if not (name.startswith("task_") and name.endswith(".md")):
        return False
    return _lies_in_checkout(path) or _has_task_front_matter(path)


def _lies_in_checkout(path: Path) -> bool:
    # `assets/` alone is common in foreign projects (web sites, themes), so it must also look like a benchmark's.
    # Texts, since this is asked of every file and a Path costs several times the system call.
    assets = f"{path.parent.parent}/assets"
    return os.path.isdir(f"{assets}/qa_gold") or os.path.isdir(f"{assets}/database")  # noqa: PTH112


def _has_task_front_matter(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFFED_BYTES)
    except OSError:
        return False
    return start.removeprefix(b"\xef\xbb\xbf").startswith(b"---") and _FRONT_MATTER_KEY.search(start) is not None


def find_task_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the task files at or below the paths, each folder in sorted order, reading no further than asked.

    Hidden folders, node_modules, venv and __pycache__ are skipped below a path, links to folders are followed (as
    pytest does) and each folder is entered once. A path that does not exist yields nothing.
    """
    entered: set[tuple[int, int]] = set()
    for path in paths:
        if path.is_dir():
            yield from _walk(path, entered)
        elif path.is_file() and is_task_file(path):
            yield path


def _walk(folder: Path, entered: set[tuple[int, int]]) -> Iterator[Path]:
    try:
        status = folder.stat()
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    identity = (status.st_dev, status.st_ino)
    if identity in entered:
        return
    entered.add(identity)
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir():
            if not entry.name.startswith(".") and entry.name not in _SKIPPED_DIRS:
                yield from _walk(path, entered)
        elif is_task_file(path):
            yield path
