"""A synthetic benchmark root for measuring: 492 task files with their gold files and 19 small workspace files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TASKS = 492
_FOLDERS = {"enterprise": 9, "industry": 6, "policy": 2}
_CATEGORIES = ("alpha_analysis", "beta_planning", "gamma_assessment")
_LEVELS = ("easy", "medium", "hard")


def make_root(path: Path, tasks: int = TASKS) -> Path:
    """Write a root below a folder that exists; return it."""
    names = ["aliases.json", "metrics.csv"]
    names += [f"{folder}/table_of_values_number_{n:02}.csv" for folder, count in _FOLDERS.items() for n in range(count)]
    for name in names:
        _write(path / "assets" / "database" / name, "id,year,value\n1,2022,3.5\n")
    files = json.dumps([{"source": f"database/{name}", "dest": f"database/{name}"} for name in sorted(names)], indent=2)
    for number in range(1, tasks + 1):
        _write_task(path, number, files)
    return path


def front_matter(text: str) -> str:
    """Return the YAML text between the two `---` lines of a task file."""
    return text.split("\n---\n", 1)[0].removeprefix("---\n")


def _write_task(path: Path, number: int, files: str) -> None:
    category, level = _CATEGORIES[number % 3], _LEVELS[number % 3]
    gold_id = f"{level}{number:03}"
    task_id = f"task_{number:03}_{category}_{level}_{gold_id}"
    question = f"Which of the firms of group {number} had the larger value in 2022, and by how much? " * 4
    gold = {
        "id": gold_id,
        "question": question,
        "guidelines": "Give the name, then the difference with 2 decimal places.",
        "answer": [f"Firm {number}", number / 8],
        "metadata": {"db": "synthetic", "level": level, "category": category},
        "steps": [f"Step {step} filters the rows of group {number} and sums the values. " * 2 for step in range(6)],
        "steps_num": 6,
        "milestone": {f"Sum after step {step} (yuan)": number * step / 8 for step in range(6)},
    }
    gold_file = f"qa_gold/{category}/{gold_id}.json"
    _write(path / "assets" / gold_file, json.dumps(gold, indent=2))
    header = (
        f"id: {task_id}\nname: {category}-{level}-{gold_id}\ncategory: {category}\ngrading_type: llm_judge\n"
        f"timeout_seconds: 1200\ngold_file: {gold_file}\nworkspace_files: {files}\n"
    )
    body = f"## Prompt\n\n{question}\n\n## LLM Judge Rubric\n\n`{json.dumps(gold['answer'])}`\n"
    _write(path / "tasks" / f"{task_id}.md", f"---\n{header}---\n\n{body}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
