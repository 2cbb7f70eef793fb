"""`dataclaw build`: gold files and task files from raw files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_dataclaw.collect.build import PUBLISHED_FILES, BuildReport, build
from pytest_dataclaw.collect.root import BenchmarkRoot
from pytest_dataclaw.collect.task_file import load_task
from pytest_dataclaw.errors import TaskError

UPSTREAM = Path(__file__).parents[3] / "shared/upstream/dataclaw"


def raw(raw_id: str, level: str = "easy", category: str = "demo", **changes: Any) -> dict[str, Any]:
    """A raw file's fields, in an order that is not the gold file's."""
    return {
        "evidence": ["seen"],
        "answer": 2.0,
        "question": f"What is the value of {raw_id}？",
        "reference": [{"table": "x"}],
        "milestone": {"value (%)": 2.0},
        "id": raw_id,
        "guidelines": "One number.",
        "steps": ["Read it."],
        "metadata": {"db": "d", "level": level, "category": category},
    } | changes


def write_raw(root: Path, fields: dict[str, Any], category: str = "demo") -> Path:
    path = root / f"assets/qa_raw/{category}/{fields['id']}_result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


def write_database(root: Path, names: tuple[str, ...]) -> None:
    for name in names:
        path = root / "assets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}" if name.endswith(".json") else "id\n1\n", encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Four raw files in two categories and two data files."""
    write_database(tmp_path, ("database/b/z.csv", "database/a.csv", "database/.hidden"))
    for fields in (raw("medium001", "medium"), raw("easy002"), raw("hard001", "hard")):
        write_raw(tmp_path, fields)
    category = "international_comparison"
    write_raw(tmp_path, raw("easy001", category=category), category)
    return tmp_path


def names(root: Path, paths: tuple[Path, ...]) -> list[str]:
    return [path.relative_to(root).as_posix() for path in paths]


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


TASK_NAMES = [
    "tasks/task_001_demo_easy_easy002.md",
    "tasks/task_002_demo_hard_hard001.md",
    "tasks/task_003_demo_medium_medium001.md",
    "tasks/task_004_international_comparison_easy_easy001.md",
]


def test_tasks_are_numbered_in_the_order_of_the_raw_files(root: Path) -> None:
    report = build(root)
    assert names(root, report.written)[1::2] == TASK_NAMES
    assert names(root, report.written)[::2] == [
        "assets/qa_gold/demo/easy002.json",
        "assets/qa_gold/demo/hard001.json",
        "assets/qa_gold/demo/medium001.json",
        "assets/qa_gold/international_comparison/easy001.json",
    ]
    assert (report.unchanged, report.removed) == ((), ())
    assert len(report.notes) == 1
    assert report.notes[0].startswith("19 of the 19 published data files absent: database/bilingual")
    assert sorted(path.name for path in root.rglob(".*")) == [".hidden"]


def test_a_gold_file_has_the_fixed_keys(root: Path) -> None:
    build(root)
    assert (root / "assets/qa_gold/demo/easy002.json").read_text(encoding="utf-8") == (
        '{\n  "id": "easy002",\n  "question": "What is the value of easy002？",\n  "guidelines": "One number.",\n'
        '  "answer": 2.0,\n  "metadata": {\n    "db": "d",\n    "level": "easy",\n    "category": "demo"\n  },\n'
        '  "steps": [\n    "Read it."\n  ],\n  "steps_num": 1,\n  "milestone": {\n    "value (%)": 2.0\n  }\n}'
    )


def test_a_built_task_loads(root: Path) -> None:
    build(root)
    task = load_task(root / TASK_NAMES[0], BenchmarkRoot(root))
    brief = task.brief
    assert (brief.task_id, brief.name) == ("task_001_demo_easy_easy002", "demo-easy-easy002")
    assert (brief.category, brief.level, brief.timeout_seconds, brief.web) == ("demo", "easy", 1200.0, False)
    assert [str(file.dest) for file in brief.workspace_files] == ["database/a.csv", "database/b/z.csv"]
    assert brief.prompt.startswith("What is the value of easy002？\n\nForm of the answer:\nOne number.\n\n")
    assert "./database/" in brief.prompt
    assert "web" not in brief.prompt
    assert "2.0" not in brief.prompt
    assert task.gold.answer == 2.0
    text = task.path.read_text(encoding="utf-8")
    assert [line for line in text.split("\n") if line.startswith("## ")] == [
        "## Prompt",
        "## Expected Behavior",
        "## Grading Criteria",
        "## LLM Judge Rubric",
    ]
    assert "`2.0`" in text


def test_only_the_international_category_may_use_the_web(root: Path) -> None:
    build(root)
    brief = load_task(root / TASK_NAMES[3], BenchmarkRoot(root)).brief
    assert brief.web is True
    assert "web" in brief.prompt


def test_ids_that_yaml_takes_for_something_else(tmp_path: Path) -> None:
    write_raw(tmp_path, raw("007", category="2022"), "2022")
    build(tmp_path)
    brief = load_task(tmp_path / "tasks/task_001_2022_easy_007.md", BenchmarkRoot(tmp_path)).brief
    assert brief.category == "2022"


def test_building_again_touches_nothing(root: Path) -> None:
    first = build(root)
    before = snapshot(root)
    assert build(root) == BuildReport((), first.written, (), first.notes)
    assert snapshot(root) == before


def test_check_writes_nothing(root: Path) -> None:
    before = snapshot(root)
    assert names(root, build(root, check=True).written)[1::2] == TASK_NAMES
    assert snapshot(root) == before
    build(root)
    (root / "assets/qa_raw/demo/easy002_result.json").unlink()
    before = snapshot(root)
    report = build(root, check=True)
    assert snapshot(root) == before
    assert names(root, report.removed) == TASK_NAMES


def test_a_changed_raw_file_changes_only_its_own(root: Path) -> None:
    build(root)
    write_raw(root, raw("hard001", "hard", answer=["甲", 1]))
    report = build(root)
    assert names(root, report.written) == ["assets/qa_gold/demo/hard001.json", TASK_NAMES[1]]
    assert len(report.unchanged) == 6
    assert '`["甲", 1]`' in (root / TASK_NAMES[1]).read_text(encoding="utf-8")


def test_a_gold_file_is_overwritten(root: Path) -> None:
    build(root)
    gold = root / "assets/qa_gold/demo/easy002.json"
    made = gold.read_bytes()
    gold.write_text("edited", encoding="utf-8")
    assert names(root, build(root).written) == ["assets/qa_gold/demo/easy002.json"]
    assert gold.read_bytes() == made


def test_stale_tasks_of_its_own_are_removed_and_others_kept(root: Path) -> None:
    build(root)
    (root / "assets/qa_raw/demo/easy002_result.json").unlink()
    foreign = root / "tasks/task_002_demo_hard_hand_made.md"
    foreign.write_text("---\nid: x\n---\n\ngenerated_by: dataclaw build\n", encoding="utf-8")
    beyond = root / "tasks/task_900_demo_hard_hand_made.md"
    beyond.write_text("mine", encoding="utf-8")
    report = build(root)
    assert names(root, report.removed) == TASK_NAMES
    assert sorted(path.name for path in (root / "tasks").iterdir()) == [
        "task_001_demo_hard_hard001.md",
        "task_002_demo_hard_hand_made.md",
        "task_002_demo_medium_medium001.md",
        "task_003_international_comparison_easy_easy001.md",
        "task_900_demo_hard_hand_made.md",
    ]
    notes = report.notes[1:]
    assert notes == (
        f"{foreign} bears the number of another task; not made by `dataclaw build`, left alone",
        f"{root / 'assets/qa_gold/demo/easy002.json'} has no raw file; left alone",
    )


def test_a_task_file_that_it_did_not_make_is_never_overwritten(root: Path) -> None:
    build(root)
    task = root / TASK_NAMES[1]
    edited = task.read_text(encoding="utf-8").replace("generated_by: dataclaw build\n", "")
    task.write_text(edited, encoding="utf-8")
    write_raw(root, raw("easy002", answer=9))
    before = snapshot(root)
    with pytest.raises(TaskError, match="not made by `dataclaw build`") as caught:
        build(root)
    assert caught.value.path == task
    assert snapshot(root) == before


def test_an_edited_task_of_its_own_is_made_anew(root: Path) -> None:
    build(root)
    task = root / TASK_NAMES[1]
    made = task.read_bytes()
    task.write_bytes(made.replace(b"\n", b"\r\n"))
    assert names(root, build(root).written) == [TASK_NAMES[1]]
    assert task.read_bytes() == made


BAD_RAW: list[tuple[dict[str, Any], str, str]] = [
    ({"question": ...}, "question", "missing field"),
    ({"answer": ...}, "answer", "missing field"),
    ({"metadata": ...}, "metadata.level", "expected a level"),
    ({"metadata": {"level": "a/b"}}, "metadata.level", "expected a level"),
    ({"metadata": {"level": "easy", "category": "other"}}, "metadata.category", "expected 'demo'"),
    ({"steps": "one"}, "steps", "expected a list"),
    ({"question": "a\n## Expected Behavior\nb"}, "question", "heading of the task file"),
]


@pytest.mark.parametrize(("changes", "field", "words"), BAD_RAW)
def test_a_bad_raw_file_stops_all_writing(root: Path, changes: dict[str, Any], field: str, words: str) -> None:
    fields = {key: value for key, value in raw("medium001", "medium", **changes).items() if value is not ...}
    path = write_raw(root, fields)
    before = snapshot(root)
    with pytest.raises(TaskError) as caught:
        build(root)
    assert (caught.value.path, caught.value.field) == (path, field)
    assert words in caught.value.message
    assert snapshot(root) == before


def test_an_id_must_be_the_file_s_name(root: Path) -> None:
    path = root / "assets/qa_raw/demo/easy002_result.json"
    path.write_text(json.dumps(raw("easy003")), encoding="utf-8")
    with pytest.raises(TaskError, match="expected 'easy002'"):
        build(root)


def test_a_root_without_raw_files_loses_nothing(root: Path) -> None:
    build(root)
    shutil.rmtree(root / "assets/qa_raw")
    before = snapshot(root)
    with pytest.raises(TaskError, match="found none"):
        build(root)
    assert snapshot(root) == before


def test_a_failed_write_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(root)
    write_raw(root, raw("easy002", answer=9))
    gold = root / "assets/qa_gold/demo/easy002.json"
    old = gold.read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        build(root)
    assert gold.read_bytes() == old
    assert [path.name for path in gold.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the benchmark's own files are not here")
def test_real_raw_files(tmp_path: Path) -> None:
    shutil.copytree(UPSTREAM / "assets/qa_raw", tmp_path / "assets/qa_raw")
    write_database(tmp_path, PUBLISHED_FILES)
    report = build(tmp_path)
    assert report.notes == ()
    root = BenchmarkRoot(tmp_path)
    tasks = [load_task(path, root) for path in sorted((tmp_path / "tasks").iterdir())]
    assert len(tasks) == 28
    assert {
        tuple(file.source.relative_to(root.assets).as_posix() for file in task.brief.workspace_files) for task in tasks
    } == {PUBLISHED_FILES}
    published = sorted((UPSTREAM / "assets/qa_gold").rglob("*.json"))
    assert len(published) == 6
    for gold in published:
        ours = tmp_path / "assets/qa_gold" / gold.relative_to(UPSTREAM / "assets/qa_gold")
        assert ours.read_bytes() == gold.read_bytes()
    for task in tasks:
        assert task.gold.question.strip() in task.brief.prompt
        assert task.brief.web is (task.brief.category == "international_comparison")
    assert build(tmp_path).written == ()
