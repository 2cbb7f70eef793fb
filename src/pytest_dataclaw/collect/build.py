"""`dataclaw build ROOT`: from raw questions to gold files and task files."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.gold import read_gold
from pytest_dataclaw.collect.render import MARKER, render_task
from pytest_dataclaw.collect.root import BILINGUAL_MAP
from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.collect.gold import GoldFile

RAW_SUFFIX = "_result.json"
GOLD_KEYS = ("id", "question", "guidelines", "answer", "metadata", "steps", "steps_num", "milestone")
PUBLISHED_FILES = (
    BILINGUAL_MAP,
    "database/enterprise/company_core.csv",
    "database/enterprise/company_operation_status.csv",
    "database/enterprise/company_operation_status_detail.csv",
    "database/enterprise/company_operation_yearly_status.csv",
    "database/enterprise/company_profile.csv",
    "database/enterprise/company_profile_as.csv",
    "database/enterprise/company_profile_eu.csv",
    "database/enterprise/company_profile_na.csv",
    "database/enterprise/company_profile_oc.csv",
    "database/industry/national_industry_status.csv",
    "database/industry/national_industry_status_detail.csv",
    "database/industry/national_industry_yearly_status.csv",
    "database/industry/regional_industry_status.csv",
    "database/industry/regional_industry_status_detail.csv",
    "database/industry/regional_industry_yearly_status.csv",
    "database/internal_metrics.csv",
    "database/policy/policy_release_status.csv",
    "database/policy/policy_resource.csv",
)
_NAME = re.compile(r"\w[\w-]*")
_TASK_NUMBER = re.compile(r"task_([0-9]+)_")
_MARKED = re.compile(rf"\A---\n(?:(?!---\n).*\n)*?{re.escape(MARKER)}\n")


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did, or with `check` would do; `notes` are for a person to look at."""

    written: tuple[Path, ...]
    unchanged: tuple[Path, ...]
    removed: tuple[Path, ...]
    notes: tuple[str, ...]


def build(root: Path, *, check: bool = False) -> BuildReport:
    """Write `assets/qa_gold/` and `tasks/` from `assets/qa_raw/`; with `check` only say what would be done.

    A gold file is derived from its raw file and overwritten where it differs. Task files carry a mark in their front
    matter: only marked ones are overwritten, or removed once no raw file leads to them; an unmarked one in the place
    of a task that would differ is a TaskError. Everything is read and checked before anything is written; files
    that are as they should be are not touched.
    """
    raws = _raw_files(root)
    files, notes = _workspace_files(root)
    targets: dict[Path, str] = {}
    for number, (path, category) in enumerate(raws, start=1):
        raw = _read_raw(path, category)
        gold_file = f"qa_gold/{category}/{raw.gold_id}.json"
        targets[root / "assets" / gold_file] = _gold_text(raw)
        task_id = f"task_{number:03}_{category}_{raw.level}_{raw.gold_id}"
        targets[root / "tasks" / f"{task_id}.md"] = render_task(raw, task_id, category, gold_file, files)
    changed = {path: text for path, text in targets.items() if _current(path) != text.encode()}
    _refuse_foreign(root, changed)
    stale, stale_notes = _stale_tasks(root, targets, len(raws))
    if not check:
        for path, text in changed.items():
            _write(path, text)
        for path in stale:
            path.unlink()
    unchanged = tuple(path for path in targets if path not in changed)
    return BuildReport(tuple(changed), unchanged, stale, (*notes, *stale_notes, *_orphan_gold(root, targets)))


def _raw_files(root: Path) -> list[tuple[Path, str]]:
    """Return the raw files, each with its category, in the order that numbers the tasks."""
    folder = root / "assets" / "qa_raw"
    paths = sorted(folder.glob(f"[!.]*/[!.]*{RAW_SUFFIX}"), key=lambda path: (path.parent.name, path.name))
    if not paths:
        raise TaskError(folder, f"expected raw files at <category>/<id>{RAW_SUFFIX}, found none")
    for path in paths:
        if _NAME.fullmatch(path.parent.name) is None:
            raise TaskError(path.parent, "expected a category of letters, digits, `_` and `-`")
    return [(path, path.parent.name) for path in paths]


def _read_raw(path: Path, category: str) -> GoldFile:
    raw = read_gold(path)
    expected = path.name.removesuffix(RAW_SUFFIX)
    if raw.gold_id != expected:
        raise raw.fields.error(f"expected {expected!r} as in the file's name, got {raw.gold_id!r}", "id")
    if _NAME.fullmatch(raw.gold_id) is None:
        raise raw.fields.error(f"expected letters, digits, `_` and `-`, got {raw.gold_id!r}", "id")
    if _NAME.fullmatch(raw.level) is None:
        raise raw.fields.error(f"expected a level such as easy, medium or hard, got {raw.level!r}", "metadata", "level")
    named = raw.fields.get(dict, "metadata").get("category", category)
    if named != category:
        raise raw.fields.error(f"expected {category!r} as the folder's name, got {named!r}", "metadata", "category")
    return raw


def _gold_text(raw: GoldFile) -> str:
    gold = raw.gold
    derived = {"guidelines": gold.guidelines, "steps": list(gold.steps), "steps_num": gold.steps_num, "milestone": {}}
    values = derived | raw.values
    return json.dumps({key: values[key] for key in GOLD_KEYS}, indent=2, ensure_ascii=False)


def _workspace_files(root: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return the data files below `assets/`, sorted, and a note on those of the published set that are not there."""
    assets = root / "assets"
    paths = (path for path in (assets / "database").rglob("*") if path.is_file())
    relative = (path.relative_to(assets) for path in paths)
    files = sorted(path.as_posix() for path in relative if not any(part.startswith(".") for part in path.parts))
    absent = [name for name in PUBLISHED_FILES if name not in files]
    if not absent:
        return files, ()
    return files, (f"{len(absent)} of the {len(PUBLISHED_FILES)} published data files absent: {', '.join(absent)}",)


def _current(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise TaskError(path, f"cannot be read: {exc.strerror or exc}") from exc


def _is_marked(path: Path) -> bool:
    text = (_current(path) or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return _MARKED.match(text) is not None


def _refuse_foreign(root: Path, changed: dict[Path, str]) -> None:
    for path in changed:
        if path.parent == root / "tasks" and path.exists() and not _is_marked(path):
            message = f"differs from what its raw file gives and was not made by `dataclaw build` (no `{MARKER}`)"
            raise TaskError(path, f"{message}; move it away to have it built")


def _stale_tasks(root: Path, targets: dict[Path, str], count: int) -> tuple[tuple[Path, ...], list[str]]:
    """Return marked task files that no raw file leads to, and notes on others that bear the number of a task."""
    stale = []
    notes = []
    for path in sorted((root / "tasks").glob("task_*.md")):
        if path in targets:
            continue
        number = _TASK_NUMBER.match(path.name)
        if _is_marked(path):
            stale.append(path)
        elif number and 1 <= int(number[1]) <= count:
            notes.append(f"{path} bears the number of another task; not made by `dataclaw build`, left alone")
    return tuple(stale), notes


def _orphan_gold(root: Path, targets: dict[Path, str]) -> list[str]:
    paths = sorted((root / "assets" / "qa_gold").glob("*/*.json"))
    return [f"{path} has no raw file; left alone" for path in paths if path not in targets]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(text.encode())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
