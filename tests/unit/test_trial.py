"""The life of a trial with every stage faked: outcome and end reason in each way it can end."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.drive.base import AgentRun
from pytest_dataclaw.errors import JudgeError, SandboxError
from pytest_dataclaw.model.result import EndReason, Outcome, Record
from pytest_dataclaw.model.run import ModelEndpoint, TrialKey
from pytest_dataclaw.model.task import Brief, Gold, Milestone, Task, WorkspaceFile
from pytest_dataclaw.model.trajectory import ToolCall, Traffic, Trajectory, Turn, Usage
from pytest_dataclaw.model.verdict import MilestoneVerdict, OutcomeVerdict, PartVerdict, ProcessVerdict, Ruling
from pytest_dataclaw.provision.base import ExecResult, Fate
from pytest_dataclaw.proxy.base import Egress, Lease, LeaseRequest
from pytest_dataclaw.record.index import read_record
from pytest_dataclaw.settings import Sources, resolve
from pytest_dataclaw.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.judge.base import Case

KEY = TrialKey("run1", "tasks/task_001.md::task_001", "task_001")
ANSWERED = Trajectory((Turn(1, "", (ToolCall("a", "exec", "{}"),), ("12",)), Turn(2, "42")))


def _task() -> Task:
    brief = Brief(
        "task_001", "x", "alpha", "easy", "?", 60, (WorkspaceFile(Path("/d.csv"), PurePosixPath("d.csv")),), web=False
    )
    gold = Gold("?", "", 42, ("one", "two"), 2, (Milestone("half", 21),), (), Path("/gold.json"))
    return Task(brief, gold, Path("/t.md"), Path("/"), "t" * 64, "g" * 64)


@dataclass
class FakeSandbox:
    end: Fate | None = None
    spoilt: bool = False
    stopped: bool = False
    egress_socket: Path | None = None
    kind = "local"
    workspace = "/w"
    home = "/h"
    socket = None

    def reach(self, endpoint: ModelEndpoint) -> ModelEndpoint:
        return endpoint

    def write_file(self, path: str, data: bytes) -> None:
        raise NotImplementedError

    def read_file(self, path: str, *, limit: int) -> bytes | None:
        raise NotImplementedError

    def exec(self, command: str, *, timeout: float) -> ExecResult:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopped = True

    def verify(self) -> None:
        assert self.stopped, "assets are checked once nothing runs any more"
        if self.spoilt:
            raise SandboxError("d.csv was changed")

    def fate(self) -> Fate | None:
        return self.end

    def digests(self) -> dict[str, str]:
        return {"data": "d" * 64}


@dataclass
class FakeProvider:
    sandbox: FakeSandbox

    @contextmanager
    def provision(self, brief: Brief, key: TrialKey) -> Iterator[FakeSandbox]:
        yield self.sandbox

    def close(self) -> None:
        raise NotImplementedError


@dataclass
class FakeAgent:
    run_result: AgentRun | BaseException
    name = "fake"
    profile = "default"

    def run(self, *arguments: Any) -> AgentRun:
        if isinstance(self.run_result, BaseException):
            raise self.run_result
        return self.run_result


@dataclass
class FakeProxy:
    traffic: Traffic
    requests: list[LeaseRequest] = field(default_factory=list)
    closed: int = 0

    def open_lease(self, request: LeaseRequest) -> Lease:
        self.requests.append(request)
        return Lease("1", ModelEndpoint("http://127.0.0.1:1/v1", "token", request.model))

    def close_lease(self, lease: Lease) -> Traffic:
        self.closed += 1
        return self.traffic

    def usage(self, key: TrialKey, role: str) -> Usage:
        return Usage(requests=7)

    def is_healthy(self) -> bool:
        return True


@dataclass
class FakeJudge:
    ruling: Ruling = Ruling.YES
    error: JudgeError | None = None
    reached_at: int = 1
    calls: int = 0
    name: str = "fake"

    def judge_outcome(self, case: Case) -> OutcomeVerdict:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return OutcomeVerdict(self.name, (PartVerdict("match", self.ruling, "because"),))

    def judge_process(self, case: Case) -> ProcessVerdict:
        return ProcessVerdict(
            self.name, (MilestoneVerdict("half", Ruling.YES, turn=self.reached_at, evidence="value"),)
        )


class Stage:
    """One trial with its fakes."""

    def __init__(self, tmp_path: Path) -> None:
        command_line = {"model": "oracle", "output": str(tmp_path / "out")}
        settings = resolve(Sources(command_line), invocation_dir=tmp_path, base_dir=tmp_path)
        self.rules = FakeJudge(name="rules")
        self.trial = Trial(_task(), KEY, settings, self.rules, ())
        self.sandbox = FakeSandbox()
        self.judge = FakeJudge()

    def run(self, agent: AgentRun | BaseException, traffic: Traffic | None = None) -> Record:
        self.proxy = FakeProxy(traffic or Traffic(ANSWERED, Usage(requests=2)))
        with self.trial.provision(FakeProvider(self.sandbox)) as sandbox:
            record = self.trial.run(sandbox, FakeAgent(agent), self.judge, self.proxy)
        assert self.trial.record_path is not None
        assert read_record(self.trial.record_path) == record, "what is on disk is what pytest hears of"
        assert self.sandbox.stopped
        assert self.proxy.closed == 1
        return record


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_right_answer_is_solved_and_gets_ee_only(stage: Stage) -> None:
    record = stage.run(AgentRun(EndReason.ANSWERED))
    assert (record.outcome, record.end_reason, record.answer) == (Outcome.SOLVED, EndReason.ANSWERED, "42")
    assert record.scores is not None
    assert (record.scores.ee, record.scores.gpr) == (1.0, None)  # N = 2 steps, T = 2 turns
    assert (record.agent_usage.requests, record.judge_usage.requests) == (2, 7)
    assert record.setup.digests == {"task": "t" * 64, "gold": "g" * 64, "data": "d" * 64}
    assert stage.rules.calls == 1, "rules run beside every other judge"


def test_what_a_web_task_reached_is_recorded_and_kept_when_it_is_judged_again(stage: Stage) -> None:
    stage.sandbox.egress_socket = Path("/s/egress.sock")
    stage.judge.error = JudgeError("no verdict")
    reached = {"hosts": {"a.org": 2}, "refused_hosts": {"10.0.0.1": 1}}
    record = stage.run(
        AgentRun(EndReason.ANSWERED), Traffic(ANSWERED, hosts=reached["hosts"], refused_hosts=reached["refused_hosts"])
    )
    assert record.extra == {"agent_end_reason": "answered", **reached}
    folder = stage.trial.folder
    assert stage.proxy.requests[0].egress == Egress(Path("/s/egress.sock"), folder.path / "egress.jsonl")
    folder.journal.touch()
    stage.judge.error = None
    assert stage.trial.rejudge(record, folder.path, stage.judge, stage.proxy).extra == reached


def test_another_task_asks_for_no_way_out(stage: Stage) -> None:
    record = stage.run(AgentRun(EndReason.ANSWERED))
    assert stage.proxy.requests[0].egress is None
    assert "hosts" not in record.extra


def test_a_wrong_answer_gets_process_scores_only(stage: Stage) -> None:
    stage.judge.ruling, stage.judge.reached_at = Ruling.NO, 4
    turns = tuple(Turn(n, f"thinking {n}") for n in range(1, 5))
    record = stage.run(AgentRun(EndReason.ANSWERED), Traffic(Trajectory(turns)))
    assert record.scores is not None
    # GPR = 1/1; t - N = 4 - 2, so TPE = 0.9^2 = 0.81.
    assert (record.scores.ee, record.scores.gpr) == (None, 1.0)
    assert record.scores.tpe == pytest.approx(0.81)
    assert (record.outcome, record.detail) == (Outcome.UNSOLVED, "because")


def test_a_milestone_at_a_turn_that_never_was_is_a_judge_error(stage: Stage) -> None:
    stage.judge.ruling, stage.judge.reached_at = Ruling.NO, 3
    record = stage.run(AgentRun(EndReason.ANSWERED))
    assert (record.outcome, record.end_reason) == (Outcome.ERRORED, EndReason.JUDGE_ERROR)


def test_an_empty_answer_is_unsolved_without_asking_the_judge(stage: Stage) -> None:
    record = stage.run(AgentRun(EndReason.EARLY_STOP, "no text"), Traffic(Trajectory((Turn(1, ""),))))
    assert (record.outcome, record.end_reason) == (Outcome.UNSOLVED, EndReason.EARLY_STOP)
    assert stage.judge.calls == 0


@pytest.mark.parametrize(
    ("said", "traffic", "reason"),
    [
        (EndReason.ANSWERED, Traffic(ANSWERED, last_error="HTTP 500", last_status=500), EndReason.PROVIDER_ERROR),
        (EndReason.ANSWERED, Traffic(ANSWERED, last_error="slow down", last_status=429), EndReason.RATE_LIMITED),
        (EndReason.EARLY_STOP, Traffic(last_error="cut", last_status=502), EndReason.PROVIDER_ERROR),
        (EndReason.PROVIDER_ERROR, Traffic(last_error="slow down", last_status=429), EndReason.RATE_LIMITED),
        (EndReason.RATE_LIMITED, Traffic(last_error="HTTP 503", last_status=503), EndReason.PROVIDER_ERROR),
        (EndReason.ANSWERED, Traffic(last_error="no such parameter", last_status=400), EndReason.PROVIDER_ERROR),
        (EndReason.INTERRUPTED, Traffic(), EndReason.INTERRUPTED),
    ],
)
def test_trouble_outside_the_agent_is_errored_and_never_judged(
    stage: Stage, said: EndReason, traffic: Traffic, reason: EndReason
) -> None:
    record = stage.run(AgentRun(said), traffic)
    assert (record.outcome, record.end_reason, record.scores) == (Outcome.ERRORED, reason, None)
    assert stage.judge.calls == 0


@pytest.mark.parametrize("said", [EndReason.AGENT_TIMEOUT, EndReason.CONTEXT_OVERFLOW, EndReason.TRIAL_BUDGET])
def test_an_agent_that_ran_into_a_limit_is_judged_on_what_it_produced(stage: Stage, said: EndReason) -> None:
    record = stage.run(AgentRun(said))
    assert (record.outcome, record.end_reason) == (Outcome.SOLVED, said)


@pytest.mark.parametrize(
    ("said", "traffic", "reason"),
    [
        # An agent that forges an error must not leave the denominator.
        (EndReason.PROVIDER_ERROR, Traffic(ANSWERED), EndReason.EARLY_STOP),
        (EndReason.RATE_LIMITED, Traffic(ANSWERED), EndReason.EARLY_STOP),
        # A trial that has sent as many requests as it may is over, whatever failed before and whatever the agent says.
        (EndReason.ANSWERED, Traffic(ANSWERED, limit="no more"), EndReason.TRIAL_BUDGET),
        (EndReason.EARLY_STOP, Traffic(ANSWERED, limit="no more"), EndReason.TRIAL_BUDGET),
        (
            EndReason.PROVIDER_ERROR,
            Traffic(ANSWERED, last_error="HTTP 500", last_status=500, limit="no more"),
            EndReason.TRIAL_BUDGET,
        ),
        (EndReason.AGENT_TIMEOUT, Traffic(ANSWERED, limit="no more"), EndReason.AGENT_TIMEOUT),
        # A request that the provider refuses after others is what the agent made of it.
        (EndReason.ANSWERED, Traffic(ANSWERED, last_error="bad image", last_status=400), EndReason.EARLY_STOP),
        (
            EndReason.PROVIDER_ERROR,
            Traffic(ANSWERED, last_error="maximum context length is 8192", last_status=400),
            EndReason.CONTEXT_OVERFLOW,
        ),
    ],
)
def test_what_the_agent_brought_about_is_judged(
    stage: Stage, said: EndReason, traffic: Traffic, reason: EndReason
) -> None:
    record = stage.run(AgentRun(said), traffic)
    assert (record.outcome, record.end_reason) == (Outcome.SOLVED, reason)


def test_an_agent_that_claims_an_answer_the_wire_did_not_see_stopped_early(stage: Stage) -> None:
    record = stage.run(AgentRun(EndReason.ANSWERED), Traffic(Trajectory((Turn(1, " "),))))
    assert (record.outcome, record.end_reason) == (Outcome.UNSOLVED, EndReason.EARLY_STOP)


def test_a_sandbox_that_the_agent_broke_from_inside_is_judged(stage: Stage) -> None:
    stage.sandbox.end = Fate(EndReason.OOM, "killed at 4 GiB")
    stage.judge.ruling = Ruling.NO
    record = stage.run(AgentRun(EndReason.PROVIDER_ERROR), Traffic(Trajectory((Turn(1, "41"),))))
    assert (record.outcome, record.end_reason) == (Outcome.UNSOLVED, EndReason.OOM)
    assert record.detail.startswith("killed at 4 GiB")


def test_changed_assets_are_a_sandbox_error_but_the_answer_is_kept(stage: Stage) -> None:
    stage.sandbox.spoilt = True
    record = stage.run(AgentRun(EndReason.ANSWERED))
    assert (record.outcome, record.end_reason) == (Outcome.ERRORED, EndReason.SANDBOX_ERROR)
    assert (record.answer, record.turns) == ("42", 2)


def test_a_failed_judge_keeps_its_attempts_and_the_trial_can_be_judged_again(stage: Stage) -> None:
    stage.judge.error = JudgeError("402", chat=({"kind": "outcome", "cause": "runtime"},))
    record = stage.run(AgentRun(EndReason.AGENT_TIMEOUT))
    assert (record.end_reason, record.answer) == (EndReason.JUDGE_ERROR, "42")
    assert record.extra == {"agent_end_reason": "agent_timeout"}
    assert "runtime" in (stage.trial.folder.path / "judge_chat.jsonl").read_text("utf-8")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("a bug")])
def test_whatever_else_ends_it_is_recorded_and_passed_on(stage: Stage, error: BaseException) -> None:
    with pytest.raises(type(error)):
        stage.run(error)
    assert stage.trial.record is not None
    assert (stage.trial.record.outcome, stage.trial.record.end_reason) == (Outcome.ERRORED, EndReason.INTERRUPTED)
    assert stage.trial.record.turns == 2, "what the wire saw is kept"
    assert stage.sandbox.stopped


def test_a_sandbox_error_of_the_agents_tools_is_recorded(stage: Stage) -> None:
    record = stage.run(SandboxError("the engine went away"))
    assert (record.end_reason, record.detail) == (EndReason.SANDBOX_ERROR, "the engine went away")
