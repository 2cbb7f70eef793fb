"""What pytest hears of a trial: report phase, properties, words, failure text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import InfrastructureError, UsageError
from pytest_dataclaw.model.result import EndReason, Outcome, Record
from pytest_dataclaw.plugin.activation import RUN, USAGE_ERROR, is_worker
from pytest_dataclaw.plugin.selection import check_suite

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from pytest_dataclaw.model.task import Task

PROPERTY = "dataclaw"
_GOT_LIMIT = 500
_ASKED_LIMIT = 300


class TrialUnsolved(Exception):  # noqa: N818  # an outcome, not an error
    """The agent did not solve the task: the item fails."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.detail)
        self.record = record


class TrialErrored(Exception):  # noqa: N818  # named for the outcome
    """The trial failed for reasons outside the agent: the item is an error."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.detail)
        self.record = record


class TrialReports:
    """Hooks of every process that runs trials."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Start nothing after a usage error, nor (as pytest does, but not xdist) beside a file that is broken."""
        from pytest_dataclaw.plugin.nodes import TaskItem

        if USAGE_ERROR in self._config.stash:
            raise pytest.UsageError(str(self._config.stash[USAGE_ERROR]))
        if not is_worker(self._config):
            try:
                check_suite(self._config.stash[RUN])
            except UsageError as error:
                raise pytest.UsageError(str(error)) from None
        if session.testsfailed and not self._config.option.continue_on_collection_errors:
            items[:] = [item for item in items if not isinstance(item, TaskItem)]

    def pytest_sessionfinish(self) -> None:
        """Let go of what this process's sandboxes needed."""
        run = self._config.stash.get(RUN, None)
        if run is not None and "provider" in vars(run):
            run.provider.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Make sure that a failed trial has a record, publish it, and report infrastructure trouble as an error."""
        from pytest_dataclaw.plugin.nodes import TaskItem

        if not isinstance(item, TaskItem):
            return (yield)
        error = call.excinfo.value if call.excinfo is not None else None
        trial = item.trial
        if trial is None:  # another plugin failed or skipped the item before its setup
            return (yield)
        if _failed_before_its_record(error) and trial.record is None:
            trial.fail(EndReason.SANDBOX_ERROR, f"{call.when}: {type(error).__name__}: {error}")
        if trial.record is not None and call.when in ("setup", "call"):
            _publish(item, trial.record, trial.record_path)
        report = yield
        if isinstance(error, InfrastructureError):
            # pytest uses repr_failure for the call phase only.
            report.longrepr = str(error)
        if call.when == "call" and trial.record is not None and trial.record.outcome is Outcome.ERRORED:
            # JUnit counts by phase: only a failed setup is an <error> there.
            report.when = "setup"
        return report

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
        """Say the outcome in -v; the categories stay pytest's own."""
        told = dict(getattr(report, "user_properties", ())).get(PROPERTY)
        if told is None or report.when == "teardown" or report.outcome == "skipped":
            return None
        facts = json.loads(str(told))
        if report.when == "setup":
            return ("error", "E", (f"ERRORED {facts['end_reason']}", {"red": True})) if report.failed else None
        acc = f" acc={facts['scores']['acc']:.2f}" if facts["scores"] else ""
        word = f"{facts['outcome'].upper()}{acc}"
        if report.passed:
            return "passed", ".", (word, {"green": True})
        return "failed", "F", (word, {"red": True})


def failure_text(record: Record, task: Task, path: Path | None, show_gold: bool) -> str:
    """Tell a failed trial: what was asked for, what was got, the reason, where the record is; gold only if asked."""
    head = f"{record.outcome.value} ({record.end_reason.value})"
    if record.outcome is Outcome.ERRORED:
        return f"{head}: {record.detail}\nrecord: {path}"
    acc = record.scores.acc if record.scores else 0.0
    reason = record.detail
    if not show_gold and _names_gold(reason, task):
        reason = "(names the gold answer; --dataclaw-show-gold shows it)"
    lines = [
        f"{head} acc={acc:.2f}: {_clip(reason, _GOT_LIMIT)}",
        f"asked:  {_clip(task.gold.question, _ASKED_LIMIT)}",
        f"format: {_clip(task.gold.guidelines, _ASKED_LIMIT)}",
        f"got:    {_clip(record.answer, _GOT_LIMIT) or '(no answer)'}",
    ]
    if show_gold:
        lines.append(f"gold:   {json.dumps(task.gold.answer, ensure_ascii=False)}")
    return "\n".join([*lines, f"record: {path}"])


def _failed_before_its_record(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception))


def _publish(item: pytest.Item, record: Record, path: Path | None) -> None:
    """Put the record's path and the scores on the item, replacing an earlier rerun's; plain strings only.

    Anything but builtins kills an xdist worker, so the scores travel as one JSON string.
    """
    scores = record.scores
    values = (
        {} if scores is None else {n: getattr(scores, n) for n in ("acc", "ee", "gpr", "tpe", "tpe_achieved", "tgpr")}
    )
    facts = {
        "record": str(path),
        "outcome": record.outcome.value,
        "end_reason": record.end_reason.value,
        "scores": values or None,
    }
    flat = {"outcome": record.outcome.value, "end_reason": record.end_reason.value}
    flat.update({name: f"{value:.6g}" for name, value in values.items() if value is not None})
    item.user_properties[:] = [(k, v) for k, v in item.user_properties if k.split(".")[0] != PROPERTY]
    item.user_properties.append((PROPERTY, json.dumps(facts)))
    item.user_properties.extend((f"{PROPERTY}.{name}", value) for name, value in flat.items())


def _names_gold(text: str, task: Task) -> bool:
    return any(str(part) in text for part in task.gold.parts if len(str(part)) > 2)


def _clip(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."
