"""Keys of providers are found at the provider alone: not in containers, not on disk, not in what pytest prints."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import subprocess
import threading
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from harness import SUM_STEPS, Bench

from pytest_dataclaw.options import VARIABLES
from pytest_dataclaw.provision.owner import OWNER_LABEL, TRIAL_LABEL, read_owner
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import Answer, HttpError, Scenario, ToolCalls

if TYPE_CHECKING:
    from pathlib import Path

    from docker import DockerClient
    from docker.models.containers import Container
    from harness import Result

pytest_plugins = ("engine_fixture",)

SECRETS = tuple(variable.name for variable in VARIABLES if variable.secret)
IN_DOTENV = ("OPENCLAW_CUSTOM_API_KEY", "ANTHROPIC_API_KEY")


@dataclass(frozen=True)
class Canary:
    """Values for all secret variables; `stem` is random and part of each of them."""

    stem: str = field(default_factory=lambda: f"canary{secrets.token_hex(12)}")

    def value(self, name: str) -> str:
        return f"sk-{name.lower()}-{self.stem}"

    def forms(self) -> list[str]:
        """Return the stem as it is, and what of it shows in base64 at each of its three offsets."""
        raw = self.stem.encode()
        return [self.stem, *(base64.b64encode(bytes(offset) + raw)[4:36].decode() for offset in range(3))]

    def is_in(self, text: str) -> bool:
        return any(form in text for form in self.forms())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")


def arm(bench: Bench, canary: Canary) -> None:
    """Set all keys, most in the environment and some in `.env`."""
    assert set(IN_DOTENV) < set(SECRETS)
    bench.env.update({name: canary.value(name) for name in SECRETS if name not in IN_DOTENV})
    for name in IN_DOTENV:
        bench.env.pop(name, None)
    lines = [f"{name}={canary.value(name)}\n" for name in IN_DOTENV]
    (bench.root / ".env").write_text("".join(lines), "utf-8")


def environment(bench: Bench) -> dict[str, str]:
    return {name: value for name, value in bench.environment().items() if name not in IN_DOTENV}


def leaks(bench: Bench, canary: Canary) -> list[str]:
    """Return the files below the benchmark root that hold the canary, `.env` apart, which the user wrote."""
    files = [path for path in bench.root.rglob("*") if path.is_file() and path != bench.root / ".env"]
    assert bench.root / "junit.xml" in files
    return [str(path.relative_to(bench.root)) for path in files if canary.is_in(path.read_text("latin-1"))]


SCAN = """
import os, stat, sys
forms = [form[::-1].encode() for form in sys.argv[1].split(",")]  # backwards, so that this process does not hold them
paths = [f"/proc/{pid}/{name}" for pid in os.listdir("/proc") if pid.isdigit() for name in ("environ", "cmdline")]
processes = len(paths)
paths += sys.argv[2:]
for top in ("/tmp", "/dev/shm", "/run", "/home", "/opt/dataclaw", "/tmp_workspace"):
    paths += [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
seen, found = 0, []
for path in dict.fromkeys(paths):
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            with open(path, "rb") as file:
                data = file.read()
            seen += 1
            found += [path] * any(form in data for form in forms)
    except OSError as error:
        if not path.startswith("/proc/") and not isinstance(error, FileNotFoundError):
            raise
print(seen, *found, sep="\\n")
"""
"""Looks through all processes of a container and all files that its image does not hold; prints how many it
read, and those with a canary in them."""


@dataclass
class Look:
    """What the watcher saw of one container at one moment."""

    node_id: str
    read: int
    gateway: bool
    found: list[str]


class _EndedError(Exception):
    """The container ended while it was looked at."""


class Watcher:
    """Looks into the containers of a session of processes while they live, for a canary and for a planted word."""

    def __init__(self, client: DockerClient, canary: Canary, planted: str, session: int) -> None:
        self.looks: list[Look] = []
        self._client = client
        self._canary = canary
        self._planted = planted
        self._session = session
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        from docker.errors import APIError

        while not self._stop.wait(0.3):
            for container in self._client.containers.list(filters={"label": OWNER_LABEL}, ignore_removed=True):
                if self._is_ours(container):
                    with suppress(APIError, _EndedError):
                        self.looks.append(self._look(container))

    def _is_ours(self, container: Container) -> bool:
        owner = read_owner(container.labels[OWNER_LABEL])
        try:
            return owner is not None and os.getsid(owner.pid) == self._session
        except ProcessLookupError:
            return False

    def _look(self, container: Container) -> Look:
        found = []
        if self._canary.is_in(json.dumps(self._client.api.inspect_container(str(container.id)))):
            found.append("docker inspect")
        if self._canary.is_in(container.logs().decode()):
            found.append("docker logs")
        processes = container.top()["Processes"]
        if processes is None:  # the container is ending
            raise _EndedError
        gateway = any("openclaw" in row[-1] for row in processes)
        changed = [str(row["Path"]) for row in container.diff() or ()]
        forms = ",".join(form[::-1] for form in (*self._canary.forms(), self._planted))
        code, output = container.exec_run(["python3", "-c", SCAN, forms, *changed], user="1000")
        assert isinstance(output, bytes)
        if code in (None, 137) or output.startswith(b"OCI runtime exec failed"):  # the container is ending
            raise _EndedError
        if code != 0:
            found.append(f"not looked through: {output.decode()}")
            return Look(container.labels.get(TRIAL_LABEL, ""), 0, gateway, found)
        read, *holding = output.decode().split()
        return Look(container.labels.get(TRIAL_LABEL, ""), int(read), gateway, found + holding)


SEARCH = """
import os, stat, time
print("environment:", dict(os.environ))
words = [word[::-1].encode() for word in {backwards!r}]
started = time.time()

def holds(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    return any(word in data for word in words)

def is_new(path):  # files of the image are older than the canary
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_ctime > started - 600

pids = filter(str.isdigit, os.listdir("/proc"))
paths = [f"/proc/{{pid}}/{{name}}" for pid in pids for name in ("environ", "cmdline")]
for folder, folders, names in os.walk("/"):
    if folder == "/":
        folders[:] = set(folders) - {{"proc", "sys"}}
    paths += filter(is_new, (os.path.join(folder, name) for name in names))
print("read:", len(paths), "holding one:", list(filter(holds, paths)))
time.sleep(1)
"""
"""A step that looks for canaries as the agent can, and then leaves the watcher some time; more than 10 s in all, and
OpenClaw would not wait for it."""

CONFTEST = """
import pytest

class Broken:
    name, profile = "broken", ""

    def __init__(self, request, settings, proxy, judge):
        self.request, self.settings, self.proxy, self.judge = request, settings, proxy, judge

    def run(self, brief, sandbox, model, deadline):
        settings, proxy, judge, run = self.settings, self.proxy, self.judge, self.request.node.run
        controls = vars(proxy), vars(judge), vars(run), vars(self.request.node.trial)
        raise RuntimeError("as told")

@pytest.fixture
def dataclaw_agent(request, dataclaw_agent, dataclaw_settings, dataclaw_proxy, dataclaw_judge):
    if "broken" not in request.node.name:
        return dataclaw_agent
    return Broken(request, dataclaw_settings, dataclaw_proxy, dataclaw_judge)
"""
"""An agent that fails with all that a user's code can hold among its local variables."""

USERS_TEST = """
def test_of_the_user(dataclaw_settings, dataclaw_proxy):
    held = [dataclaw_settings, dataclaw_proxy]
    assert held == []
"""


@pytest.mark.docker
def test_openclaw_in_its_container(bench: Bench, client: DockerClient, image: str) -> None:
    canary, planted = Canary(), f"planted{secrets.token_hex(12)}"
    arm(bench, canary)
    numbers = bench.root / "assets/database/numbers.csv"
    numbers.write_text(numbers.read_text("utf-8") + f"{planted},0\n", "utf-8")
    search = SEARCH.format(backwards=[canary.stem[::-1], planted[::-1]])
    searching = bench.add(category="searching", steps=(search + SUM_STEPS[0], SUM_STEPS[1]), timeout=120)
    broken = bench.add(category="broken", timeout=120)
    (bench.root / "conftest.py").write_text(CONFTEST, "utf-8")
    (bench.root / "test_user.py").write_text(USERS_TEST, "utf-8")
    command = bench.command(
        *("--dataclaw-model=oracle", "--dataclaw-agent=openclaw", "--dataclaw-profile=lean", "-n2"),
        *("-vv", "-rA", "--showlocals", "--log-level=DEBUG", f"--log-file={bench.root}/log.txt"),
        *("tasks", "test_user.py"),
    )
    with (
        subprocess.Popen(
            command,
            cwd=bench.root,
            env=environment(bench),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
        closing(Watcher(client, canary, planted, process.pid)) as watcher,
    ):
        out, _ = process.communicate(timeout=200)
    assert process.returncode == 1, out
    # Two of them fail with their local variables told, where canaries would be seen.
    assert "1 failed, 1 passed, 1 error in" in out, out
    assert re.search(r"settings += Settings\(model='oracle'", out), out
    assert "controls" in out
    assert not canary.is_in(out)
    assert leaks(bench, canary) == []

    # The watcher saw the gateway run, could find a word that is there, and no canary.
    looks = [look for look in watcher.looks if look.node_id == searching]
    assert any(look.gateway for look in looks), watcher.looks
    assert [look.found for look in looks if look.read <= 20] == []
    assert {tuple(look.found) for look in looks} == {("/tmp_workspace/database/numbers.csv",)}
    others = {where for look in watcher.looks for where in look.found}
    assert others <= {"/tmp_workspace/database/numbers.csv"}
    assert {look.node_id for look in looks} <= {searching, broken, ""}

    # And so did the agent.
    (folder,) = (path.parent for path in bench.output.glob("*searching*/*/record.json"))
    chat = (folder / "chat.jsonl").read_text("utf-8")
    assert set(re.findall(r"holding one: (\[[^]]*\])", chat)) == {"['/tmp_workspace/database/numbers.csv']"}
    assert "environment: {" in chat
    assert "_KEY" not in chat


@pytest.fixture(scope="module")
def echoed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Canary, Bench, Result]:
    """A run whose providers repeat keys in all that they say: errors, an answer, a verdict's reason."""
    canary, bench = Canary(), Bench(tmp_path_factory.mktemp("echoed") / "bench")
    arm(bench, canary)
    agent_key, judge_key = canary.value("OPENCLAW_CUSTOM_API_KEY"), canary.value("JUDGE_CUSTOM_API_KEY")
    echo = f"{agent_key} {judge_key} {base64.b64encode(agent_key.encode()).decode()}"
    error = {"error": {"message": f"wrong key: {echo}", "code": "invalid_api_key"}}
    verdict = {"scores": {"match": 0}, "total": 0, "reason": f"The key is {echo}"}
    for _ in range(3):
        bench.add()
    scenarios = {
        agent_key: Scenario(
            # The first task, the second, whose provider fails, and the third, whose judge fails.
            ToolCalls([("exec", {"command": "env"})]),
            HttpError(429, error, {"retry-after-ms": "10"}),
            Answer(f"60840, and my key is {echo}"),
            HttpError(401, error),
            Answer("60840"),
        ),
        judge_key: Scenario(Answer(json.dumps(verdict)), HttpError(401, error)),
    }
    with ModelServer(scenarios) as server:
        for name in ("OPENCLAW_CUSTOM_BASE_URL", "JUDGE_CUSTOM_BASE_URL"):
            bench.env[name] = server.base_url
        result = bench.run(
            *("--dataclaw-model=some-model", "--dataclaw-judge=some-judge", "--dataclaw-agent=react"),
            *("--dataclaw-sandbox=local", "--dataclaw-process=off", "-vv", "-rA", "--showlocals", "-p", "no:xdist"),
        )
    assert [request.api_key for request in server.requests] == [agent_key] * 3 + [judge_key] + [agent_key] * 2 + [
        judge_key
    ], result.out
    assert "PATH=" in json.dumps(server.requests[1].messages)
    assert canary.stem not in json.dumps(server.requests[1].messages)
    outcomes = [(record["outcome"], record["end_reason"]) for record in result.records()]
    assert outcomes == [("unsolved", "answered"), ("errored", "provider_error"), ("errored", "judge_error")]
    return canary, bench, result


def test_what_a_provider_repeats_is_not_on_disk(echoed: tuple[Canary, Bench, Result]) -> None:
    canary, bench, result = echoed
    assert leaks(bench, canary) == []
    assert len(list(result.output.rglob("*exchanges.jsonl"))) == 5
    answer, error, verdict = (json.dumps(record) for record in result.records())
    for text in (answer, error, verdict):
        assert "[redacted:JUDGE_CUSTOM_API_KEY]" in text or "[key]" in text
    assert "60840, and my key is [redacted:OPENCLAW_CUSTOM_API_KEY]" in answer


def test_a_key_that_a_provider_refuses_is_not_printed(echoed: tuple[Canary, Bench, Result]) -> None:
    canary, _, result = echoed
    lines = [line for line in result.out.splitlines() if "errored (provider_error): wrong key" in line]
    assert lines
    assert not any(canary.value("OPENCLAW_CUSTOM_API_KEY") in line for line in lines)


def test_what_a_provider_repeats_is_not_printed(echoed: tuple[Canary, Bench, Result]) -> None:
    canary, _, result = echoed
    assert "The key is" in result.out
    shown = [*result.out.splitlines(), *result.junit_path.read_text("utf-8").splitlines()]
    assert [line for line in shown if canary.is_in(line)] == []
