"""Read a gold file (or the raw file it is made from): what only the host may know of a task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.fields import Fields
from pytest_dataclaw.collect.json_text import parse_json
from pytest_dataclaw.collect.source import read_source
from pytest_dataclaw.errors import TaskError, TaskWarning
from pytest_dataclaw.model.task import Gold, Milestone

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.task import Json


@dataclass(frozen=True, slots=True)
class GoldFile:
    """A gold file, read and checked. `gold` has no solution yet; `values` are all fields of the file, as they are."""

    gold_id: str
    level: str
    gold: Gold
    values: dict[str, Json]
    fields: Fields
    sha256: str


def read_gold(path: Path) -> GoldFile:
    """Read `id`, `question`, `answer` (any JSON value, null too) and, where present, the other fields.

    Raise TaskError for what is absent or of the wrong type; warn (TaskWarning) where `steps_num` is not the number of
    `steps`.
    """
    source = read_source(path)
    values = parse_json(source)
    if not isinstance(values, dict):
        raise TaskError(path, "expected a JSON object", line=1)
    fields = Fields(path, values, source.text)
    if "answer" not in values:
        raise fields.error("missing field, expected the gold answer", "answer")
    gold_id = fields.line_of_text("id")
    steps = fields.texts("steps", ())
    gold = Gold(
        question=fields.get(str, "question"),
        guidelines=fields.get(str, "guidelines", ""),
        answer=values["answer"],
        steps=steps,
        steps_num=_steps_num(fields, steps),
        milestones=tuple(Milestone(key, value) for key, value in fields.get(dict, "milestone", {}).items()),
        solution=(),
        path=path,
    )
    return GoldFile(gold_id, _level(fields), gold, values, fields, source.sha256)


def _steps_num(fields: Fields, steps: tuple[str, ...]) -> int:
    number = fields.get(int, "steps_num", len(steps))
    if number < 0:
        raise fields.error(f"expected a whole number, 0 or more, got {number}", "steps_num")
    if "steps" in fields.values and number != len(steps):
        warnings.warn(TaskWarning(f"{fields.path}: steps_num is {number}, but steps has {len(steps)}"), stacklevel=2)
    return number


def _level(fields: Fields) -> str:
    level = fields.get(dict, "metadata", {}).get("level", "")
    return fields.check(str, level, "metadata", "level")
