"""Our lifecycle of a task: `Trial` with the parts that the plugin gives it, and a meter between them.

The same scripted model stands behind our model proxy, for the agent in the container and for the judge on the host.
What a worker process does once (imports, copying the data, looking into the image) is done, and timed, apart.
"""

from __future__ import annotations

import importlib
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from _meter import Meter
from _scripted import ANSWER, MODEL, PROMPT, SESSION_SECONDS, check_requests, scenario
from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
from pytest_dataclaw.drive.openclaw.version import Gateway20260324
from pytest_dataclaw.judge.llm import LLMJudge
from pytest_dataclaw.judge.rules import RulesJudge
from pytest_dataclaw.model.result import Outcome
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.task import Brief, Gold, Task, WorkspaceFile
from pytest_dataclaw.plugin.assembly import make_provider, make_proxy
from pytest_dataclaw.provision.owner import RUN_LABEL
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.settings import Sources, resolve
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from docker import DockerClient

    from _meter import Costs
    from pytest_dataclaw.drive.openclaw.config import Plan, Profile
    from pytest_dataclaw.drive.openclaw.turn import TurnReport
    from pytest_dataclaw.judge.base import Case
    from pytest_dataclaw.model.run import Deadline, ModelEndpoint
    from pytest_dataclaw.model.trajectory import Traffic
    from pytest_dataclaw.model.verdict import OutcomeVerdict
    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.proxy.base import Lease
    from pytest_dataclaw.proxy.control import ControlAddress
    from pytest_dataclaw.settings import Settings


class Worker:
    """Runs trials one after another, as a worker process does; close it at the end."""

    def __init__(self, client: DockerClient, folder: Path, files: Sequence[Path]) -> None:
        self._client = client
        self._folder = folder
        self._task = _task(files)
        self._provider = make_provider(_settings(folder, "upstream", "http://127.0.0.1:1/v1"))
        self._trials = 0

    def prepare(self) -> float:
        """Do what is done once in a worker's life, a sandbox included; return the seconds it took."""
        begin = time.perf_counter()
        importlib.import_module("openai")  # the judge does so when it is first asked
        with self._provider.provision(self._task.brief, TrialKey("prepare", "prepare", "prepare")) as sandbox:
            sandbox.digests()
        return time.perf_counter() - begin

    def run(self, profile: Profile) -> Costs:
        """Run one trial; exit unless it is solved in two turns."""
        self._trials += 1
        with ModelServer(scenario()) as server:
            settings = _settings(self._folder, profile, server.base_url)
            with make_proxy(settings) as address:
                costs = self._trial(settings, profile, address)
            check_requests(server)
        return costs

    def close(self) -> None:
        """Wait until all containers are gone."""
        self._provider.close()

    def _trial(self, settings: Settings, profile: Profile, address: ControlAddress) -> Costs:
        proxy = ProxyClient(address)
        key = TrialKey(f"lifecycle-{self._trials}", "lifecycle", self._task.brief.task_id)
        trial = Trial(self._task, key, settings, RulesJudge(), ())
        meter = Meter(self._client)
        with trial.provision(self._provider) as sandbox:
            (container,) = self._client.api.containers(filters={"label": f"{RUN_LABEL}={key.run_id}"})
            meter.watch(container["Id"])
            meter.book("container")
            journal = trial.folder.path / "judge_exchanges.jsonl"
            lease = proxy.open_lease(LeaseRequest(key, "judge", MODEL, journal))
            judge = _MeteredJudge(lease.endpoint, meter)
            meter.book("judge")
            agent = OpenClawAgent(profile, version=_MeteredGateway(meter))
            record = trial.run(sandbox, agent, judge, _MeteredProxy(address, meter))
            proxy.close_lease(lease)
            meter.book("results out")
        self._await_removal(container["Id"])
        meter.book("removal")
        if (record.outcome, record.turns) != (Outcome.SOLVED, 2):
            raise SystemExit(f"{profile}: {record.outcome.value} in {record.turns} turns, {record.detail}")
        return meter.costs

    def _await_removal(self, container: str) -> None:
        """Wait for what the engine does by itself after a trial, as the reference waits for it too."""
        from docker.errors import NotFound

        try:
            self._client.api.wait(container, condition="removed")
        except NotFound:
            return


class _MeteredGateway(Gateway20260324):
    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def configure(self, sandbox: Sandbox, plan: Plan, message: str) -> None:
        super().configure(sandbox, plan, message)
        self._meter.book("set-up")

    def start(self, sandbox: Sandbox, plan: Plan, *, patience: float) -> None:
        super().start(sandbox, plan, patience=patience)
        self._meter.book("gateway")

    def take_turn(self, sandbox: Sandbox, plan: Plan, deadline: Deadline) -> TurnReport:
        report = super().take_turn(sandbox, plan, deadline)
        self._meter.book("agent")
        return report

    def read_log(self, sandbox: Sandbox, plan: Plan) -> str:
        log = super().read_log(sandbox, plan)
        self._meter.book("results out", last_sample=True)  # nothing more is run before the container is stopped
        return log


class _MeteredProxy(ProxyClient):
    def __init__(self, address: ControlAddress, meter: Meter) -> None:
        super().__init__(address)
        self._meter = meter

    def close_lease(self, lease: Lease) -> Traffic:
        self._meter.book("removal")  # the container has just been stopped
        return super().close_lease(lease)


class _MeteredJudge(LLMJudge):
    def __init__(self, endpoint: ModelEndpoint, meter: Meter) -> None:
        super().__init__(endpoint, MODEL)
        self._meter = meter

    def judge_outcome(self, case: Case) -> OutcomeVerdict:
        self._meter.book("results out")
        verdict = super().judge_outcome(case)
        self._meter.book("judge")
        return verdict


def _settings(folder: Path, profile: str, base_url: str) -> Settings:
    given: dict[str, Any] = {
        "model": MODEL,
        "judge": MODEL,
        "agent": "openclaw",
        "sandbox": "docker",
        "profile": profile,
        "output": str(folder / "output"),
    }
    endpoint = {"OPENCLAW_CUSTOM_BASE_URL": base_url, "OPENCLAW_CUSTOM_API_KEY": "none"}
    return resolve(Sources(command_line=given, environ=endpoint), invocation_dir=folder, base_dir=folder)


def _task(files: Sequence[Path]) -> Task:
    data = tuple(WorkspaceFile(file, PurePosixPath("database") / file.name) for file in files)
    brief = Brief("lifecycle", "lifecycle", "synthetic", "easy", PROMPT, SESSION_SECONDS, data, web=False)
    gold = Gold(PROMPT, "", int(ANSWER), ("count the rows",), 1, (), (), files[0])
    return Task(brief, gold, files[0], files[0].parent, "0" * 64, "0" * 64)
