"""From task files to items: a task file is a module, each trial of it an item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.collect.task_file import load_task
from pytest_dataclaw.errors import InfrastructureError, TaskError
from pytest_dataclaw.model.result import EndReason, Outcome, Record
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.plugin.activation import RUN, USAGE_ERROR, Run
from pytest_dataclaw.plugin.reporting import TrialErrored, TrialUnsolved, failure_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_dataclaw.model.task import Task
    from pytest_dataclaw.record.index import StoredRecord
    from pytest_dataclaw.trial import Trial


def trial(dataclaw_sandbox: Any, dataclaw_agent: Any, dataclaw_judge: Any, dataclaw_proxy: Any) -> None:
    """Name the fixtures of a trial; the item calls the trial itself."""


def rejudged_trial(dataclaw_judge: Any, dataclaw_proxy: Any) -> None:
    """Name the fixtures of a trial of which only the judge's part is missing."""


def recorded_trial() -> None:
    """Need nothing: the resumed run has this trial's outcome."""


class TaskModule(pytest.Module):
    """A task file. A Module, since module-scoped fixtures of a user's conftest need one; it has no Python object."""

    obj = None

    def collect(self) -> Iterator[TaskItem]:
        """Read the task and yield its trials; a broken file is a collection error."""
        if USAGE_ERROR in self.config.stash:
            return
        run = self.config.stash[RUN]
        try:
            task = load_task(self.path, run.root)
            run.root.aliases()  # read once, here, so that a broken map is a collection error too
        except TaskError as error:
            raise self.CollectError(str(error)) from None
        task_id = task.brief.task_id
        first = run.task_ids.setdefault(task_id, self.path)
        if first != self.path:
            raise self.CollectError(f"{self.path}: id: {task_id!r} is the id of {first} too")
        if not run.suite.matches(task_id):
            return
        marks = (self._mark(run, "category", task.brief.category), self._mark(run, "level", task.brief.level))
        for repeat in range(1, run.settings.runs + 1):
            item = TaskItem.of(self, run, task, repeat)
            for mark in marks:
                if mark is not None:
                    item.add_marker(mark)
            yield item

    def _mark(self, run: Run, kind: str, word: str) -> pytest.MarkDecorator | None:
        """Register a category or level as a marker, spelt so that -m can name it; None for a word without letters."""
        known = run.marks.get((kind, word))
        if known is None and (name := re.sub(r"\W+", "_", word)):
            line = f"{name}: benchmark tasks of {kind} {word!r}"
            if line not in self.config.getini("markers"):
                self.config.addinivalue_line("markers", line)
            known = run.marks[kind, word] = getattr(pytest.mark, name)
        return known


class TaskItem(pytest.Function):
    """One trial of a task."""

    run: Run
    task: Task
    key: TrialKey
    trial: Trial | None = None
    """The trial under way, fresh for every rerun; None before the item is set up."""
    prior: StoredRecord | None
    """The record of this trial that a resumed run has on disk, and where."""

    @classmethod
    def of(cls, parent: TaskModule, run: Run, task: Task, repeat: int) -> TaskItem:
        """Make the item of a task's n-th trial; `[run2]` and so on from the second."""
        name = task.brief.task_id if repeat == 1 else f"{task.brief.task_id}[run{repeat}]"
        prior = run.prior.get(f"{parent.nodeid}::{name}") if run.prior else None
        if prior is not None and not _is_valid_for(prior.record, task):
            prior = None
        item: TaskItem = cls.from_parent(parent, name=name, callobj=_stages(prior))
        item.run, item.task, item.prior = run, task, prior
        item.key = TrialKey(run.run_id, item.nodeid, task.brief.task_id, repeat)
        return item

    def setup(self) -> None:
        """Begin a fresh trial (a rerun is one), then set the fixtures up."""
        from pytest_dataclaw.judge.rules import RulesJudge
        from pytest_dataclaw.trial import Trial

        self.trial = Trial(self.task, self.key, self.run.settings, RulesJudge(), self.run.root.aliases())
        super().setup()

    def runtest(self) -> None:
        """Run the trial, or what is missing of it; raise unless it is solved."""
        assert self.trial is not None  # made by setup
        record = self._record(self.trial)
        if record.outcome is Outcome.UNSOLVED:
            raise TrialUnsolved(record)
        if record.outcome is Outcome.ERRORED:
            raise TrialErrored(record)

    def _record(self, trial: Trial) -> Record:
        if self.prior is None:
            sandbox, agent = self.funcargs["dataclaw_sandbox"], self.funcargs["dataclaw_agent"]
            return trial.run(sandbox, agent, *self._judging())  # type: ignore[arg-type]  # funcargs are untyped
        if _lacks_judge_only(self.prior.record):
            return trial.rejudge(self.prior.record, self.prior.path.parent, *self._judging())
        trial.record, trial.record_path = self.prior.record, self.prior.path
        return self.prior.record

    def _judging(self) -> tuple[Any, Any]:
        return self.funcargs["dataclaw_judge"], self.funcargs["dataclaw_proxy"]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]  # as pytest's own
        """Tell a failed trial in its own words; anything else as pytest does."""
        if isinstance(excinfo.value, (TrialUnsolved, TrialErrored)):
            return failure_text(excinfo.value.record, self.task, self.record_path, self.run.settings.show_gold)
        if isinstance(excinfo.value, InfrastructureError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    @property
    def record_path(self) -> Path | None:
        """Where the trial's record lies; None where there is none yet."""
        return self.trial.record_path if self.trial is not None else None

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Place the item at its file's first line."""
        return self.path, 0, self.name


def _stages(prior: StoredRecord | None) -> Callable[..., None]:
    if prior is None:
        return trial
    return rejudged_trial if _lacks_judge_only(prior.record) else recorded_trial


def _lacks_judge_only(record: Record) -> bool:
    return record.end_reason is EndReason.JUDGE_ERROR


def _is_valid_for(prior: Record, task: Task) -> bool:
    """Whether a record spares a trial of the task as it stands now: judged, or lacking its judge only."""
    if prior.outcome is Outcome.ERRORED and not _lacks_judge_only(prior):
        return False
    digests = prior.setup.digests
    return (digests.get("task"), digests.get("gold")) == (task.text_sha256, task.gold_sha256)
