"""From a task file and its gold file to a Task."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.front_matter import read_front_matter
from pytest_dataclaw.collect.gold import read_gold
from pytest_dataclaw.collect.prompt import read_prompt
from pytest_dataclaw.collect.root import AssetError
from pytest_dataclaw.collect.source import read_source
from pytest_dataclaw.errors import TaskError
from pytest_dataclaw.model.task import Brief, Task

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.collect.fields import Fields
    from pytest_dataclaw.collect.gold import GoldFile
    from pytest_dataclaw.collect.root import BenchmarkRoot
    from pytest_dataclaw.model.task import WorkspaceFile

DEFAULT_TIMEOUT_SECONDS = 1200.0
WEB_CATEGORY = "international_comparison"
# Names a folder of results and the part of a node id after `::`.
_TASK_ID = re.compile(r"\w[\w.-]{0,199}")
_STEP_SCRIPT = re.compile(r"step_([0-9]{1,4})\.py")
_GRADING_TYPES = {"dataclaw": ("llm_judge",)}


def load_task(path: Path, root: BenchmarkRoot) -> Task:
    """Read and check a task file, its gold file, its step scripts and the presence of its workspace files.

    Raise TaskError at the first fault, with file, 1-based line and field where it has them; warn (TaskWarning) of a
    doubt.
    """
    source = read_source(path)
    front_matter = read_front_matter(source)
    fields = front_matter.fields
    task_id = _task_id(fields)
    category = fields.line_of_text("category")
    suite = _suite(fields)
    gold_file = _gold_file(fields, root)
    brief = Brief(
        task_id=task_id,
        name=fields.line_of_text("name", task_id),
        category=category,
        level=gold_file.level,
        prompt=read_prompt(source, front_matter.body_index),
        timeout_seconds=fields.seconds("timeout_seconds", DEFAULT_TIMEOUT_SECONDS),
        workspace_files=_workspace_files(fields, root),
        web=fields.get(bool, "web", category == WEB_CATEGORY),
        suite=suite,
    )
    gold = gold_file.gold
    if root.has_solutions:
        gold = replace(gold, solution=_solution(root.solution_dir(category, gold_file.gold_id), gold.steps_num))
    return Task(brief, gold, path, root.path, text_sha256=source.sha256, gold_sha256=gold_file.sha256)


def _task_id(fields: Fields) -> str:
    task_id = fields.get(str, "id")
    if _TASK_ID.fullmatch(task_id) is None:
        raise fields.error(f"expected up to 200 letters, digits, `_`, `-` and `.`, got {task_id!r}", "id")
    return task_id


def _suite(fields: Fields) -> str:
    suite = fields.get(str, "suite", "dataclaw")
    if suite not in _GRADING_TYPES:
        raise fields.error(f"unknown suite {suite!r}, expected one of: {', '.join(_GRADING_TYPES)}", "suite")
    grading_type = fields.get(str, "grading_type")
    known = _GRADING_TYPES[suite]
    if grading_type not in known:
        message = f"unknown grading type {grading_type!r}, expected one of: {', '.join(known)}"
        raise fields.error(message, "grading_type")
    return suite


def _gold_file(fields: Fields, root: BenchmarkRoot) -> GoldFile:
    try:
        path = root.asset(fields.get(str, "gold_file"))
    except AssetError as exc:
        raise fields.error(str(exc), "gold_file") from exc
    return read_gold(path)


def _workspace_files(fields: Fields, root: BenchmarkRoot) -> tuple[WorkspaceFile, ...]:
    entries = fields.get(list, "workspace_files")
    latest, latest_files = root.latest_list
    if entries == latest:
        return latest_files
    files: list[WorkspaceFile] = []
    for index, entry in enumerate(entries):
        place = ("workspace_files", index)
        fields.check(dict, entry, *place)
        for key in ("source", "dest"):
            if key not in entry:
                raise fields.error("missing field, expected a path", *place, key)
            fields.check(str, entry[key], *place, key)
        try:
            files.append(root.workspace_file(entry["source"], entry["dest"]))
        except AssetError as exc:
            raise fields.error(str(exc), *place, exc.key) from exc
    seen = set()
    for index, file in enumerate(files):
        if file.dest in seen:
            message = f"{file.dest} is already the place of another workspace file"
            raise fields.error(message, "workspace_files", index, "dest")
        seen.add(file.dest)
    root.latest_list = entries, tuple(files)
    return tuple(files)


def _solution(folder: Path, steps_num: int) -> tuple[str, ...]:
    """Return the step scripts in order; other files of the folder are what they read."""
    if not folder.is_dir():
        return ()
    matches = ((_STEP_SCRIPT.fullmatch(path.name), path) for path in folder.iterdir())
    scripts = sorted((int(match[1]), path) for match, path in matches if match)
    if [number for number, _ in scripts] != list(range(1, steps_num + 1)):
        found = ", ".join(path.name for _, path in scripts) or "none"
        raise TaskError(folder, f"expected one script for each of the {steps_num} steps, found {found}")
    return tuple(read_source(path).text for _, path in scripts)
