"""BenchmarkRoot: shared files are looked at once; aliases; find_root."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pytest_dataclaw.collect.root import BILINGUAL_MAP, AssetError, BenchmarkRoot, find_root
from pytest_dataclaw.errors import TaskError


@pytest.fixture
def root(tmp_path: Path) -> BenchmarkRoot:
    (tmp_path / "assets/database").mkdir(parents=True)
    (tmp_path / "assets/database/a.csv").write_text("id\n", encoding="utf-8")
    return BenchmarkRoot(tmp_path)


def write_map(root: BenchmarkRoot, text: str) -> Path:
    path = root.assets / BILINGUAL_MAP
    path.write_text(text, encoding="utf-8")
    return path


def test_a_workspace_file_is_looked_at_once(root: BenchmarkRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real_open = io.open

    def recording(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(self)
        return real_open(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", recording)
    first = root.workspace_file("database/a.csv", "database/a.csv")
    assert root.workspace_file("database/a.csv", "database/a.csv") is first
    assert opened == [root.assets / "database/a.csv"]


def test_only_the_start_of_a_file_makes_it_an_lfs_pointer(root: BenchmarkRoot) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\n"
    (root.assets / "database/a.csv").write_text("id\n" + pointer, encoding="utf-8")
    assert root.workspace_file("database/a.csv", "a.csv").source == root.assets / "database/a.csv"
    (root.assets / "database/b.csv").write_text(pointer, encoding="utf-8")
    with pytest.raises(AssetError, match="git lfs pull"):
        root.workspace_file("database/b.csv", "b.csv")


def test_a_relative_root_gives_absolute_sources(root: BenchmarkRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.path)
    source = BenchmarkRoot(Path()).workspace_file("database/a.csv", "a.csv").source
    assert source == root.path / "assets/database/a.csv"


def test_assets_may_be_a_link_themselves(root: BenchmarkRoot, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "assets").symlink_to(root.assets)
    assert BenchmarkRoot(other).workspace_file("database/a.csv", "a.csv").source == other / "assets/database/a.csv"


def test_solution_dir(root: BenchmarkRoot) -> None:
    assert root.solution_dir("demo", "easy001") == root.path / "assets/solutions/demo/easy001"


def test_aliases(root: BenchmarkRoot) -> None:
    write_map(
        root,
        """{
          "company_items": {"示例公司": ["Example Company", "Shi Li Co., Ltd."], "单名公司": "One Name Company"},
          "policy_items": {"关于示例的通知": "Notice on an Example", "空": ""}
        }""",
    )
    aliases = root.aliases()
    assert aliases == (
        frozenset({"示例公司", "Example Company", "Shi Li Co., Ltd."}),
        frozenset({"单名公司", "One Name Company"}),
        frozenset({"关于示例的通知", "Notice on an Example"}),
        frozenset({"空"}),
    )
    assert root.aliases() is aliases


def test_no_aliases_without_a_map_or_items(root: BenchmarkRoot) -> None:
    assert root.aliases() == ()
    write_map(root, "{}")
    assert BenchmarkRoot(root.path).aliases() == ()


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("{\n,}", 2, None),
        ("[]", 1, None),
        ('{\n"company_items": []}', 2, "company_items"),
        ('{"policy_items": {\n"甲": 3}}', 2, "policy_items.甲"),
        ('{"policy_items": {\n"甲": ["a", null]}}', 2, "policy_items.甲"),
    ],
)
def test_a_broken_map(root: BenchmarkRoot, text: str, line: int, field: str | None) -> None:
    path = write_map(root, text)
    with pytest.raises(TaskError) as caught:
        root.aliases()
    assert (caught.value.path, caught.value.line, caught.value.field) == (path, line, field)


def test_find_root(root: BenchmarkRoot) -> None:
    tasks = root.path / "tasks/deeper"
    tasks.mkdir(parents=True)
    assert find_root(tasks / "task_1.md") == root.path
    assert find_root(root.path) == root.path
    (tasks / "assets").mkdir()
    assert find_root(tasks) == tasks
    (tasks / "assets").rmdir()
    assert find_root(root.path.parent) is None
