"""The `react` agent against a scripted model and a real local sandbox."""

from __future__ import annotations

import json
import threading
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from fake_chat_server import TOKEN, Answer, FakeChatServer, calls, fails, says

from pytest_dataclaw.drive.react import ReactAgent
from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.run import Deadline, ModelEndpoint, TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision.local import LocalProvider
from pytest_dataclaw.testing import scenario
from pytest_dataclaw.testing.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_dataclaw.drive.base import AgentRun
    from pytest_dataclaw.provision.base import Sandbox

PROMPT = "How many rows has ./database/a.csv? 只回答数字。"


@pytest.fixture
def brief(tmp_path: Path) -> Brief:
    source = tmp_path / "a.csv"
    source.write_text("x\n1\n2\n")
    files = (WorkspaceFile(source, PurePosixPath("database/a.csv")),)
    return Brief("task_1", "n", "risk_assessment", "easy", PROMPT, 60.0, files, web=False)


@pytest.fixture
def sandbox(brief: Brief, tmp_path: Path) -> Iterator[Sandbox]:
    with LocalProvider(tmp_path).provision(brief, TrialKey("r", "node", "task_1")) as sandbox:
        yield sandbox


Run: TypeAlias = "Callable[..., tuple[AgentRun, FakeChatServer]]"


@pytest.fixture
def run(brief: Brief, sandbox: Sandbox) -> Run:
    """Play a script; returns how the run ended, and the server with the requests that it saw."""

    def play(*script: Answer, seconds: float = 30.0, **options: Any) -> tuple[AgentRun, FakeChatServer]:
        with FakeChatServer(list(script)) as server:
            return ReactAgent(**options).run(brief, sandbox, server.endpoint, Deadline(seconds)), server

    return play


def tool_messages(server: FakeChatServer, request: int = -1) -> list[tuple[str, str]]:
    messages = server.requests[request]["messages"]
    return [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]


def test_answer_at_once(run: Run) -> None:
    outcome, server = run(says("2"))
    assert (outcome.end_reason, outcome.detail) == (EndReason.ANSWERED, "")
    [request] = server.requests
    assert request["model"] == "model-x"
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"] == PROMPT
    assert [tool["function"]["name"] for tool in request["tools"]] == ["exec"]
    assert [row["message"]["role"] for row in outcome.transcript] == ["user", "assistant"]


def test_a_command_then_the_answer(run: Run) -> None:
    outcome, server = run(calls({"command": "tail -n +2 database/a.csv | wc -l"}, text="Let me count."), says("2"))
    assert outcome.end_reason is EndReason.ANSWERED
    assert tool_messages(server) == [("call_1", "2\n")]
    assistant = server.requests[1]["messages"][2]
    assert (assistant["role"], assistant["content"]) == ("assistant", "Let me count.")
    assert [call["id"] for call in assistant["tool_calls"]] == ["call_1"]


def test_transcript_rows_have_openclaws_shape(run: Run) -> None:
    outcome, _ = run(calls({"command": "echo hi; exit 3"}, text="Look."), says("done"))
    user, turn, result, last = (row["message"] for row in outcome.transcript)
    assert {row["type"] for row in outcome.transcript} == {"message"}
    assert all(row["timestamp"].endswith("Z") for row in outcome.transcript)
    assert user == {"role": "user", "content": [{"type": "text", "text": PROMPT}]}
    assert turn["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {"command": "echo hi; exit 3"}},
    ]
    assert turn["stopReason"] == "toolUse"
    # 100 prompt tokens of which 60 cached: 40 fresh; 100 + 7 in all
    assert turn["usage"] == {"input": 40, "output": 7, "cacheRead": 60, "cacheWrite": 0, "totalTokens": 107}
    assert result["role"] == "toolResult"
    assert (result["toolCallId"], result["toolName"], result["isError"]) == ("call_1", "exec", True)
    assert result["content"] == [{"type": "text", "text": "hi\n[exit code 3]"}]
    assert (last["content"], last["stopReason"]) == ([{"type": "text", "text": "done"}], "stop")


def test_parallel_calls_are_all_answered_in_order(run: Run) -> None:
    outcome, server = run(
        calls({"command": "sleep 0.2; echo one >> log"}, {"command": "echo two >> log; cat log"}), says("ok")
    )
    assert outcome.end_reason is EndReason.ANSWERED
    assert tool_messages(server) == [("call_1", ""), ("call_2", "one\ntwo\n")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"command": "echo', "not valid JSON"),
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["ls"]', "must be a JSON object"),
        ({}, "'command' is missing"),
        ({"command": 3}, "'command' is missing or is not a string"),
        ({"command": " "}, "'command' is missing"),
        ({"command": "ls", "timeout": "10"}, "'timeout' must be a number"),
        ({"command": "ls", "timeout": True}, "'timeout' must be a number"),
        ({"command": "ls", "timeout": -1}, "'timeout' must be a number"),
        ('{"command": "ls", "timeout": NaN}', "'timeout' must be a number"),
        ('{"command": "ls", "timeout": 1e999}', "'timeout' must be a number"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_arguments_are_explained_and_the_run_goes_on(run: Run, arguments: Any, told: str) -> None:
    outcome, server = run(calls(arguments, {"command": "echo fine"}), says("ok"))
    assert outcome.end_reason is EndReason.ANSWERED
    (first, explanation), second = tool_messages(server)
    assert first == "call_1"
    assert explanation.startswith("Error: ")
    assert told in explanation
    assert second == ("call_2", "fine\n")
    assert outcome.transcript[2]["message"]["isError"]


def test_unknown_tool(run: Run) -> None:
    outcome, server = run(calls({"q": "x"}, name="web_search"), says("ok"))
    assert outcome.end_reason is EndReason.ANSWERED
    assert tool_messages(server) == [("call_1", "Error: there is no tool 'web_search'; the only tool is 'exec'.")]


def test_failing_and_slow_commands_say_so(run: Run) -> None:
    _, server = run(
        calls({"command": "printf out; exit 7"}, {"command": "kill -9 $$"}, {"command": "sleep 9", "timeout": 0.2}),
        says("ok"),
    )
    assert [content for _, content in tool_messages(server)] == [
        "out\n[exit code 7]",
        "[exit code -9]",
        "[timed out after 0.2 s]",
    ]


def test_a_command_may_take_no_longer_than_the_agent_allows(run: Run) -> None:
    started = time.monotonic()
    _, server = run(calls({"command": "sleep 9", "timeout": 1e9}), says("ok"), exec_timeout=0.3)
    assert tool_messages(server) == [("call_1", "[timed out after 0.3 s]")]
    assert time.monotonic() - started < 5


def test_long_output_is_cut_in_the_middle(run: Run) -> None:
    _, server = run(
        calls({"command": "printf 'a%.0s' $(seq 60); printf 'b%.0s' $(seq 60)"}), says("ok"), output_limit=10
    )
    assert tool_messages(server) == [("call_1", "aaaaa\n[... 110 characters left out ...]\nbbbbb")]


@pytest.mark.parametrize(
    "reply",
    [says(""), says(None), says(" \n"), says("", "length"), says(None, "content_filter"), says(None, refusal="no")],
)
def test_a_last_reply_without_text_is_an_early_stop(run: Run, reply: Answer) -> None:
    outcome, _ = run(reply)
    assert outcome.end_reason is EndReason.EARLY_STOP
    assert "no text" in outcome.detail


def test_text_that_was_cut_at_the_token_limit_is_an_answer(run: Run) -> None:
    assert run(says("The answer is 2 bec", "length"))[0].end_reason is EndReason.ANSWERED


def test_text_in_parts(run: Run) -> None:
    parts: Any = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    outcome, _ = run(says(parts))
    assert outcome.end_reason is EndReason.ANSWERED
    assert outcome.transcript[-1]["message"]["content"] == [{"type": "text", "text": "42"}]


def test_turn_limit(run: Run, sandbox: Sandbox) -> None:
    outcome, server = run(*[calls({"command": "echo x >> count"})] * 5, turn_limit=3)
    assert outcome.end_reason is EndReason.EARLY_STOP
    assert "3 turns" in outcome.detail
    assert len(server.requests) == 3
    assert sandbox.exec("wc -l < count", timeout=5).output.strip() == "2"  # the last turn's command is not run


def test_reasoning_goes_back_with_its_turn(run: Run) -> None:
    tool_call = {"id": "a", "type": "function", "function": {"name": "exec", "arguments": '{"command": "true"}'}}
    _, server = run(says(None, "tool_calls", tool_calls=[tool_call], reasoning_content="hm", audio=None), says("ok"))
    assert server.requests[1]["messages"][2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [tool_call],
        "reasoning_content": "hm",
    }


def test_text_that_no_utf8_can_carry(run: Run) -> None:
    outcome, server = run(calls(r'{"command": "echo \ud800"}', text="a\ud800b"), says("ok\udfff"))
    assert outcome.end_reason is EndReason.ANSWERED
    assert server.requests[1]["messages"][2]["content"] == "a?b"
    assert tool_messages(server) == [("call_1", "?\n")]
    for row in outcome.transcript:
        json.dumps(row, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (fails(429, "slow down", "rate_limit_exceeded"), EndReason.RATE_LIMITED, "HTTP 429: slow down"),
        (fails(500, "broken"), EndReason.PROVIDER_ERROR, "HTTP 500: broken"),
        (fails(401, f"bad key {TOKEN}"), EndReason.PROVIDER_ERROR, "HTTP 401: bad key [token]"),
        (fails(403, "no more", "request_limit"), EndReason.TRIAL_BUDGET, "HTTP 403: no more"),
        (fails(400, "unknown parameter"), EndReason.PROVIDER_ERROR, "HTTP 400: unknown parameter"),
        (fails(400, "too big", "context_length_exceeded"), EndReason.CONTEXT_OVERFLOW, "HTTP 400: too big"),
        (
            fails(400, "This model's maximum context length is 8 tokens."),
            EndReason.CONTEXT_OVERFLOW,
            "HTTP 400: This model's maximum context length is 8 tokens.",
        ),
        (fails(400, "prompt is too long: 9 > 8"), EndReason.CONTEXT_OVERFLOW, "HTTP 400: prompt is too long: 9 > 8"),
        (fails(503, "context length server down"), EndReason.PROVIDER_ERROR, "HTTP 503: context length server down"),
        (Answer(502, b"<html>bad gateway</html>"), EndReason.PROVIDER_ERROR, "HTTP 502"),
        (Answer(200, b"<html>hello</html>"), EndReason.PROVIDER_ERROR, "not JSON"),
        (Answer(200, b"[" * 100_000), EndReason.PROVIDER_ERROR, "not JSON"),
        (Answer(200, b'{"error": {"code": 502}}'), EndReason.PROVIDER_ERROR, "not a chat completion: {"),
        (Answer(200, b'{"choices": []}'), EndReason.PROVIDER_ERROR, "not a chat completion"),
        (Answer(200, b'{"choices": [{"message": {"tool_calls": [{}]}}]}'), EndReason.PROVIDER_ERROR, "not a chat"),
        (Answer(200, b'"text"'), EndReason.PROVIDER_ERROR, "not a chat completion"),
    ],
)
def test_errors_of_the_provider(run: Run, answer: Answer, reason: EndReason, said: str) -> None:
    outcome, server = run(calls({"command": "true"}), answer, says("never asked for"))
    assert outcome.end_reason is reason
    assert said in outcome.detail
    assert len(server.requests) == 2  # no retry: that is the proxy's business
    assert TOKEN not in outcome.detail + outcome.log + json.dumps(outcome.transcript)


def test_nobody_listens(brief: Brief, sandbox: Sandbox) -> None:
    with FakeChatServer([]) as server:
        endpoint = server.endpoint
    outcome = ReactAgent().run(brief, sandbox, endpoint, Deadline(30))
    assert outcome.end_reason is EndReason.PROVIDER_ERROR
    assert "refused" in outcome.detail


@pytest.mark.parametrize("stuck", [Answer(hang=True), Answer(drip=True)], ids=["silent", "dripping"])
def test_a_request_is_cut_by_the_deadline(run: Run, stuck: Answer) -> None:
    started = time.monotonic()
    outcome, _ = run(stuck, seconds=2.0)
    assert 2.0 <= time.monotonic() - started < 4.0
    assert outcome.end_reason is EndReason.AGENT_TIMEOUT
    assert "during a request" in outcome.detail


def test_a_request_and_a_command_may_last_until_a_deadline_that_moves(brief: Brief, sandbox: Sandbox) -> None:
    loop = scenario.ToolCalls([("exec", {"command": "sleep 1; echo done"})])

    def play(lost: float) -> AgentRun:
        with ModelServer(scenario.Scenario(loop, scenario.Answer("2", delay=2.0))) as server:
            endpoint, deadline = ModelEndpoint(server.base_url, TOKEN, "m"), Deadline(2.5, extra=lambda: lost)
            return ReactAgent().run(brief, sandbox, endpoint, deadline)

    assert play(0.0).end_reason is EndReason.AGENT_TIMEOUT
    outcome = play(2.5)
    assert outcome.end_reason is EndReason.ANSWERED
    assert outcome.transcript[2]["message"]["content"] == [{"type": "text", "text": "done\n"}]


def test_a_command_is_cut_by_the_deadline(run: Run) -> None:
    started = time.monotonic()
    outcome, server = run(
        calls({"command": "trap '' TERM; sleep 60; sleep 60"}, {"command": "touch late"}), says("late"), seconds=1.0
    )
    assert 1.0 <= time.monotonic() - started < 4.0
    assert outcome.end_reason is EndReason.AGENT_TIMEOUT
    assert len(server.requests) == 1
    assert [row["message"]["role"] for row in outcome.transcript] == ["user", "assistant", "toolResult"]


def test_no_request_after_the_deadline(run: Run) -> None:
    outcome, server = run(says("2"), seconds=0.0)
    assert outcome.end_reason is EndReason.AGENT_TIMEOUT
    assert server.requests == []


def test_the_hosts_proxy_settings_and_keys_are_left_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    outcome, server = run(says("2"))
    assert outcome.end_reason is EndReason.ANSWERED
    assert server.headers[0]["authorization"] == f"Bearer {TOKEN}"
    assert "sk-of-the-host" not in str(server.headers)


def test_the_log_is_for_people(run: Run) -> None:
    outcome, _ = run(calls({"command": "echo a\nexit 4"}), says("2"))
    request, command, last, end = outcome.log.splitlines()
    assert "request 1: " in request
    assert "finish reason tool_calls, 1 tool calls" in request
    assert "exec: exit code 4 after " in command
    assert command.endswith(r"echo a\nexit 4")
    assert "request 2: " in last
    assert end.endswith("end: answered")


def test_an_error_of_the_sandbox_passes_through(run: Run, sandbox: Sandbox) -> None:
    sandbox.stop()
    with pytest.raises(SandboxError, match="stopped"):
        run(calls({"command": "true"}), says("2"))


def test_no_request_thread_is_left_behind(run: Run) -> None:
    run(Answer(hang=True), seconds=0.2)
    end = time.monotonic() + 5
    while any(thread.name == "dataclaw-react-request" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.02)
