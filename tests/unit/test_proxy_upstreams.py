"""The built-in models, what they cost, and the wire format they are served in."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.trajectory import ToolCall, Usage
from pytest_dataclaw.proxy.base import LeaseRequest, Script
from pytest_dataclaw.proxy.ledger import Ledger, read_usage
from pytest_dataclaw.proxy.upstreams.base import UpstreamError
from pytest_dataclaw.proxy.upstreams.nop import NopUpstream
from pytest_dataclaw.proxy.upstreams.oracle import OracleUpstream, heredoc
from pytest_dataclaw.proxy.upstreams.played import PlayedUpstream
from pytest_dataclaw.proxy.wire import MAX_DEPTH, Reply, WireError, message_text, read_reply, read_request

KEY = TrialKey("run", "tasks/t.md::t", "t")


def lease(*steps: str, answer: str = "") -> LeaseRequest:
    return LeaseRequest(KEY, "agent", "oracle", Path("/nowhere/j.jsonl"), Script(steps, answer))


def tool(name: str, **types: str) -> dict[str, Any]:
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


EXEC = tool("exec", command="string")
TASK = {"role": "user", "content": "q"}


def ask(request: LeaseRequest, messages: list[dict[str, Any]], *tools: dict[str, Any]) -> Reply:
    body = {"model": "oracle", "messages": messages, "tools": list(tools)}
    return read_reply(asyncio.run(OracleUpstream().complete(body, request)))


def after(reply: Reply, output: str) -> list[dict[str, Any]]:
    calls = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": call.call_id, "content": output} for call in reply.tool_calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def test_oracle_plays_one_step_a_turn_and_answers_with_what_the_last_printed() -> None:
    script = lease("print(1)", "print(2)")
    one = ask(script, [TASK], EXEC)
    two = ask(script, [TASK, *after(one, "1\n")], EXEC)
    end = ask(script, [TASK, *after(one, "1\n"), *after(two, " 2\n")], EXEC)
    commands = [json.loads(reply.tool_calls[0].arguments)["command"] for reply in (one, two)]
    assert commands == [f"python3 - <<'DATACLAW_STEP'\nprint({n})\nDATACLAW_STEP" for n in (1, 2)]
    assert one.tool_calls[0].call_id != two.tool_calls[0].call_id
    assert [reply.finish_reason for reply in (one, two, end)] == ["tool_calls", "tool_calls", "stop"]
    assert (end.text, end.tool_calls) == ("2", ())


def test_oracle_finds_its_place_in_a_shortened_history_and_in_a_repeated_request() -> None:
    script = lease("print(1)", "print(2)", "print(3)")
    one = ask(script, [TASK], EXEC)
    two = ask(script, [TASK, *after(one, "1")], EXEC)
    shortened = [TASK, *after(two, "2")]
    assert "print(3)" in ask(script, shortened, EXEC).tool_calls[0].arguments
    assert ask(script, shortened, EXEC) == ask(script, shortened, EXEC)


def test_oracle_without_steps_answers_at_once_and_needs_no_tool() -> None:
    assert ask(lease(answer="[1, 2]"), [TASK]) == Reply("[1, 2]", finish_reason="stop")


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ([tool("read", path="string"), EXEC, tool("bash", command="string")], ("exec", "command")),
        ([tool("shell", cmd="string")], ("shell", "cmd")),
        ([tool("bash", script="string", timeout="number")], ("bash", "script")),
        ([tool("exec", command="array"), tool("run_command", command="string")], ("run_command", "command")),
    ],
)
def test_oracle_chooses_a_tool_that_runs_shell_commands(tools: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    (call,) = ask(lease("pass"), [TASK], *tools).tool_calls
    assert (call.name, *json.loads(call.arguments)) == expected


def test_oracle_without_a_shell_tool_is_a_bad_request() -> None:
    with pytest.raises(UpstreamError, match="exec, bash, shell, run_command") as caught:
        ask(lease("pass"), [TASK], tool("read", command="string"))
    assert caught.value.status == 400


@pytest.mark.parametrize("script", ["print('$HOME `id` \\\\ é')", "print('''\nDATACLAW_STEP\nDATACLAW_STEP_\n''')", ""])
def test_a_heredoc_hands_over_any_script_as_it_is(script: str) -> None:
    shown = heredoc(script).replace("python3 -", "cat", 1)
    assert subprocess.run(["bash", "-c", shown], capture_output=True, check=True).stdout.decode() == script + "\n"


def test_nop_answers_in_one_turn_with_nothing_a_gold_could_be() -> None:
    reply = read_reply(asyncio.run(NopUpstream().complete({"model": "nop", "messages": [TASK]}, lease())))
    assert (reply.tool_calls, reply.finish_reason) == ((), "stop")
    words = set(re.findall(r"[a-z]+", reply.text.lower()))
    assert not words & {"yes", "no", "not", "none", "equal", "cannot", "unable", "data", "relevant"}
    assert not re.search(r"\d", reply.text)


def test_played_answers_with_what_the_function_says() -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        if len(messages) > 1:
            raise ValueError("one message, please")
        return str(messages[0]["content"]).upper()

    played = PlayedUpstream(reply)
    body: dict[str, Any] = {"model": "oracle", "messages": [TASK]}
    assert read_reply(asyncio.run(played.complete(body, lease()))).text == "Q"
    with pytest.raises(UpstreamError, match="one message, please") as caught:
        asyncio.run(played.complete({**body, "messages": [TASK, TASK]}, lease()))
    assert caught.value.status == 400


def test_the_usage_of_built_in_models_is_a_quarter_of_the_characters() -> None:
    completion = asyncio.run(OracleUpstream().complete({"model": "m", "messages": [TASK]}, lease(answer="好")))
    # [{"role": "user", "content": "q"}] has 34 characters, {"content": "好"} has 16.
    assert read_usage(completion["usage"]) == Usage(input_tokens=9, output_tokens=4, cost_usd=0.0)


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        (None, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input_tokens=10, output_tokens=2)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 5},
                "cost": 0.125,
            },
            Usage(0, 100, 20, 60, 30, 5, 0.125),
        ),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}, Usage(0, 9, 0, 4, 3)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(0, 9, 0, 4)),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(0, 9, 0, 4),
        ),
        ({"prompt_tokens": None, "prompt_tokens_details": None, "cost": 0}, Usage(cost_usd=0.0)),
    ],
)
def test_usage_from_the_wire(wire: dict[str, Any] | None, usage: Usage) -> None:
    assert read_usage(wire) == usage


@pytest.mark.parametrize(
    "wire", [{"prompt_tokens": "10"}, {"completion_tokens": -1}, {"prompt_tokens": True}, {"cost": float("nan")}]
)
def test_usage_that_is_no_number_is_an_error(wire: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="usage: "):
        read_usage(wire)


def test_the_ledger_keeps_trials_and_roles_apart() -> None:
    ledger = Ledger()
    other = TrialKey("run", "tasks/u.md::u", "u")
    ledger.add(KEY, "agent", Usage(requests=1, input_tokens=10, cost_usd=None))
    ledger.add(KEY, "agent", Usage(requests=1, input_tokens=5, cost_usd=0.5))
    ledger.add(KEY, "judge", Usage(requests=1, input_tokens=100))
    ledger.add(other, "agent", Usage(requests=1))
    assert ledger.trial(KEY, "agent") == Usage(requests=2, input_tokens=15, cost_usd=0.5)
    assert ledger.total("agent") == Usage(requests=3, input_tokens=15, cost_usd=0.5)
    assert ledger.total("judge") == Usage(requests=1, input_tokens=100)
    assert ledger.trial(other, "judge") == Usage()
    assert [(key, role) for key, role, _ in ledger.trials()] == [(KEY, "agent"), (KEY, "judge"), (other, "agent")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, "b", {"type": "text", "text": "c"}], "ac"),
        ({"text": "a"}, ""),
    ],
)
def test_message_text(content: object, text: str) -> None:
    assert message_text(content) == text


def test_a_reply_keeps_reasoning_and_broken_arguments() -> None:
    call = {"id": "a", "function": {"name": "exec", "arguments": '{"command": "ls'}}
    message = {"content": None, "reasoning_content": "hm", "tool_calls": [call]}
    completion = {"choices": [{"message": message, "finish_reason": None}]}
    assert read_reply(completion) == Reply("", "hm", (ToolCall("a", "exec", '{"command": "ls'),), "")


def nested(depth: int) -> bytes:
    """A request whose innermost list is at `depth`: body, messages, message and content are the first four levels."""
    return b'{"model":"m","messages":[{"role":"user","content":' + b"[" * (depth - 3) + b"]" * (depth - 3) + b"}]}"


def test_a_request_as_deep_as_allowed_is_read() -> None:
    assert read_request(nested(MAX_DEPTH))["model"] == "m"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "`model`"),
        (b'{"model": 1, "messages": [{"role": "user"}]}', "`model`"),
        (b'{"model": "m"}', "`messages`"),
        (b'{"model": "m", "messages": []}', "`messages`"),
        (b'{"model": "m", "messages": ["hello"]}', "`role`"),
        (b'{"model": "m", "messages": [{"role": "user"}], "tools": [{"type": "function"}]}', "every tool"),
        (b'{"model": "m", "messages": [{"role": "user"}], "tools": 1}', "every tool"),
        (nested(MAX_DEPTH + 1), "nests deeper"),
        (nested(100_000), "not JSON|nests deeper"),
    ],
)
def test_a_malformed_request_is_status_400(raw: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message) as caught:
        read_request(raw)
    assert caught.value.status == 400
