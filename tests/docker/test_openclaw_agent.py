"""The real OpenClaw in a sealed container of its own each time, driven against a scripted model."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
from pytest_dataclaw.drive.openclaw.config import WebSearch
from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.run import Deadline, ModelEndpoint, TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision.docker import DockerProvider
from pytest_dataclaw.proxy.wire import message_text
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import (
    Answer,
    Cut,
    Empty,
    Hang,
    HttpError,
    Malformed,
    Request,
    Reset,
    Scenario,
    ToolCalls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_dataclaw.drive.base import AgentRun
    from pytest_dataclaw.drive.openclaw.config import Profile

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

LEAN_TOOLS = ["read", "edit", "write", "exec", "process"]
UPSTREAM_TOOLS = [
    *LEAN_TOOLS,
    "cron",
    *("sessions_list", "sessions_history", "sessions_send", "sessions_yield", "sessions_spawn"),
    *("subagents", "session_status", "memory_search", "memory_get"),
]
TOKEN = "lease-token-0123456789"
OVERFLOW = "This model's maximum context length is 16000 tokens. However, your messages resulted in 20000 tokens."


def shell(command: str) -> tuple[str, dict[str, str]]:
    return "exec", {"command": command}


def error(status: int, message: str, code: str = "") -> Scenario:
    return Scenario(HttpError(status, {"error": {"message": message, "code": code}}), repeat_last=True)


def calls_by_id(*ids: str) -> Answer:
    """Call a tool once for each id; the scripted model's own calls have ids that nobody would want to change."""
    function = {"name": "exec", "arguments": '{"command": "true"}'}
    calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
    return Answer("", finish_reason="tool_calls", fields={"tool_calls": calls})


IDS = ["call_AbC-1.2/3", "call_" + "x" * 70, "call_a|fc_b", "功能", "call_AbC-1.2/3"]
UNFINISHED = {"index": 0, "delta": {"role": "assistant", "content": "The answer is 0."}, "finish_reason": None}

SCENARIOS = {
    "answer": Scenario(Answer("0.92")),
    "web": Scenario(Answer("0.92")),
    "upstream": Scenario(ToolCalls([shell("cat database/firms.csv")]), Answer("0.92")),
    "tool": Scenario(
        ToolCalls([shell("cat database/firms.csv; touch database/x; pwd; env")], text="Let me look."), Answer("0.92")
    ),
    "parallel": Scenario(
        ToolCalls([shell("echo one"), shell("echo two"), ("read", {"path": "database/firms.csv"})]), Answer("0.92")
    ),
    "ids": Scenario(*(calls_by_id(call_id) for call_id in IDS), Answer("0.92")),
    "partly unknown": Scenario(ToolCalls([shell("echo one"), ("frobnicate", {"x": 1})]), Answer("0.92")),
    "broken arguments": Scenario(ToolCalls([("exec", '{"command": "echo one')]), Answer("0.92")),
    "5 MB": Scenario(ToolCalls([shell("head -c 3750000 /dev/urandom | base64 -w0")]), Answer("0.92")),
    "no usage": Scenario(Answer("0.92", usage=None)),
    "empty": Scenario(Empty()),
    "NO_REPLY": Scenario(Answer("NO_REPLY")),
    "length": Scenario(Answer("The answer is trunc", finish_reason="length")),
    "content filter": Scenario(Empty(finish_reason="content_filter")),
    "cut": Scenario(Cut("The answer is 0."), repeat_last=True),
    "no finish reason": Scenario(Malformed(f"data: {json.dumps({'choices': [UNFINISHED]})}\n\n")),
    "401": error(401, "Incorrect API key provided", "invalid_api_key"),
    "401 later": Scenario(
        ToolCalls([shell("echo one")]), HttpError(401, {"error": {"message": "Incorrect API key provided"}})
    ),
    "424": error(424, "the provider failed with status 500, tried 5 times"),
    "429": error(429, "Rate limit reached for requests"),
    "500": error(500, "The server had an error"),
    "malformed": Scenario(Malformed(), repeat_last=True),
    "reset": Scenario(Reset(), repeat_last=True),
    "overflow": error(400, OVERFLOW, "context_length_exceeded"),
    "hang": Scenario(Hang()),
    "hang mid-stream": Scenario(Hang(after_text="The answer")),
    "unknown tool": Scenario(ToolCalls([("frobnicate", {"x": 1})]), repeat_last=True),
    "long command": Scenario(ToolCalls([shell("sleep 300")]), repeat_last=True),
    "kills its gateway": Scenario(ToolCalls([shell("kill -9 $PPID; sleep 5")]), repeat_last=True),
    "eats memory": Scenario(ToolCalls([shell("python3 -c 'x = bytearray(3 << 30)'; echo status $?")]), Answer("0.92")),
    "has its gateway die of memory": Scenario(
        ToolCalls([shell("echo 1000 > /proc/$PPID/oom_score_adj; python3 -c 'x = bytearray(3 << 30)'; sleep 5")]),
        repeat_last=True,
    ),
    "removes its transcript": Scenario(ToolCalls([shell("rm -r ~/.openclaw/agents")]), Answer("0.92")),
}


class TurnDeadline(Deadline):
    """Its time begins when the gateway is up, so that a slow machine takes nothing from the turn."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds=120)
        self._turn_seconds = seconds
        self._asked = 0

    def remaining(self) -> float:
        self._asked += 1
        if self._asked == 2:
            self._end = time.monotonic() + self._turn_seconds
        return super().remaining()


@dataclass
class Driven:
    """A finished turn, the requests that it made, and what it left in the container."""

    run: AgentRun
    requests: tuple[Request, ...]
    configuration: str
    workspace: list[str]

    @property
    def results(self) -> list[tuple[str, str]]:
        """Tool-call id and text of each result in the last request."""
        messages = self.requests[-1].messages
        return [
            (str(message["tool_call_id"]), message_text(message["content"]))
            for message in messages
            if message["role"] == "tool"
        ]

    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.requests[0].body["tools"]]


def brief_of(folder: Path, *, web: bool = False) -> Brief:
    firms = folder / "firms.csv"
    firms.write_text("name,revenue\nZean Jin,42\n")
    files = (WorkspaceFile(firms, PurePosixPath("database/firms.csv")),)
    return Brief("task", "task", "risk", "easy", "What is the revenue?", 300, files, web)


@pytest.fixture
def small_provider(image: str, tmp_path: Path) -> Iterator[DockerProvider]:
    """A provider of containers with 1.5 GB of memory."""
    provider = DockerProvider(image, seconds_for=lambda brief: 300, packages=tmp_path / "packages", memory="1536m")
    yield provider
    provider.close()


@pytest.fixture
def drive(provider: DockerProvider, tmp_path: Path) -> Callable[..., Driven]:
    """Return a function that has OpenClaw work against the scenario of a name, for some seconds at most."""

    def drive(
        name: str,
        profile: Profile = "lean",
        *,
        seconds: float = 100,
        search: WebSearch | None = None,
        listening: bool = True,
        within: DockerProvider = provider,
    ) -> Driven:
        brief = brief_of(tmp_path, web=search is not None)
        agent = OpenClawAgent(profile, search=search)
        with (
            within.provision(brief, TrialKey("run", name, "task")) as sandbox,
            ModelServer(SCENARIOS[name], unix_socket=sandbox.socket) as server,
        ):
            if not listening:
                server.stop()
            run = agent.run(brief, sandbox, ModelEndpoint(server.base_url, TOKEN, "maker/model"), TurnDeadline(seconds))
            configuration = sandbox.read_file("/home/agent/.openclaw/openclaw.json", limit=1 << 20) or b""
            workspace = sandbox.exec("ls --almost-all", timeout=20).output.split()
            return Driven(run, server.requests, configuration.decode(), workspace)

    return drive


def assistant_rows(run: AgentRun) -> list[dict[str, Any]]:
    messages = [row["message"] for row in run.transcript if row["type"] == "message"]
    return [message for message in messages if message["role"] == "assistant"]


def test_lean_request(drive: Callable[..., Driven]) -> None:
    driven = drive("answer")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    (request,) = driven.requests
    assert driven.tools() == LEAN_TOOLS
    assert request.model == "maker/model"
    assert {key: value for key, value in request.body.items() if key not in ("messages", "tools")} == {
        "model": "maker/model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "store": False,
        "max_completion_tokens": 16_384,
    }
    system, user = request.messages
    assert "## Skills" not in system["content"]
    assert message_text(user["content"]).endswith(" UTC] What is the revenue?")


def test_upstream_request(drive: Callable[..., Driven]) -> None:
    driven = drive("upstream", "upstream")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    assert driven.results[0][1].startswith("name,revenue\nZean Jin,42")
    assert driven.tools() == UPSTREAM_TOOLS
    system = driven.requests[0].messages[0]["content"]
    for section in ("## Skills (mandatory)", "## Memory Recall", "## Heartbeats", "# BOOTSTRAP.md - Hello, World"):
        assert section in system
    assert {"AGENTS.md", "BOOTSTRAP.md", "database"} <= set(driven.workspace)


def test_web_task_with_a_search_key(drive: Callable[..., Driven]) -> None:
    driven = drive("web", "upstream", search=WebSearch("brave-key"))
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    assert driven.tools() == [*UPSTREAM_TOOLS[:-2], "web_search", "web_fetch", *UPSTREAM_TOOLS[-2:]]


def test_tool_call_and_what_is_collected(drive: Callable[..., Driven]) -> None:
    driven = drive("tool")
    run = driven.run
    assert run.end_reason is EndReason.ANSWERED, run.log
    ((call_id, output),) = driven.results
    assert call_id == "call00101"
    assert output.startswith("name,revenue\nZean Jin,42")
    assert "Read-only file system" in output
    assert "/tmp_workspace" in output.splitlines()
    assert TOKEN not in output
    assert [row["stopReason"] for row in assistant_rows(run)] == ["toolUse", "stop"]
    assert run.transcript[0]["type"] == "session"
    assert "listening on ws://127.0.0.1" in run.gateway_log
    assert "gateway up after" in run.log
    assert "turn final after" in run.log
    assert driven.configuration.count(TOKEN) == 1
    assert driven.requests[0].api_key == TOKEN
    assert driven.workspace == ["database"]


def test_parallel_calls_are_answered_under_their_ids(drive: Callable[..., Driven]) -> None:
    results = drive("parallel").results
    assert [call_id for call_id, _ in results] == ["call00101", "call00102", "call00103"]
    assert [text.strip() for _, text in results] == ["one", "two", "name,revenue\nZean Jin,42"]


def test_tool_call_ids_are_rewritten_on_the_wire(drive: Callable[..., Driven]) -> None:
    driven = drive("ids")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    # Letters and digits only, at most 40 of them, and no id twice in a conversation.
    sent_back = ["callAbC123", "call" + "x" * 36, "callafcb", "sanitizedtoolid", "callAbC1232"]
    assert [call_id for call_id, _ in driven.results] == sent_back


def test_call_of_an_unknown_tool_vanishes_from_the_next_request(drive: Callable[..., Driven]) -> None:
    driven = drive("partly unknown")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    assert [call_id for call_id, _ in driven.results] == ["call00101"]
    assert "frobnicate" not in json.dumps([dict(message) for message in driven.requests[1].messages])


def test_broken_arguments_are_mended_and_run(drive: Callable[..., Driven]) -> None:
    ((_, output),) = drive("broken arguments").results
    assert output.strip() == "one"


def test_tool_output_of_5_mb_is_cut(drive: Callable[..., Driven]) -> None:
    driven = drive("5 MB")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    ((_, output),) = driven.results
    assert 10_000 < len(output) <= 200_000


@pytest.mark.parametrize(
    ("scenario", "expected", "detail", "requests"),
    [
        ("no usage", EndReason.ANSWERED, "", 1),
        ("empty", EndReason.EARLY_STOP, "no text", 1),
        ("NO_REPLY", EndReason.EARLY_STOP, "no text", 1),
        ("length", EndReason.ANSWERED, "cut at the length limit", 1),
        ("content filter", EndReason.EARLY_STOP, "content_filter", 1),
        ("cut", EndReason.PROVIDER_ERROR, "terminated", 1),
        # Only the wire can tell this from an answer.
        ("no finish reason", EndReason.ANSWERED, "", 1),
        ("401", EndReason.PROVIDER_ERROR, "401 Incorrect API key provided", 1),
        ("401 later", EndReason.PROVIDER_ERROR, "401 Incorrect API key provided", 2),
        # With its own retry off, OpenClaw still has the SDK's; 424, the proxy's word for a final failure, is final.
        ("424", EndReason.PROVIDER_ERROR, "424 the provider failed", 1),
        ("429", EndReason.RATE_LIMITED, "429 Rate limit reached", 3),
        ("500", EndReason.PROVIDER_ERROR, "500 The server had an error", 3),
        ("malformed", EndReason.PROVIDER_ERROR, "JSON", 1),
        ("reset", EndReason.PROVIDER_ERROR, "Connection error.", 3),
        # The second one asks for a summary of the conversation, to go on with; it has no tools.
        ("overflow", EndReason.CONTEXT_OVERFLOW, "maximum context length", 2),
    ],
)
def test_end_reason(
    drive: Callable[..., Driven], scenario: str, expected: EndReason, detail: str, requests: int
) -> None:
    driven = drive(scenario)
    assert driven.run.end_reason is expected, driven.run.log
    assert detail in driven.run.detail
    assert len(driven.requests) == requests


def test_nobody_listens(drive: Callable[..., Driven]) -> None:
    driven = drive("answer", listening=False)
    assert driven.run.end_reason is EndReason.PROVIDER_ERROR, driven.run.log
    assert "Connection error." in driven.run.detail


@pytest.mark.parametrize("scenario", ["hang", "hang mid-stream", "unknown tool", "long command"])
def test_deadline(drive: Callable[..., Driven], scenario: str) -> None:
    start = time.monotonic()
    driven = drive(scenario, seconds=6)
    assert driven.run.end_reason is EndReason.AGENT_TIMEOUT, driven.run.log
    assert driven.requests
    assert time.monotonic() - start < 100


def test_turn_lasts_until_a_deadline_that_moves(provider: DockerProvider, tmp_path: Path) -> None:
    deadline = Deadline(20, extra=lambda: 20.0)
    brief = brief_of(tmp_path)
    with (
        provider.provision(brief, TrialKey("run", "moves", "task")) as sandbox,
        ModelServer(
            Scenario(lambda _: Answer("0.92", delay=deadline.remaining() + 3)), unix_socket=sandbox.socket
        ) as server,
    ):
        run = OpenClawAgent("lean").run(brief, sandbox, ModelEndpoint(server.base_url, TOKEN, "m"), deadline)
        assert run.end_reason is EndReason.ANSWERED, run.log
        assert 0 < deadline.at_most() < 20, "the answer came after the first end, and before the last"
        assert len(server.requests) == 1


def test_agent_that_kills_its_gateway_has_crashed(drive: Callable[..., Driven]) -> None:
    driven = drive("kills its gateway")
    assert driven.run.end_reason is EndReason.AGENT_CRASH, driven.run.log
    assert assistant_rows(driven.run)


def test_tool_that_runs_out_of_memory_is_killed_alone(
    drive: Callable[..., Driven], small_provider: DockerProvider
) -> None:
    driven = drive("eats memory", within=small_provider)
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log
    ((_, output),) = driven.results
    assert "status 137" in output


def test_gateway_that_runs_out_of_memory(drive: Callable[..., Driven], small_provider: DockerProvider) -> None:
    driven = drive("has its gateway die of memory", within=small_provider)
    assert driven.run.end_reason is EndReason.OOM, driven.run.log
    assert assistant_rows(driven.run)
    assert "Killed" in driven.run.gateway_log


def test_agent_that_removes_its_transcript_has_answered(drive: Callable[..., Driven]) -> None:
    driven = drive("removes its transcript")
    assert driven.run.end_reason is EndReason.ANSWERED, driven.run.log


def test_gateway_that_cannot_start_is_infrastructure(provider: DockerProvider, tmp_path: Path) -> None:
    brief = brief_of(tmp_path)
    agent = OpenClawAgent("lean", port=70_000)
    with (
        provider.provision(brief, TrialKey("run", "bad port", "task")) as sandbox,
        ModelServer(SCENARIOS["answer"], unix_socket=sandbox.socket) as server,
        pytest.raises(SandboxError, match=r"gateway ended before it was up: (?s:.*)ERR_SOCKET_BAD_PORT"),
    ):
        agent.run(brief, sandbox, ModelEndpoint(server.base_url, TOKEN, "maker/model"), Deadline(100))
    assert server.requests == ()
