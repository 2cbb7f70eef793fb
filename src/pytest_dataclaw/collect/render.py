"""The text of a task file that `dataclaw build` makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.front_matter import read_front_matter
from pytest_dataclaw.collect.prompt import PROMPT, read_prompt
from pytest_dataclaw.collect.source import SourceText
from pytest_dataclaw.collect.task_file import DEFAULT_TIMEOUT_SECONDS, WEB_CATEGORY
from pytest_dataclaw.collect.yaml_text import YamlTextError, parse_yaml
from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.collect.gold import GoldFile

MARKER = "generated_by: dataclaw build"
_SEALED = "All the data you need are the files in `./database/`. Take nothing from anywhere else."
_WITH_WEB = "Work from the files in `./database/`; what they do not hold you may look up on the web."
_EXPECTED = "The agent works the answer out from the data in its workspace and states it in the form asked for."
_CRITERIA = (
    "- [ ] The answer means the same as the gold answer, part by part if that is a list.\n"
    "- [ ] The answer has the form that the prompt asks for."
)


def render_task(raw: GoldFile, task_id: str, category: str, gold_file: str, files: Sequence[str]) -> str:
    """Return a task file; `gold_file` and `files` are paths relative to `assets/`.

    Raise TaskError where the question would not come out of the file as it went in.
    """
    listed = json.dumps([{"source": name, "dest": name} for name in files], indent=2, ensure_ascii=False)
    header = "\n".join(
        (
            f"id: {_scalar(task_id)}",
            f"name: {_scalar(f'{category}-{raw.level}-{raw.gold_id}')}",
            f"category: {_scalar(category)}",
            "grading_type: llm_judge",
            f"timeout_seconds: {DEFAULT_TIMEOUT_SECONDS:.0f}",
            f"gold_file: {_scalar(gold_file)}",
            MARKER,
            f"workspace_files: {listed}",
        )
    )
    prompt = _prompt(raw, web=category == WEB_CATEGORY)
    text = (
        f"---\n{header}\n---\n\n## {PROMPT}\n\n{prompt}\n\n## Expected Behavior\n\n{_EXPECTED}\n\n"
        f"## Grading Criteria\n\n{_CRITERIA}\n\n## LLM Judge Rubric\n\n{_rubric(raw)}\n"
    )
    _check_prompt(raw, text, prompt)
    return text


def _prompt(raw: GoldFile, *, web: bool) -> str:
    asked = [raw.gold.question.strip()]
    if raw.gold.guidelines.strip():
        asked.append(f"Form of the answer:\n{raw.gold.guidelines.strip()}")
    return "\n\n".join((*asked, _WITH_WEB if web else _SEALED)).replace("\r\n", "\n").replace("\r", "\n")


def _rubric(raw: GoldFile) -> str:
    answer = json.dumps(raw.gold.answer, ensure_ascii=False)
    parts = len(raw.gold.parts)
    if isinstance(raw.gold.answer, list):
        score = f"Each of its {parts} parts counts 1 if it is right and 0 if not; the score is their mean."
    else:
        score = "The score is 1 if the answer is right and 0 if not."
    return f"Gold answer: `{answer}`\n\n{score}"


def _scalar(text: str) -> str:
    """Return YAML that reads as this text: the text itself unless YAML takes it for a number, a date or the like."""
    try:
        plain = parse_yaml(text) == text
    except YamlTextError:
        plain = False
    return text if plain else json.dumps(text, ensure_ascii=False)


def _check_prompt(raw: GoldFile, text: str, prompt: str) -> None:
    source = SourceText(raw.gold.path, text, "")
    try:
        unharmed = read_prompt(source, read_front_matter(source).body_index) == prompt
    except TaskError:
        unharmed = False
    if not unharmed:
        raise raw.fields.error("holds a line that reads as a heading of the task file", "question")
