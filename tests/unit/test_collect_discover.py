"""is_task_file and find_task_files."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.collect.discover import find_task_files, is_task_file

if TYPE_CHECKING:
    from pathlib import Path

FRONT_MATTER = "---\nid: task_1\ngrading_type: llm_judge\n---\n"


def write(path: Path, text: str = FRONT_MATTER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("task_1.md", FRONT_MATTER, True),
        ("task_1.md", "---\r\ngold_file: qa_gold/a.json\r\n---\r\n", True),
        ("task_1.md", "\ufeff" + FRONT_MATTER, True),
        ("task_1.md", "---\ngold_file: x", True),
        ("tasks.md", FRONT_MATTER, False),
        ("my_task_1.md", FRONT_MATTER, False),
        ("task_1.txt", FRONT_MATTER, False),
        ("task_1.md", "# To do\n\ngrading_type: llm_judge\n", False),
        ("task_1.md", "---\ntitle: To do\n---\n", False),
        ("task_1.md", "---\nnot_grading_type: x\n---\n", False),
        ("task_1.md", "---\n" + "a: b\n" * 1000 + "gold_file: x\n---\n", False),
        ("task_1.md", "", False),
    ],
)
def test_by_content(tmp_path: Path, name: str, text: str, expected: bool) -> None:
    assert is_task_file(write(tmp_path / "docs" / name, text)) is expected


@pytest.mark.parametrize(
    ("folder", "expected"), [("qa_gold", True), ("database", True), ("images", False), ("", False)]
)
def test_by_place(tmp_path: Path, folder: str, expected: bool) -> None:
    (tmp_path / "assets" / folder).mkdir(parents=True)
    assert is_task_file(write(tmp_path / "tasks/task_1.md", "broken")) is expected
    assert is_task_file(write(tmp_path / "tasks/README.md", FRONT_MATTER)) is False
    assert is_task_file(write(tmp_path / "tasks/deeper/task_1.md", "broken")) is False


def test_an_absent_file_is_none(tmp_path: Path) -> None:
    assert is_task_file(tmp_path / "task_1.md") is False


def test_find_walks_sorted_and_skips(tmp_path: Path) -> None:
    for name in ("b/task_2.md", "b/task_1.md", "a/deep/task_9.md", "task_5.md", "c.md"):
        write(tmp_path / name)
    for name in (".git/task_1.md", "node_modules/task_1.md", "a/venv/task_1.md", "a/__pycache__/task_1.md"):
        write(tmp_path / name)
    found = [path.relative_to(tmp_path).as_posix() for path in find_task_files([tmp_path])]
    assert found == ["a/deep/task_9.md", "b/task_1.md", "b/task_2.md", "task_5.md"]


def test_find_takes_files_and_ignores_what_is_not_there(tmp_path: Path) -> None:
    task, other = write(tmp_path / "task_1.md"), write(tmp_path / "other.md")
    assert list(find_task_files([other, tmp_path / "gone", task])) == [task]


def test_find_enters_hidden_folders_only_if_named(tmp_path: Path) -> None:
    task = write(tmp_path / ".hidden/task_1.md")
    assert list(find_task_files([tmp_path])) == []
    assert list(find_task_files([tmp_path / ".hidden"])) == [task]


def test_find_follows_links_but_not_for_ever(tmp_path: Path) -> None:
    write(tmp_path / "real/task_1.md")
    root = tmp_path / "root"
    root.mkdir()
    (root / "loop").symlink_to(root)
    (root / "tasks").symlink_to(tmp_path / "real")
    assert list(find_task_files([root])) == [root / "tasks/task_1.md"]


def test_find_reads_no_further_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a/task_1.md")
    write(tmp_path / "b/task_1.md")
    scanned: list[str] = []
    scandir = os.scandir

    def recording(path: Path) -> object:
        scanned.append(path.name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", recording)
    assert list(islice(find_task_files([tmp_path]), 1)) == [tmp_path / "a/task_1.md"]
    assert scanned == [tmp_path.name, "a"]


def test_discover_imports_only_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import pytest_dataclaw.collect.discover;"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(tops - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "['pytest_dataclaw']\n"
