"""The controller of a run: identity, lock, progress, model proxy; and at the end the summary.

Lives in the only process without xdist, in xdist's controller with it; never in a worker. It reads records from disk,
so what it says does not depend on what reports came through.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.model.result import Outcome
from pytest_dataclaw.plugin.activation import WORKER_INPUT, Run, load_prior
from pytest_dataclaw.plugin.assembly import check_machine, make_proxy, web_search_off
from pytest_dataclaw.plugin.selection import Selection, check_suite, count_trials
from pytest_dataclaw.record.index import RunIndex
from pytest_dataclaw.record.lock import RunLock, lock_path
from pytest_dataclaw.record.progress import Progress, differences, progress_path
from pytest_dataclaw.record.progress import remove as remove_progress
from pytest_dataclaw.record.store import slug, write_json
from pytest_dataclaw.report import json_summary
from pytest_dataclaw.report.gate import parse_gate
from pytest_dataclaw.report.summary import RunFacts, Summary, summarize
from pytest_dataclaw.report.text import render
from pytest_dataclaw.settings import BUILT_IN_MODELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_dataclaw.model.task import Json
    from pytest_dataclaw.proxy.server import ProxyServer


class Controller:
    """Begins the run before the first trial and sums it up after the last."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._selection = Selection.of(config, run.settings)
        self._slug = slug(run.settings.model)
        self._gate = parse_gate(run.settings.fail_under) if run.settings.fail_under else None
        self._planned: tuple[str, ...] = ()
        self._errors: dict[str, str] = {}
        """Why an item failed before or beside its trial, by node id."""
        self._foreign_failure = False
        self._begun = False
        self._server: ProxyServer | None = None
        self._lock: RunLock | None = None
        self._summary: Summary | None = None
        self._summary_file = json_summary.summary_path(run.settings.output, self._slug, self._selection.key)
        self._clock = time.monotonic()

    # -- beginning ----------------------------------------------------------------------------------------------

    def identify(self) -> None:
        """On resume, take the incomplete run's id; refuse where its parameters differ from these."""
        if not self._run.settings.resume:
            return
        path = self._progress_path()
        old = Progress.read(path)
        if old is None:
            raise UsageError(f"--dataclaw-resume: no incomplete run of this model and selection (looked for {path})")
        changed = differences(old.parameters, self._parameters())
        if changed:
            raise UsageError(f"--dataclaw-resume: not the run in {path}:\n  " + "\n  ".join(changed))
        self._run.run_id = old.run_id
        load_prior(self._run)

    def begin(self) -> None:
        """Take the lock, then start the model proxy; nothing was spent before this."""
        settings = self._run.settings
        try:
            check_suite(self._run)
            settings.output.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock(lock_path(settings.output, self._slug), self._run.run_id)
            self._lock.acquire()
            check_machine(settings)
            server = make_proxy(settings)
        except UsageError as error:
            self._end()
            raise pytest.UsageError(str(error)) from None
        self._config.add_cleanup(self._end)
        self._server = server
        self._run.address = self._server.start()
        self._begun = True
        self._tell()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist: begin once it is known that there are trials to run."""
        from pytest_dataclaw.plugin.nodes import TaskItem

        items = [item for item in session.items if isinstance(item, TaskItem)]
        broken = session.testsfailed and not session.config.option.continue_on_collection_errors
        if items and not broken:
            self.begin()
            self._plan([item.nodeid for item in items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist which run it belongs to and where the proxy is."""
        assert self._run.address is not None  # begun before the nodes are set up
        identity = {"run_id": self._run.run_id, "address": asdict(self._run.address)}
        node.workerinput[WORKER_INPUT] = json.dumps(identity)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """With xdist: learn the planned trials from the first worker that has collected."""
        if self._begun and not self._planned:
            self._plan([i for i in ids if i.split("::", 1)[0].endswith(".md")])

    def _plan(self, node_ids: list[str]) -> None:
        """Write the progress file, before the first trial."""
        self._planned = tuple(node_ids)
        path = self._progress_path()
        if self._run.settings.resume:
            before = Progress.read(path)
            old = set(before.planned) if before is not None else set()
            if old and old != set(node_ids):
                raise pytest.UsageError(
                    f"--dataclaw-resume: {len(node_ids)} trials are selected now, {len(old)} were planned "
                    f"({len(old ^ set(node_ids))} differ); see {path}"
                )
        elif path.exists():
            # An incomplete run is put aside, not lost: its records stay, and so does its plan.
            path.rename(path.with_suffix(f".{datetime.now(timezone.utc):%Y%m%d-%H%M%S}.json"))
        Progress(
            run_id=self._run.run_id,
            model=self._run.settings.model,
            parameters=self._parameters(),
            planned=list(node_ids),
            started_at=datetime.now(timezone.utc).isoformat(),
        ).write(path)

    def _progress_path(self) -> Path:
        return progress_path(self._run.settings.output, self._slug, self._selection.key)

    def _parameters(self) -> dict[str, Json]:
        """What a resumed run must agree on."""
        settings = self._run.settings
        return {
            "model": settings.model,
            "judge": settings.judge,
            "agent": settings.agent,
            "sandbox": settings.sandbox,
            "profile": settings.profile,
            "runs": settings.runs,
            "suite": settings.suite,
            "timeout_multiplier": settings.timeout_multiplier,
            "max_requests": settings.max_requests,
            "process": settings.process,
            "root": str(self._run.root.path),
            "selection": self._selection.text,
        }

    # -- while it runs ------------------------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """A worker died: a trial whose record is on disk keeps its outcome, any other is an error."""
        found = RunIndex(self._run.settings.output, self._run.run_id).latest().get(crashitem)
        if found is not None and found.record.outcome is Outcome.SOLVED:
            report.when, report.outcome, report.longrepr = "call", "passed", None
        elif found is not None and found.record.outcome is Outcome.UNSOLVED:
            report.when = "call"
        else:
            report.when = "setup"
            self._errors[crashitem] = "the worker process died"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note failures that have no record, and failures that are not ours (a gate must not hide them)."""
        if not report.failed:
            return
        if report.nodeid not in self._planned:
            self._foreign_failure = True
        elif report.when != "call":
            self._errors.setdefault(report.nodeid, f"{report.when} failed")

    # -- the end ------------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Sum up from the records, write the summary, drop the progress file if nothing is missing, set the gate."""
        if not self._begun or not self._planned:
            self._end()
            return
        index = RunIndex(self._run.settings.output, self._run.run_id)
        latest = index.latest()
        records = [latest[node_id].record for node_id in self._planned if node_id in latest]
        missing = {n: why for n, why in self._errors.items() if n not in latest}
        self._summary = summary = summarize(records, self._facts(), missing)
        write_json(self._summary_file, json_summary.to_json(summary))
        complete = len(records) == len(self._planned) and all(r.outcome is not Outcome.ERRORED for r in records)
        if complete:
            remove_progress(self._progress_path())
        if self._gate is not None and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            passed = self._gate.failed(summary) is None and not self._foreign_failure
            session.exitstatus = pytest.ExitCode.OK if passed else pytest.ExitCode.TESTS_FAILED
        self._end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the summary block."""
        if self._summary is None:
            return
        terminalreporter.section("dataclaw")
        width = terminalreporter._tw.fullwidth
        for line in render(self._summary, width=width, verbose=self._config.option.verbose > 0):
            terminalreporter.write_line(line)
        gate = self._gate.failed(self._summary) if self._gate is not None else None
        if gate:
            terminalreporter.write_line(gate, red=True)
        terminalreporter.write_line(f"summary: {self._summary_file}")
        if self._progress_path().exists():
            terminalreporter.write_line("incomplete: go on with --dataclaw-resume")

    def _end(self) -> None:
        """Stop the proxy, free the lock; idempotent, and called on every way out."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _facts(self) -> RunFacts:
        settings = self._run.settings
        return RunFacts(
            model=settings.model,
            judge=settings.judge,
            agent=settings.agent,
            profile=settings.profile if settings.agent == "openclaw" else "",
            sandbox=settings.sandbox,
            run_id=self._run.run_id,
            output=settings.output,
            suite=settings.suite,
            runs=settings.runs,
            planned=len(self._planned),
            total=max(len(self._planned), count_trials(self._run)),
            selection=self._selection.text,
            process=settings.process,
            isolated=settings.sandbox != "local",
            web_search_off=web_search_off(settings),
            wall_seconds=time.monotonic() - self._clock,
        )

    def _tell(self) -> None:
        """Say what is run and what of the settings was not taken."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or self._config.option.verbose < 0:
            return
        settings = self._run.settings
        verb = "resumes" if settings.resume else "is"
        reporter.ensure_newline()
        reporter.write_line(
            f"dataclaw: run {verb} {self._run.run_id}: model {settings.model}, agent {settings.agent}, "
            f"sandbox {settings.sandbox}, judge {settings.judge}; results in {settings.output}"
        )
        if settings.sandbox == "local" and settings.model not in BUILT_IN_MODELS:
            reporter.write_line("dataclaw: the local sandbox isolates nothing", yellow=True)
        for note in settings.notes:
            reporter.write_line(f"dataclaw: {note}")
