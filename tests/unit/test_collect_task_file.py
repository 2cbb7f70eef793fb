"""load_task on sound and broken task files, gold files and workspace files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dataclaw.collect.root import BenchmarkRoot
from pytest_dataclaw.collect.task_file import load_task
from pytest_dataclaw.errors import TaskError, TaskWarning
from pytest_dataclaw.model.task import Milestone, Task, WorkspaceFile

UPSTREAM = Path(__file__).parents[3] / "shared/upstream/dataclaw"

TASK = """\
---
id: task_001_demo_easy_easy001
name: demo-easy-easy001
category: demo
grading_type: llm_judge
timeout_seconds: 600
gold_file: qa_gold/demo/easy001.json
workspace_files: [
  {"source": "database/a.csv", "dest": "database/a.csv"},
  {"source": "database/b.csv", "dest": "database/b.csv"}
]
---

## Prompt

How many rows?

## Notes of the prompt's own

Count the header too.

## Expected Behavior

It counts.

## LLM Judge Rubric

Gold answer: `["12345"]`
"""
PROMPT = "How many rows?\n\n## Notes of the prompt's own\n\nCount the header too."
GOLD: dict[str, Any] = {
    "id": "easy001",
    "question": "How many rows?",
    "guidelines": "One whole number.",
    "answer": 3,
    "metadata": {"db": "demo", "level": "easy", "category": "demo"},
    "steps": ["Read the file.", "Count its rows."],
    "steps_num": 2,
    "milestone": {"rows (件)": 3, "names": ["a", "b"]},
}
LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234\n"


class Sample:
    """A benchmark root with one sound task, to be broken."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "assets/database"
        self.gold = root / "assets/qa_gold/demo/easy001.json"
        self.task = root / "tasks/task_001_demo_easy_easy001.md"
        for folder in (self.database, self.gold.parent, self.task.parent):
            folder.mkdir(parents=True)
        for name in ("a.csv", "b.csv"):
            (self.database / name).write_text("id\n1\n2\n", encoding="utf-8")
        self.write_gold(GOLD)
        self.task.write_text(TASK, encoding="utf-8")

    def write_gold(self, gold: object) -> None:
        self.gold.write_text(json.dumps(gold, indent=2, ensure_ascii=False), encoding="utf-8")

    def replace(self, old: str, new: str) -> None:
        assert old in TASK
        self.task.write_text(TASK.replace(old, new, 1), encoding="utf-8", newline="")

    def load(self) -> Task:
        return load_task(self.task, BenchmarkRoot(self.root))

    def error(self) -> TaskError:
        with pytest.raises(TaskError) as caught:
            self.load()
        return caught.value


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample(tmp_path)


def test_a_sound_task(sample: Sample) -> None:
    task = sample.load()
    brief, gold = task.brief, task.gold
    assert (brief.task_id, brief.name) == ("task_001_demo_easy_easy001", "demo-easy-easy001")
    assert (brief.category, brief.level, brief.suite) == ("demo", "easy", "dataclaw")
    assert brief.prompt == PROMPT
    assert (brief.timeout_seconds, brief.web) == (600.0, False)
    assert brief.workspace_files == (
        WorkspaceFile(sample.database / "a.csv", PurePosixPath("database/a.csv")),
        WorkspaceFile(sample.database / "b.csv", PurePosixPath("database/b.csv")),
    )
    assert (gold.question, gold.guidelines, gold.answer) == ("How many rows?", "One whole number.", 3)
    assert (gold.steps, gold.steps_num) == (("Read the file.", "Count its rows."), 2)
    assert gold.milestones == (Milestone("rows (件)", 3), Milestone("names", ["a", "b"]))
    assert (gold.solution, gold.path) == ((), sample.gold)
    assert (task.path, task.root) == (sample.task, sample.root)
    assert task.text_sha256 == hashlib.sha256(sample.task.read_bytes()).hexdigest()
    assert task.gold_sha256 == hashlib.sha256(sample.gold.read_bytes()).hexdigest()


# Each broken front matter: what is replaced by what, then the line, field and words that the error must give.
BROKEN: list[tuple[str, str, int | None, str | None, str]] = [
    ("---\nid", "id", 1, None, "missing front matter"),
    ("---\nid", "\n---\nid", 1, None, "missing front matter"),
    ("\n---\n\n", "\n\n", 1, None, "unclosed front matter"),
    ("category: demo", "category: 'demo", 12, None, "bad YAML"),
    ("name: demo-easy-easy001", "name: a: b", 3, None, "bad YAML"),
    ("name: demo-easy-easy001", "name: a\x07b", 3, None, "bad YAML"),
    ('b.csv"}\n]', 'b.csv"}\n]]', 11, None, "bad YAML"),
    ("name: demo-easy-easy001", "name: 2022-99-99", None, None, "bad YAML"),
    ("name: demo-easy-easy001", "name: !!bool maybe", None, None, "bad YAML"),
    (TASK[4 : TASK.index("\n---\n\n")], "- a\n- b", 2, None, "mapping"),
    (TASK[4 : TASK.index("\n---\n\n") + 1], "", 2, None, "mapping"),
    ("category: demo\n", "category: demo\nname: twice\n", 5, "name", "duplicate key"),
    ("category: demo\n", "category: demo\nworkspace_files: []\n", 9, "workspace_files", "duplicate key"),
    ('"dest": "database/b.csv"', '"source": "database/b.csv"', 10, "source", "duplicate key"),
    ("id: task_001_demo_easy_easy001\n", "", None, "id", "missing field"),
    ("category: demo\n", "", None, "category", "missing field"),
    ("grading_type: llm_judge\n", "", None, "grading_type", "missing field"),
    ("gold_file: qa_gold/demo/easy001.json\n", "", None, "gold_file", "missing field"),
    ("workspace_files: [", "other: [", None, "workspace_files", "missing field"),
    ("id: task_001_demo_easy_easy001", "id: 7", 2, "id", "expected text, got 7"),
    ("id: task_001_demo_easy_easy001", "id: a/b", 2, "id", "letters, digits"),
    ("id: task_001_demo_easy_easy001", "id: ..", 2, "id", "letters, digits"),
    ("name: demo-easy-easy001", "name: [a]", 3, "name", "expected text, got ['a']"),
    ("category: demo", "category: ''", 4, "category", "got none"),
    ("category: demo", "category: yes", 4, "category", "expected text, got True"),
    ("category: demo", 'category: "a\\nb"', 4, "category", "one line of printable text"),
    ("grading_type: llm_judge", "grading_type: automated", 5, "grading_type", "unknown grading type 'automated'"),
    ("grading_type: llm_judge", "grading_type: null", 5, "grading_type", "expected text, got None"),
    ("name: demo-easy-easy001", "suite: other", 3, "suite", "unknown suite 'other'"),
    ("timeout_seconds: 600", "timeout_seconds: soon", 6, "timeout_seconds", "positive number of seconds, got 'soon'"),
    ("timeout_seconds: 600", "timeout_seconds: 0", 6, "timeout_seconds", "positive number"),
    ("timeout_seconds: 600", "timeout_seconds: -1", 6, "timeout_seconds", "positive number"),
    ("timeout_seconds: 600", "timeout_seconds: .inf", 6, "timeout_seconds", "positive number"),
    ("timeout_seconds: 600", "timeout_seconds: .nan", 6, "timeout_seconds", "positive number"),
    ("timeout_seconds: 600", "timeout_seconds: true", 6, "timeout_seconds", "positive number"),
    ("timeout_seconds: 600", "web: 1", 6, "web", "expected true or false, got 1"),
    ("qa_gold/demo/easy001.json", "qa_gold/demo/gone.json", 7, "gold_file", "absent file"),
    ("qa_gold/demo/easy001.json", "qa_gold/demo", 7, "gold_file", "regular file"),
    ("qa_gold/demo/easy001.json", "../tasks/task_001_demo_easy_easy001.md", 7, "gold_file", "stays in its folder"),
    ("qa_gold/demo/easy001.json", '"a\\0b"', 7, "gold_file", "stays in its folder"),
    ('"database/b.csv", "dest"', '"database/gone.csv", "dest"', 10, "workspace_files[1].source", "absent file"),
    ('"database/b.csv", "dest"', '"database", "dest"', 10, "workspace_files[1].source", "regular file"),
    ('"database/b.csv", "dest"', '"../a.csv", "dest"', 10, "workspace_files[1].source", "stays in its folder"),
    ('"database/b.csv", "dest"', '"/etc/hosts", "dest"', 10, "workspace_files[1].source", "stays in its folder"),
    ('"database/b.csv", "dest"', '"", "dest"', 10, "workspace_files[1].source", "stays in its folder"),
    ('"database/b.csv", "dest"', '"qa_gold/demo/easy001.json", "dest"', 10, "workspace_files[1].source", "gold data"),
    ('"database/b.csv", "dest"', '5, "dest"', 10, "workspace_files[1].source", "expected text, got 5"),
    ('"dest": "database/b.csv"', '"dest": "../b.csv"', 10, "workspace_files[1].dest", "stays in its folder"),
    ('"dest": "database/b.csv"', '"dest": "/b.csv"', 10, "workspace_files[1].dest", "stays in its folder"),
    ('"dest": "database/b.csv"', '"dest": "."', 10, "workspace_files[1].dest", "stays in its folder"),
    ('"dest": "database/b.csv"', '"dest": "x\\\\..\\\\b"', 10, "workspace_files[1].dest", "stays in its folder"),
    ('"dest": "database/b.csv"', '"dest": "database//a.csv"', 10, "workspace_files[1].dest", "already the place"),
    (', "dest": "database/b.csv"', "", 10, "workspace_files[1].dest", "missing field"),
    ('{"source": "database/b.csv", "dest": "database/b.csv"}', "b.csv", 10, "workspace_files[1]", "expected a mapping"),
    ("workspace_files: [", "workspace_files: {}\nother: [", 8, "workspace_files", "expected a list"),
    ("## Prompt", "## Question", None, None, "missing section: expected a line `## Prompt`"),
    (PROMPT, "\n  \n", 14, None, "empty prompt"),
    ("## Expected Behavior", "### Expected Behavior", 22, None, "expected a section heading `## Name`"),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "words"), BROKEN)
def test_broken_task_file(sample: Sample, old: str, new: str, line: int | None, field: str | None, words: str) -> None:
    sample.replace(old, new)
    error = sample.error()
    assert (error.path, error.line, error.field) == (sample.task, line, field)
    assert words in error.message


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_line_of_a_bad_byte(sample: Sample, newline: str, mark: bytes) -> None:
    data = mark + TASK.replace("\n", newline).encode()
    for byte, words in ((b"\xff", "is not UTF-8: byte 0xff"), (b"\0", "NUL byte")):
        sample.task.write_bytes(data.replace(b"many rows", b"many" + byte + b"rows"))
        error = sample.error()
        assert (error.line, error.field) == (16, None)
        assert f"{words} at offset {data.index(b'many rows') + 4}" in error.message


def test_an_absent_task_file(sample: Sample) -> None:
    sample.task.unlink()
    assert "cannot be read: No such file" in sample.error().message


def test_host_sections_never_reach_the_prompt(sample: Sample) -> None:
    for heading in ("## LLM Judge Rubric", "## llm judge rubric:", "  ## Grading Criteria ##", "##Expected Behavior"):
        sample.replace("## Expected Behavior", heading)
        assert sample.load().brief.prompt == PROMPT
    for heading in ("# LLM Judge Rubric", "#### Grading Criteria"):
        sample.replace("## Expected Behavior", heading)
        assert sample.error().line == 22


# Each broken gold file: its text, then the line, field and words that the error must give.
def _gold_text(**changes: object) -> str:
    return json.dumps({key: value for key, value in (GOLD | changes).items() if value is not ...}, indent=2)


BROKEN_GOLD: list[tuple[str, int | None, str | None, str]] = [
    ("", 1, None, "is not valid JSON"),
    ('{\n  "id": "easy001",\n  "answer": 3,\n}', 4, None, "is not valid JSON"),
    ("[1]", 1, None, "expected a JSON object"),
    ('{\n  "question": "NaN",\n  "answer": [1.5,\n NaN]}', 4, None, "expected finite numbers, got NaN"),
    ('{"question": "-Infinity",\n"answer": -Infinity}', 2, None, "expected finite numbers, got -Infinity"),
    ('{"question": "1e999",\n"answer":\n1e999}', 3, None, "expected finite numbers, got 1e999"),
    ('{"answer": 1, "answer": 2}', None, "answer", "duplicate key"),
    ('{"answer":\n"\\ud83d"}', 2, None, "surrogate"),
    ('{"answer": ' + "9" * 5000 + "}", None, None, "cannot be read as JSON"),
    ('{"answer": ' + "[" * 100_000 + "}", None, None, "cannot be read as JSON"),
    (_gold_text(question=...), None, "question", "missing field, expected text"),
    (_gold_text(answer=...), None, "answer", "missing field"),
    (_gold_text(id=...), None, "id", "missing field"),
    (_gold_text(id=1), 2, "id", "expected text, got 1"),
    (_gold_text(question=["a"]), 3, "question", "expected text"),
    (_gold_text(guidelines=None), 4, "guidelines", "expected text, got None"),
    (_gold_text(metadata="easy"), 6, "metadata", "expected a mapping"),
    (_gold_text(metadata={"db": "demo", "level": 3}), 8, "metadata.level", "expected text, got 3"),
    (_gold_text(steps="one"), 11, "steps", "expected a list"),
    (_gold_text(steps=["one", 2]), 13, "steps[1]", "expected text, got 2"),
    (_gold_text(steps_num="2"), 15, "steps_num", "expected a whole number, got '2'"),
    (_gold_text(steps_num=True), 15, "steps_num", "expected a whole number, got True"),
    (_gold_text(steps_num=-1), 15, "steps_num", "0 or more"),
    (_gold_text(milestone=["a"]), 16, "milestone", "expected a mapping"),
]


@pytest.mark.parametrize(("text", "line", "field", "words"), BROKEN_GOLD)
def test_broken_gold_file(sample: Sample, text: str, line: int | None, field: str | None, words: str) -> None:
    sample.gold.write_text(text, encoding="utf-8")
    error = sample.error()
    assert (error.path, error.line, error.field) == (sample.gold, line, field)
    assert words in error.message


def test_gold_that_is_not_utf_8(sample: Sample) -> None:
    sample.gold.write_bytes(b'{\n"id": "\xe9"}')
    error = sample.error()
    assert (error.path, error.line) == (sample.gold, 2)


@pytest.mark.parametrize(
    "answer", [3, 3.5, 175.0, "1.50", "下降0.5", "", None, True, [1, 2.5], [1.25, "下降0.5"], ["7.5"], [], {"a": 1}]
)
def test_answers_of_every_kind(sample: Sample, answer: object) -> None:
    sample.write_gold(GOLD | {"answer": answer})
    gold = sample.load().gold
    assert gold.answer == answer
    assert type(gold.answer) is type(answer)


def test_what_a_gold_file_may_leave_out(sample: Sample) -> None:
    sample.write_gold({"answer": "Yes", "question": "Is it？", "id": "easy001"})
    task = sample.load()
    assert (task.brief.level, task.gold.guidelines) == ("", "")
    assert (task.gold.steps, task.gold.steps_num, task.gold.milestones) == ((), 0, ())


def test_steps_num_decides_where_steps_are_absent(sample: Sample) -> None:
    sample.write_gold({key: value for key, value in GOLD.items() if key != "steps"} | {"steps_num": 5})
    assert sample.load().gold.steps_num == 5


def test_steps_num_that_differs_from_the_steps_is_a_warning(sample: Sample) -> None:
    sample.write_gold(GOLD | {"steps_num": 3, "milestone": {}})
    with pytest.warns(TaskWarning, match="steps_num is 3, but steps has 2"):
        task = sample.load()
    assert (task.gold.steps_num, len(task.gold.steps), task.gold.milestones) == (3, 2, ())


def test_what_a_task_file_may_leave_out_or_add(sample: Sample) -> None:
    text = TASK.replace("name: demo-easy-easy001\n", "").replace("timeout_seconds: 600\n", "colour: blue\n")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    lines = head.split("\n")
    shuffled = "\n".join([*lines[4:], *reversed(lines[:4])])
    sample.task.write_text(f"---\n{shuffled}\n---\n{body.split('## Expected')[0].rstrip()}", encoding="utf-8")
    brief = sample.load().brief
    assert (brief.name, brief.timeout_seconds, brief.category) == ("task_001_demo_easy_easy001", 1200.0, "demo")
    assert brief.prompt == PROMPT
    assert len(brief.workspace_files) == 2


@pytest.mark.parametrize(
    "encode", [lambda text: text.replace("\n", "\r\n").encode(), lambda text: text.encode("utf-8-sig")]
)
def test_line_ends_and_byte_order_mark(sample: Sample, encode: Any) -> None:
    sample.task.write_bytes(encode(TASK))
    sample.gold.write_bytes(encode(_gold_text()))
    task = sample.load()
    assert task.brief.prompt == PROMPT
    assert task.gold.answer == 3


def test_unicode_in_category_and_prompt(sample: Sample) -> None:
    sample.task.write_text(
        TASK.replace("category: demo", "category: 产业 规划 − “①”").replace("rows?", "rows − ① ³ ×？"), encoding="utf-8"
    )
    brief = sample.load().brief
    assert brief.category == "产业 规划 − “①”"
    assert brief.prompt.startswith("How many rows − ① ³ ×？\n")


@pytest.mark.parametrize(
    ("lines", "web"),
    [
        ("category: international_comparison", True),
        ("category: demo", False),
        ("category: demo\nweb: true", True),
        ("category: international_comparison\nweb: false", False),
    ],
)
def test_web(sample: Sample, lines: str, web: bool) -> None:
    sample.replace("category: demo", lines)
    assert sample.load().brief.web is web


def test_git_lfs_pointer(sample: Sample) -> None:
    (sample.database / "b.csv").write_text(LFS_POINTER, encoding="utf-8")
    error = sample.error()
    assert (error.path, error.line, error.field) == (sample.task, 10, "workspace_files[1].source")
    assert "git lfs pull" in error.message


def test_links_may_not_lead_out_of_the_assets(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    shutil.move(sample.database / "b.csv", outside / "b.csv")
    (sample.database / "b.csv").symlink_to(outside / "b.csv")
    error = sample.error()
    assert (error.line, error.field) == (10, "workspace_files[1].source")
    assert "symbolic link" in error.message
    (sample.database / "b.csv").unlink()
    (sample.database / "b.csv").symlink_to(sample.gold)
    assert "gold data" in sample.error().message
    (sample.database / "b.csv").unlink()
    (sample.database / "b.csv").symlink_to("a.csv")
    assert len(sample.load().brief.workspace_files) == 2
    shutil.move(sample.gold, outside / "gold.json")
    sample.gold.symlink_to(outside / "gold.json")
    assert (sample.error().line, sample.error().field) == (7, "gold_file")


def _write_scripts(sample: Sample, *names: str) -> Path:
    folder = sample.root / "assets/solutions/demo/easy001"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"print('{name}')\n", encoding="utf-8")
    return folder


def test_solution_scripts_in_order(sample: Sample) -> None:
    sample.write_gold(GOLD | {"steps": [str(n) for n in range(1, 11)], "steps_num": 10})
    _write_scripts(sample, "notes.txt", "step_10.py", *(f"step_{n}.py" for n in range(1, 10)))
    solution = sample.load().gold.solution
    assert solution == tuple(f"print('step_{n}.py')\n" for n in range(1, 11))


@pytest.mark.parametrize(
    "names",
    [(), ("step_01.py",), ("step_01.py", "step_03.py"), ("step_01.py", "step_1.py"), ("step_00.py", "step_01.py")],
)
def test_solution_scripts_that_do_not_match_the_steps(sample: Sample, names: tuple[str, ...]) -> None:
    folder = _write_scripts(sample, *names)
    error = sample.error()
    assert error.path == folder
    assert "one script for each of the 2 steps" in error.message


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(
        st.binary(),
        st.text(st.characters(codec="utf-8")).map(str.encode),
        st.tuples(st.integers(0, len(TASK)), st.integers(0, 40), st.text("-#:[]{}&*!|>'\"\\\n\t ~?,%@`a1.\0é")).map(
            lambda cut: (TASK[: cut[0]] + cut[2] + TASK[cut[0] + cut[1] :]).encode()
        ),
    ),
    part=st.sampled_from(["task", "front matter", "gold"]),
)
def test_arbitrary_text_raises_nothing_but_task_errors(tmp_path: Path, text: bytes, part: str) -> None:
    root = tmp_path / "root"
    shutil.rmtree(root, ignore_errors=True)
    sample = Sample(root)
    if part == "task":
        sample.task.write_bytes(text)
    elif part == "front matter":
        sample.task.write_bytes(b"---\n" + text + b"\n---\n\n## Prompt\n\nx\n")
    else:
        sample.gold.write_bytes(text)
    with contextlib.suppress(TaskError):
        sample.load()


def test_splitting_the_front_matter_changes_no_meaning(sample: Sample) -> None:
    # `workspace_files` in another place is read in one piece, at the end apart: both must give the same task.
    entry = TASK[TASK.index("workspace_files") : TASK.index("---\n\n")]
    last = sample.load()
    sample.task.write_text(TASK.replace(entry, "").replace("id:", f"{entry}id:", 1), encoding="utf-8")
    first = sample.load()
    assert first.brief == last.brief


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason="the benchmark's own files are not here")
def test_real_task_files_load_as_they_are(tmp_path: Path) -> None:
    shutil.copytree(UPSTREAM / "assets/qa_gold", tmp_path / "assets/qa_gold")
    shutil.copytree(UPSTREAM / "tasks", tmp_path / "tasks")
    first = next(iter(sorted((tmp_path / "tasks").iterdir())))
    for source in {word for word in first.read_text(encoding="utf-8").split('"') if word.startswith("database/")}:
        stub = tmp_path / "assets" / source
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text("id\n", encoding="utf-8")
    root = BenchmarkRoot(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tasks = {path.stem: load_task(path, root) for path in sorted((tmp_path / "tasks").iterdir())}
    assert [task.brief.task_id for task in tasks.values()] == list(tasks)
    assert len(tasks) >= 6
    assert {len(task.brief.workspace_files) for task in tasks.values()} == {19}
    for task in tasks.values():
        written = json.loads(task.gold.path.read_text(encoding="utf-8"))
        assert (task.gold.answer, list(task.gold.steps)) == (written["answer"], written["steps"])
        assert {m.key: m.value for m in task.gold.milestones} == written["milestone"]
        assert (task.brief.category, task.brief.level) == (
            written["metadata"]["category"],
            written["metadata"]["level"],
        )
        assert task.gold.question.strip() in task.brief.prompt
        assert "Gold answer" not in task.brief.prompt


def test_loading_imports_no_heavy_library() -> None:
    names = ("openai", "aiohttp", "docker", "dotenv", "pytest")
    code = f"import sys, pytest_dataclaw.collect.task_file; print([name for name in {names} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
