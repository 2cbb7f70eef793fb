"""Which part of the benchmark a call runs: a selection has its own progress and summary file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.discover import find_task_files
from pytest_dataclaw.collect.select import SuiteFilter
from pytest_dataclaw.errors import TaskError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_dataclaw.plugin.activation import Run
    from pytest_dataclaw.settings import Settings

_PYTEST_OPTIONS = (
    ("keyword", "-k"),
    ("markexpr", "-m"),
    ("deselect", "--deselect"),
    ("ignore", "--ignore"),
    ("ignore_glob", "--ignore-glob"),
    ("lf", "--lf"),
    ("stepwise", "--stepwise"),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What narrows a call down, in words; "" for the whole benchmark."""

    text: str

    @classmethod
    def of(cls, config: pytest.Config, settings: Settings) -> Selection:
        """Name every option and argument of the call that leaves tasks out."""
        words = [
            f"{flag} {value}" if value is not True else flag
            for name, flag in _PYTEST_OPTIONS
            if (value := config.getoption(name, None))
        ]
        if settings.suite:
            words.append(f"--dataclaw-suite {settings.suite}")
        words.extend(argument for argument in config.args if "::" in argument or argument.endswith(".md"))
        return cls(" ".join(words))

    @property
    def key(self) -> str:
        """Return a short file-name part that stands for the selection; "" for the whole benchmark."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8] if self.text else ""


def count_trials(run: Run) -> int:
    """Count the trials of the whole benchmark: task files below the root times runs."""
    folder = run.root.path / run.settings.tasks_subdir
    return sum(1 for _ in find_task_files([folder])) * run.settings.runs if folder.is_dir() else 0


def check_suite(run: Run) -> None:
    """Raise UsageError naming the entries of `--dataclaw-suite` that match no task.

    The ids met while collecting are taken where there are any; xdist's controller collects none, so there the file
    names are tried first, then the ids in the files.
    """
    wanted = SuiteFilter.parse(run.settings.suite)
    if run.task_ids:
        unknown = wanted.unknown(run.task_ids)
    else:
        files = list(find_task_files([run.root.path / run.settings.tasks_subdir]))
        unknown = wanted.unknown([path.stem for path in files])
        if unknown:
            unknown = wanted.unknown(_ids(run, files))
    if unknown:
        raise UsageError(f"--dataclaw-suite: no task has the id or id prefix {', '.join(unknown)}")


def _ids(run: Run, files: list[Path]) -> list[str]:
    from pytest_dataclaw.collect.task_file import load_task

    ids = []
    for path in files:
        try:
            ids.append(load_task(path, run.root).brief.task_id)
        except TaskError:  # the workers report it as a collection error
            continue
    return ids
