"""The life of a trial, in order: provision, drive, judge, score, record.

A trial has exactly one record per attempt at it, on disk before pytest hears of the outcome. What goes wrong on the
agent's side is judged on what was produced; what goes wrong elsewhere is recorded as errored, never as a score.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pytest_dataclaw import __version__
from pytest_dataclaw.ending import Attempt, how_it_ended, why
from pytest_dataclaw.errors import InfrastructureError, JudgeError
from pytest_dataclaw.model.result import EndReason, Outcome, Record, Setup
from pytest_dataclaw.model.run import Deadline
from pytest_dataclaw.model.trajectory import Traffic, Usage
from pytest_dataclaw.proxy.base import Egress, LeaseRequest, Script
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.record.store import TrialFolder
from pytest_dataclaw.suites.dataclaw import scoring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_dataclaw.drive.base import Agent
    from pytest_dataclaw.judge.base import Case, Judge
    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.model.task import Task
    from pytest_dataclaw.model.verdict import OutcomeVerdict, ProcessVerdict
    from pytest_dataclaw.provision.base import Sandbox, SandboxProvider
    from pytest_dataclaw.proxy.base import Proxy
    from pytest_dataclaw.settings import Settings


@dataclass(frozen=True, slots=True)
class Rulings:
    """All that was ruled on an attempt: by the judge whose word is the score, and by `rules` beside it."""

    outcome: OutcomeVerdict
    process: ProcessVerdict | None = None
    rules_outcome: OutcomeVerdict | None = None
    rules_process: ProcessVerdict | None = None


class Trial:
    """One trial of one task. Made when its item is collected; touches the disk only once it is provisioned."""

    def __init__(
        self, task: Task, key: TrialKey, settings: Settings, rules: Judge, aliases: tuple[frozenset[str], ...]
    ) -> None:
        self.task = task
        self.key = key
        self.record: Record | None = None
        self.record_path: Path | None = None
        self._settings = settings
        self._rules = rules
        self._aliases = aliases
        self._scrub = Redactor(settings.secrets).scrub
        self._folder: TrialFolder | None = None
        self._attempt = Attempt(EndReason.INTERRUPTED)
        self._started = datetime.now(timezone.utc)
        self._clock = time.monotonic()
        self._setup = Setup(
            model=settings.model,
            agent=settings.agent,
            profile="",
            sandbox=settings.sandbox,
            judge=settings.judge,
            plugin_version=__version__,
            timeout_seconds=task.brief.timeout_seconds * settings.timeout_multiplier,
            process=settings.process,
            max_requests=settings.max_requests,
            digests={"task": task.text_sha256, "gold": task.gold_sha256},
        )

    @contextmanager
    def provision(self, provider: SandboxProvider) -> Iterator[Sandbox]:
        """Enter the trial's sandbox; a sandbox that cannot be had is recorded before the error is passed on."""
        self._started = datetime.now(timezone.utc)
        self._clock = time.monotonic()
        try:
            with provider.provision(self.task.brief, self.key) as sandbox:
                digests = {**self._setup.digests, **sandbox.digests()}
                self._setup = replace(self._setup, sandbox=sandbox.kind, digests=digests)
                yield sandbox
        except InfrastructureError as error:
            if self.record is None:
                self.fail(EndReason(error.end_reason), str(error))
            raise

    def run(self, sandbox: Sandbox, agent: Agent, judge: Judge, proxy: Proxy) -> Record:
        """Drive the agent, judge what it produced, score it, and put the record on disk."""
        self._setup = replace(self._setup, agent=agent.name, profile=agent.profile, judge=judge.name)

        def drive_and_judge() -> Record:
            self._attempt = self._drive(sandbox, agent, proxy)
            if self._attempt.end_reason.errored:
                return self.fail(self._attempt.end_reason, self._attempt.detail)
            return self._judge(judge, proxy)

        return self._recorded(drive_and_judge)

    def rejudge(self, old: Record, folder: Path, judge: Judge, proxy: Proxy) -> Record:
        """Judge a recorded attempt whose judge failed; the agent is not run again."""
        from pytest_dataclaw.proxy.exchange import read_journal
        from pytest_dataclaw.proxy.trajectory import build_trajectory

        self._folder = TrialFolder(folder, self._scrub)
        self._started = datetime.fromisoformat(old.started_at)
        self._setup = replace(old.setup, judge=judge.name, process=self._settings.process)
        trajectory = build_trajectory(read_journal(self._folder.journal))
        end_reason = EndReason(old.extra["agent_end_reason"])
        hosts, refused = old.extra.get("hosts"), old.extra.get("refused_hosts", {})
        traffic = Traffic(trajectory, old.agent_usage, hosts=hosts, refused_hosts=refused)
        self._attempt = Attempt(end_reason, traffic=traffic)
        return self._recorded(lambda: self._judge(judge, proxy))

    def fail(self, end_reason: EndReason, detail: str) -> Record:
        """Record the trial as errored; what the agent produced before is kept."""
        return self._finish(self._result(Outcome.ERRORED, end_reason, detail))

    # -- the stages ---------------------------------------------------------------------------------------------

    def _drive(self, sandbox: Sandbox, agent: Agent, proxy: Proxy) -> Attempt:
        time_limit = self._setup.timeout_seconds
        lease = proxy.open_lease(
            LeaseRequest(
                self.key,
                "agent",
                self._settings.model,
                self.folder.journal,
                self._script(),
                sandbox.socket,
                patience=time_limit,
                max_requests=self._settings.max_requests,
                egress=Egress(sandbox.egress_socket, self.folder.egress) if sandbox.egress_socket else None,
            )
        )
        deadline = Deadline(time_limit, extra=lambda: proxy.usage(self.key, "agent").waiting_seconds)
        traffic = Traffic()
        try:
            run = agent.run(self.task.brief, sandbox, lease.endpoint, deadline)
            fate = sandbox.fate()
        finally:
            sandbox.stop()
            traffic = proxy.close_lease(lease)
            # Kept at once, so that an interrupted trial still records what the wire saw.
            self._attempt = Attempt(EndReason.INTERRUPTED, traffic=traffic)
        self.folder.write_chat(run.transcript)
        self.folder.write_agent_log(run.log)
        if run.gateway_log:
            self.folder.write_gateway_log(run.gateway_log)
        sandbox.verify()
        return Attempt(*how_it_ended(run, traffic, fate), traffic)

    def _judge(self, judge: Judge, proxy: Proxy) -> Record:
        case = scoring.case_of(self.task, self._attempt.traffic.trajectory, self._aliases)
        rulings = self._rule(judge, case)
        scores = scoring.scores(self.task.gold, rulings.outcome, rulings.process, case.trajectory)
        outcome = Outcome.SOLVED if scores.acc == 1.0 else Outcome.UNSOLVED
        record = replace(
            self._result(outcome, self._attempt.end_reason, why(rulings.outcome, self._attempt)),
            scores=scores,
            parts=rulings.outcome.parts,
            milestones=rulings.process.milestones if rulings.process else (),
            rules_parts=rulings.rules_outcome.parts if rulings.rules_outcome else (),
            rules_milestones=rulings.rules_process.milestones if rulings.rules_process else (),
            flags=rulings.outcome.flags,
            judge_usage=proxy.usage(self.key, "judge"),
        )
        return self._finish(record)

    def _rule(self, judge: Judge, case: Case) -> Rulings:
        """Ask the judge; an empty answer is unsolved without asking. `rules` runs beside every other judge."""
        beside = judge.name != self._rules.name
        if case.answer.strip():
            outcome = judge.judge_outcome(case)
            rules_outcome = self._rules.judge_outcome(case) if beside else None
            self.folder.write_judge_chat(outcome.chat)
        else:
            outcome, rules_outcome = scoring.no_answer(case.gold, judge.name), None
        turns = len(case.trajectory.turns)
        if not scoring.needs_process(case.gold, scoring.accuracy(outcome.parts), turns, self._settings.process):
            return Rulings(outcome, None, rules_outcome)
        process = judge.judge_process(case)
        self.folder.write_judge_process_chat(process.chat)
        return Rulings(outcome, process, rules_outcome, self._rules.judge_process(case) if beside else None)

    # -- the record ---------------------------------------------------------------------------------------------

    @property
    def folder(self) -> TrialFolder:
        """The trial's folder, made on first use."""
        if self._folder is None:
            output, model = self._settings.output, self._settings.model
            self._folder = TrialFolder.create(output, self.key, model, self._started, self._scrub)
        return self._folder

    def _recorded(self, stages: Callable[[], Record]) -> Record:
        """Run the stages; whatever ends them early is recorded, infrastructure trouble by its own reason."""
        try:
            return stages()
        except InfrastructureError as error:
            if isinstance(error, JudgeError):
                self._keep_judge_chat(error.chat)
            return self.fail(EndReason(error.end_reason), str(error))
        except BaseException as error:
            self.fail(EndReason.INTERRUPTED, f"{type(error).__name__}: {error}".rstrip(": "))
            raise

    def _result(self, outcome: Outcome, end_reason: EndReason, detail: str) -> Record:
        """Return the record of the attempt as it stands, without scores."""
        task, traffic = self.task, self._attempt.traffic
        extra: dict[str, Any] = {}
        if end_reason is EndReason.JUDGE_ERROR:
            extra["agent_end_reason"] = self._attempt.end_reason.value
        if traffic.hosts is not None:
            extra |= {"hosts": traffic.hosts, "refused_hosts": traffic.refused_hosts}
        return Record(
            run_id=self.key.run_id,
            node_id=self.key.node_id,
            task_id=task.brief.task_id,
            repeat=self.key.repeat,
            suite=task.brief.suite,
            category=task.brief.category,
            level=task.brief.level,
            setup=self._setup,
            outcome=outcome,
            end_reason=end_reason,
            detail=self._scrub(detail),
            answer=self._scrub(traffic.trajectory.answer),
            turns=len(traffic.trajectory.turns),
            gold_steps=task.gold.steps_num,
            scores=None,
            agent_usage=traffic.usage,
            judge_usage=Usage(),
            started_at=self._started.isoformat(),
            wall_seconds=time.monotonic() - self._clock,
            side_exchanges=traffic.trajectory.side_exchanges,
            extra=extra,
        )

    def _keep_judge_chat(self, chat: tuple[dict[str, Any], ...]) -> None:
        """Write a failed judge's attempts to the file of what it was asked for."""
        of_process = bool(chat) and chat[-1].get("kind") == "process"
        (self.folder.write_judge_process_chat if of_process else self.folder.write_judge_chat)(chat)

    def _finish(self, record: Record) -> Record:
        self.record_path = self.folder.finish(record)
        self.record = record
        return record

    def _script(self) -> Script:
        """What the built-in oracle plays: the step scripts, or the gold answer where the task ships none."""
        gold = self.task.gold
        return Script(gold.solution) if gold.solution else Script(answer=scoring.answer_text(gold.answer))
