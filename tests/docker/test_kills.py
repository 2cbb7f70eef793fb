"""A run that is killed leaves nothing behind once the grace time is over, loses no finished trial, and can be resumed.

All cases run at the same time, each in a root of its own: most of what they do is wait.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import SUM_STEPS, Bench, Result

from pytest_dataclaw.provision.owner import FOLDER_PREFIX, OWNER_LABEL, TRIAL_LABEL, read_owner
from pytest_dataclaw.provision.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import DockerClient
    from docker.models.containers import Container

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

GRACE = 30.0 + 5.0 + 30.0
"""Seconds: what a container, once started, waits for its proxy; the time between two looks; what the engine may take,
on a busy machine, to start it and to remove it."""
SLOW = ("import time\ntime.sleep(300)\n" + SUM_STEPS[0], SUM_STEPS[1])
OPTIONS = ("--dataclaw-model=oracle", "--dataclaw-sandbox=docker", "--dataclaw-profile=lean", "-n2")


@dataclass(frozen=True)
class Case:
    """What is sent to whom, and at which moment of the third task's trial."""

    name: str
    agent: str
    moment: str
    signal: signal.Signals


CASES = {
    case.name: case
    for case in (
        Case("ctrl-c", "openclaw", "mid-turn", signal.SIGINT),
        Case("controller", "react", "container appeared", signal.SIGTERM),  # it dies of this as of SIGKILL
        Case("everybody", "openclaw", "gateway starts", signal.SIGKILL),
        Case("worker", "react", "mid-turn", signal.SIGKILL),
    )
}


@dataclass
class Aftermath:
    """What was seen of a case."""

    nodes: list[str]
    code: int
    out: str
    answered: bool
    """Whether the model had answered in the third trial when the signal came."""
    networks: set[str]
    mounts: set[str]
    """Kinds, of all containers that were there then."""
    left: list[str]
    """State and labels of the containers that were there when the grace time was over."""
    seconds: float
    """How long the last container outlived the process that pytest was started as."""
    finished: dict[Path, bytes]
    """The records of solved trials from before the signal."""
    resumed: Result
    remaining: list[str]
    """Containers that were there after the resumed run."""
    folders: list[Path]
    """Those that were there then, of the processes to which the first run's containers had belonged."""


class Story:
    """Plays a case from start to end."""

    def __init__(self, case: Case, root: Path, client: DockerClient, barrier: threading.Barrier) -> None:
        self._case = case
        self._barrier = barrier
        self._client = client
        self._bench = Bench(root)
        self._category = f"kill{os.getpid()}{case.name.replace('-', '')}"
        # OpenClaw lets no command wait for more than 10 s, and a run that lost a worker is to end by itself.
        second = SLOW if case.name == "controller" else SUM_STEPS
        steps = (SUM_STEPS, second, SLOW)
        self._nodes = [self._bench.add(category=self._category, steps=each, timeout=200) for each in steps]
        self._options = (*OPTIONS, f"--dataclaw-agent={case.agent}")

    def play(self) -> Aftermath:
        log = self._bench.root / "log"
        with (
            log.open("wb") as file,
            subprocess.Popen(  # not into a pipe, which workers that outlive the controller would keep open
                self._bench.command(*self._options),
                cwd=self._bench.root,
                env=self._bench.environment(),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                # The first trial is one worker's, the second the other's; the third follows the first.
                wait_until(self._moment_has_come, 120, lambda: log.read_text("utf-8"))
                return self._end(process, log)
            finally:
                self._barrier.abort()  # whatever happened, nobody is to wait for this case
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _end(self, process: subprocess.Popen[bytes], log: Path) -> Aftermath:
        finished, answered, containers = self._solved(), self._has_answered(), self._containers()
        owners = {str(each.labels[OWNER_LABEL]) for each in containers}
        networks = {name for each in containers for name in each.attrs["NetworkSettings"]["Networks"]}
        mounts = {str(mount["Type"]) for each in containers for mount in each.attrs["Mounts"]}
        self._send(process)
        code = process.wait(90)
        ended = time.monotonic()
        with suppress(AssertionError):  # what is left then is the test's to tell
            wait_until(lambda: not self._containers(), GRACE)
        seconds = time.monotonic() - ended
        left = self._told()
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(GRACE + 90)  # as each new run removes what any dead one left behind
        for number in (2, 3):
            path = f"assets/solutions/{self._category}/easy00{number}/step_01.py"
            (self._bench.root / path).write_text(SUM_STEPS[0], "utf-8")
        resumed = self._bench.run(*self._options, "--dataclaw-resume")
        remaining = self._told()
        folders = [path for owner in owners for path in Path("/tmp").glob(f"{FOLDER_PREFIX}{owner}-*")]
        out = log.read_text("utf-8")
        return Aftermath(
            self._nodes, code, out, answered, networks, mounts, left, seconds, finished, resumed, remaining, folders
        )

    def _moment_has_come(self) -> bool:
        if not self._solved():
            return False
        for container in self._containers():
            if container.labels[TRIAL_LABEL] == self._nodes[2]:
                if self._case.moment == "mid-turn":
                    return self._has_answered()
                return self._case.moment == "container appeared" or has_gateway(container)
        return False

    def _send(self, process: subprocess.Popen[bytes]) -> None:
        if self._case.name in ("ctrl-c", "everybody"):
            os.killpg(process.pid, self._case.signal)
        elif self._case.name == "worker":
            (container,) = (each for each in self._containers() if each.labels[TRIAL_LABEL] == self._nodes[2])
            owner = read_owner(container.labels[OWNER_LABEL])
            assert owner is not None
            assert owner.pid != process.pid
            os.kill(owner.pid, self._case.signal)
        else:
            process.send_signal(self._case.signal)

    def _containers(self) -> list[Container]:
        containers = self._client.containers.list(all=True, filters={"label": TRIAL_LABEL}, ignore_removed=True)
        return [container for container in containers if container.labels[TRIAL_LABEL] in self._nodes]

    def _told(self) -> list[str]:
        return [f"{container.status} {container.labels}" for container in self._containers()]

    def _solved(self) -> dict[Path, bytes]:
        contents = {path: path.read_bytes() for path in self._bench.output.glob("*/*/record.json")}
        return {path: content for path, content in contents.items() if b'"solved"' in content}

    def _has_answered(self) -> bool:
        return any(path.stat().st_size for path in self._bench.output.glob("*easy003/*/exchanges.jsonl"))


def has_gateway(container: Container) -> bool:
    from docker.errors import APIError

    with suppress(APIError):  # it does not run yet
        return any("openclaw" in row[-1] for row in container.top()["Processes"] or ())
    return False


def wait_until(condition: Callable[[], bool], seconds: float, told: Callable[[], str] = str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {told()}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def playing(
    client: DockerClient, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Aftermath]]]:
    """All cases, begun."""
    barrier = threading.Barrier(len(CASES))
    with ThreadPoolExecutor(len(CASES)) as pool:
        yield {
            name: pool.submit(Story(case, tmp_path_factory.mktemp("kills") / "bench", client, barrier).play)
            for name, case in CASES.items()
        }


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def aftermath(case: Case, playing: dict[str, Future[Aftermath]]) -> Aftermath:
    return playing[case.name].result(300)


def test_the_signal_came_at_its_moment(case: Case, aftermath: Aftermath) -> None:
    # Ctrl-C is pytest's 2; without a worker the run goes on, and its trial is an error; else the signal's own number.
    codes = {"ctrl-c": 2, "worker": 1}
    assert aftermath.code == codes.get(case.name, -case.signal), aftermath.out
    if case.moment != "container appeared":  # which on a busy machine is noticed late
        assert aftermath.answered is (case.moment == "mid-turn")


def test_no_container_network_or_volume_is_left(case: Case, aftermath: Aftermath) -> None:
    # One that never started ends by nobody's hand but that of the next run's sweep.
    assert [container for container in aftermath.left if not container.startswith("created ")] == []
    assert aftermath.remaining == []
    if case.name == "ctrl-c":
        assert aftermath.seconds < 5, "an orderly end takes its containers along"
    # There were none but the engine's own, so none can be left.
    assert aftermath.networks == {"none"}
    assert aftermath.mounts <= {"bind", "tmpfs"}


def test_no_socket_folder_is_left_after_the_next_run(aftermath: Aftermath) -> None:
    if aftermath.folders:
        sweep()
    assert [folder for folder in aftermath.folders if folder.exists()] == []


def test_finished_trials_are_kept_and_the_run_is_completed(aftermath: Aftermath) -> None:
    assert len(aftermath.finished) >= 1
    assert {path: path.read_bytes() for path in aftermath.finished} == aftermath.finished
    resumed = aftermath.resumed
    assert resumed.code == 0, resumed.out
    assert resumed.counts() == (3, 0, 0)
    solved = [record for record in resumed.records() if record["outcome"] == "solved"]
    assert Counter(record["node_id"] for record in solved) == Counter(aftermath.nodes)
    assert len({record["run_id"] for record in resumed.records()}) == 1
    assert resumed.summary()["overall_score"] == 1.0
    assert not list(resumed.output.glob("progress_*.json"))
