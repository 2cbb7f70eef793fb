"""A benchmark task in two halves: what the agent may see, and what only the host may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file the agent gets: `source` on the host (absolute), `dest` below the workspace (relative, no `..`)."""

    source: Path
    dest: PurePosixPath


@dataclass(frozen=True, slots=True)
class Brief:
    """All that the agent and its sandbox may know of a task."""

    task_id: str
    name: str
    category: str
    level: str
    """`easy`, `medium`, `hard`, or "" where the gold file does not say."""
    prompt: str
    timeout_seconds: float
    workspace_files: tuple[WorkspaceFile, ...]
    web: bool
    """Whether the task may use the web; every other trial is sealed."""
    suite: str = "dataclaw"


@dataclass(frozen=True, slots=True)
class Milestone:
    """An intermediate result of the gold solution."""

    key: str
    value: Json


@dataclass(frozen=True, slots=True)
class Gold:
    """What only the host may know: never handed to a sandbox or an agent."""

    question: str
    guidelines: str
    answer: Json
    steps: tuple[str, ...]
    steps_num: int
    """N of the formulas: `steps_num` of the file, else the number of steps."""
    milestones: tuple[Milestone, ...]
    solution: tuple[str, ...]
    """Step scripts (standard-library Python), one per step; empty where the task ships none."""
    path: Path

    @property
    def parts(self) -> tuple[Json, ...]:
        """The gold answer as parts that are scored one by one: the items of a list, else the answer itself."""
        return tuple(self.answer) if isinstance(self.answer, list) else (self.answer,)


@dataclass(frozen=True, slots=True)
class Task:
    """A task file, read and checked."""

    brief: Brief
    gold: Gold
    path: Path
    root: Path
    """The benchmark root: the folder that holds `assets/`."""
    text_sha256: str
    gold_sha256: str
