"""The proxy over real sockets: the openai SDK as the agent, raw HTTP for what no SDK would send."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import openai
import pytest

from pytest_dataclaw.errors import ProviderError, UsageError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.trajectory import ToolCall, Traffic, Trajectory, Turn, Usage
from pytest_dataclaw.proxy.base import LeaseRequest, Role, Script
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.exchange import read_journal
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import MAX_BODY_BYTES, ProxyServer
from pytest_dataclaw.proxy.upstreams.base import Upstream, UpstreamError, completion
from pytest_dataclaw.proxy.upstreams.nop import ANSWER, NopUpstream
from pytest_dataclaw.proxy.upstreams.oracle import OracleUpstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message
    from pathlib import Path

    from pytest_dataclaw.proxy.base import Lease
    from pytest_dataclaw.proxy.control import ControlAddress

SECRET = "sk-very-secret-0123456789"
TOOL: Any = {
    "type": "function",
    "function": {"name": "exec", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
}
TASK: Any = {"role": "user", "content": "q"}


class Fixed:
    """Answers every request with the same message."""

    def __init__(self, **message: Any) -> None:
        self.message = message

    async def aclose(self) -> None:
        pass

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        return completion(request, self.message)


class Slow:
    """Tells that it has been asked, then takes a minute, and tells if it was cut."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.cut = threading.Event()

    async def aclose(self) -> None:
        pass

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cut.set()
            raise
        return completion(request, {"content": "late"})


class Raising:
    """Fails with the error it is given, or answers with nonsense if it is given that."""

    def __init__(self, outcome: Exception | dict[str, Any]) -> None:
        self.outcome = outcome
        self.requests = 0

    async def aclose(self) -> None:
        pass

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        self.requests += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


CALLS: list[dict[str, Any]] = [
    {
        "id": f"c{n}",
        "type": "function",
        "function": {"name": "exec", "arguments": json.dumps({"command": f"echo {n} é"})},
    }
    for n in (1, 2)
]


class Bench:
    """A running proxy with a client, and shortcuts to lease and call."""

    def __init__(self, address: ControlAddress, tmp_path: Path, slow: Slow, failing: Raising) -> None:
        self.address = address
        self.tmp_path = tmp_path
        self.slow = slow
        self.failing = failing
        self.client = ProxyClient(address)

    def lease(self, model: str, trial: str = "t", role: Role = "agent", script: Script | None = None) -> Lease:
        journal = self.tmp_path / trial / f"{role}.jsonl"
        key = TrialKey("run", f"tasks/{trial}.md::{trial}", trial)
        return self.client.open_lease(LeaseRequest(key, role, model, journal, script or Script()))

    def sdk(self, lease: Lease) -> openai.OpenAI:
        endpoint = lease.endpoint
        return openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.token, timeout=30)

    def http(
        self, method: str, path: str, token: str = "", body: bytes | None = None
    ) -> tuple[int, dict[str, Any], Message]:
        connection = http.client.HTTPConnection(urlsplit(self.address.url).netloc, timeout=30)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
            response = connection.getresponse()
            raw = response.read()
            return response.status, json.loads(raw) if raw else {}, response.headers
        finally:
            connection.close()

    def chat(self, lease: Lease, body: bytes | dict[str, Any]) -> tuple[int, dict[str, Any], Message]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http("POST", "/v1/chat/completions", lease.endpoint.token, raw)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    slow, failing = Slow(), Raising(UpstreamError(503, f"overloaded; key {SECRET}", "overloaded"))
    upstreams: dict[tuple[Role, str], Upstream] = {
        ("agent", "oracle"): OracleUpstream(),
        ("agent", "nop"): NopUpstream(),
        ("judge", "nop"): NopUpstream(),
        ("agent", "org/parallel"): Fixed(content="Two things.", reasoning="hm", tool_calls=CALLS),
        ("agent", "long"): Fixed(content="x" * 30_000_000),
        ("agent", "slow"): slow,
        ("agent", "failing"): failing,
    }
    with ProxyServer(upstreams, Redactor({"OPENROUTER_API_KEY": SECRET})) as address:
        yield Bench(address, tmp_path, slow, failing)


def test_a_plain_completion(bench: Bench) -> None:
    lease = bench.lease("nop")
    with bench.sdk(lease) as sdk:
        reply = sdk.chat.completions.create(model="nop", messages=[TASK], temperature=0.5)
    assert reply.choices[0].message.content == ANSWER
    assert reply.choices[0].finish_reason == "stop"
    # 34 characters of messages, 12 more than the answer has of reply.
    tokens = -(-(len(ANSWER) + 15) // 4)
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (9, tokens)
    traffic = bench.client.close_lease(lease)
    assert traffic.trajectory == Trajectory((Turn(1, ANSWER),))
    assert (traffic.last_error, traffic.last_status) == ("", 200)
    assert traffic.usage.wall_seconds > 0
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert (exchange.number, exchange.status, exchange.error, exchange.fault) == (1, 200, "", "")
    assert (exchange.complete, exchange.messages, exchange.parameters) == (True, [TASK], {"temperature": 0.5})
    assert exchange.usage == traffic.usage == Usage(1, 9, tokens, cost_usd=0.0, wall_seconds=traffic.usage.wall_seconds)
    assert exchange.started_at.endswith("+00:00")


def test_a_stream_adds_up_to_the_plain_reply(bench: Bench) -> None:
    lease = bench.lease("org/parallel")
    with bench.sdk(lease) as sdk:
        plain = sdk.chat.completions.create(model="org/parallel", messages=[TASK], tools=[TOOL])
        with sdk.chat.completions.stream(
            model="org/parallel", messages=[TASK], tools=[TOOL], stream_options={"include_usage": True}
        ) as stream:
            streamed = stream.get_final_completion()
    message = streamed.choices[0].message
    assert message.content == plain.choices[0].message.content == "Two things."
    calls = message.tool_calls or []
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        # The second exchange of the lease: its ids go on from the first one's two.
        (f"c0000000{n + 2}", "exec", json.dumps({"command": f"echo {n} é"}))
        for n in (1, 2)
    ]
    assert streamed.choices[0].finish_reason == plain.choices[0].finish_reason == "tool_calls"
    assert streamed.usage is not None
    assert plain.usage is not None
    assert streamed.usage.total_tokens == plain.usage.total_tokens
    traffic = bench.client.close_lease(lease)
    assert (len(traffic.trajectory.turns), traffic.trajectory.side_exchanges) == (1, 1)
    journal = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert [(exchange.complete, exchange.tools) for exchange in journal] == [(True, ("exec",))] * 2
    assert journal[1].reply is not None
    assert (journal[1].reply.reasoning, journal[1].reply.tool_calls[1].call_id) == ("hm", "c00000004")


@pytest.mark.parametrize("include_usage", [True, False])
def test_the_chunks_of_a_stream(bench: Bench, include_usage: bool) -> None:
    lease = bench.lease("org/parallel")
    connection = http.client.HTTPConnection(urlsplit(bench.address.url).netloc, timeout=30)
    body: dict[str, Any] = {"model": "org/parallel", "messages": [TASK], "stream": True}
    if include_usage:
        body["stream_options"] = {"include_usage": True}
    headers = {"Authorization": f"Bearer {lease.endpoint.token}"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    assert response.headers["Content-Type"] == "text/event-stream"
    events = response.read().decode().split("\n\n")
    connection.close()
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    if include_usage:
        last = chunks.pop()
        assert last["choices"] == []
        assert last["usage"]["total_tokens"] > 0
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "reasoning": "hm"}
    assert deltas[1] == {"content": "Two things."}
    assert deltas[2] == {
        "tool_calls": [
            {"index": 0, "id": "c00000001", "type": "function", "function": {"name": "exec", "arguments": ""}}
        ]
    }
    assert deltas[5]["tool_calls"][0]["index"] == 1
    assert json.loads(deltas[5]["tool_calls"][0]["function"]["arguments"]) == {"command": "echo 2 é"}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 6 + ["tool_calls"]


def test_the_models_list_shows_the_leased_model_only(bench: Bench) -> None:
    with bench.sdk(bench.lease("org/parallel")) as sdk:
        assert [model.id for model in sdk.models.list()] == ["org/parallel"]
        assert sdk.models.retrieve("org/parallel").id == "org/parallel"
        with pytest.raises(openai.NotFoundError) as caught:
            sdk.models.retrieve("nop")
    assert caught.value.code == "model_not_found"


def test_another_trials_model_is_not_found(bench: Bench) -> None:
    bench.lease("nop", "other")
    lease = bench.lease("oracle", script=Script(answer="42"))
    with bench.sdk(lease) as sdk:
        with pytest.raises(openai.NotFoundError) as caught:
            sdk.chat.completions.create(model="nop", messages=[TASK])
        assert sdk.chat.completions.create(model="oracle", messages=[TASK]).choices[0].message.content == "42"
    assert caught.value.code == "model_not_found"
    traffic = bench.client.close_lease(lease)
    assert (traffic.trajectory.answer, traffic.trajectory.side_exchanges, traffic.usage.requests) == ("42", 1, 1)


def test_an_unknown_and_a_closed_lease_are_unauthorised(bench: Bench) -> None:
    lease = bench.lease("nop")
    bench.client.close_lease(lease)
    for token in (lease.endpoint.token, "nonsense", "", bench.address.token):
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/v1/models/nop")):
            status, body, headers = bench.http(method, path, token, b"{}" if method == "POST" else None)
            assert status == 401
            assert body["error"]["code"] == "invalid_api_key"
            assert set(body["error"]) == {"message", "type", "code"}
            assert headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"model": "nop"}', b'{"model": "nop", "messages": []}', b"[" * 100_000]
)
def test_a_bad_request_is_recorded_but_says_nothing_of_the_provider(bench: Bench, body: bytes) -> None:
    lease = bench.lease("nop")
    status, answer, headers = bench.chat(lease, body)
    assert (status, headers["x-should-retry"]) == (400, "false")
    assert answer["error"]["message"]
    traffic = bench.client.close_lease(lease)
    assert (traffic.usage.requests, traffic.trajectory) == (0, Trajectory((), 1))
    assert (traffic.last_error, traffic.last_status) == ("", 0)
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert (exchange.status, exchange.fault, exchange.complete) == (400, "client", False)


def test_a_body_that_is_too_large_is_refused(bench: Bench) -> None:
    lease = bench.lease("nop")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lease.endpoint.token}\r\n"
    with socket.create_connection(_place(bench), timeout=30) as raw:
        raw.sendall(f"{head}Content-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode())
        chunk = b" " * 1024 * 1024
        try:
            for _ in range(65):
                raw.sendall(chunk)
        except ConnectionError:
            pass  # the proxy need not read to the end
        answer = raw.recv(4096).decode()
    assert " 413 " in answer.splitlines()[0]
    traffic = bench.client.close_lease(lease)
    assert (traffic.last_error, traffic.usage.requests) == ("", 0)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/completions", 404),
        ("POST", "/v1/responses", 404),
        ("HEAD", "/v1/models", 405),
        ("GET", "/v1/../control/health", 404),
        ("GET", "/control/health", 401),
        ("GET", "/control/nonsense", 401),
        ("GET", "/%63ontrol/ledger", 401),
        ("POST", "/control/leases", 401),
    ],
)
def test_nothing_else_is_there_for_the_holder_of_a_lease(bench: Bench, method: str, path: str, status: int) -> None:
    answer, body, headers = bench.http(method, path, bench.lease("nop").endpoint.token)
    assert answer == status
    assert headers["x-should-retry"] == "false"
    assert method == "HEAD" or body["error"]["message"]


def test_a_providers_failure_is_final_for_the_agent_and_kept_as_it_was(bench: Bench) -> None:
    lease = bench.lease("failing")
    with bench.sdk(lease) as sdk, pytest.raises(openai.APIStatusError) as caught:
        sdk.with_options(max_retries=3).chat.completions.create(model="failing", messages=[TASK])
    assert (caught.value.status_code, caught.value.code) == (424, "overloaded")
    assert bench.failing.requests == 1
    traffic = bench.client.close_lease(lease)
    assert (traffic.last_status, traffic.trajectory) == (503, Trajectory((), 1))
    assert traffic.last_error.startswith("overloaded")
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert (exchange.status, exchange.fault) == (503, "provider")
    assert exchange.error == "overloaded; key [redacted:OPENROUTER_API_KEY]"


@pytest.mark.parametrize(
    "outcome",
    [
        {"choices": []},
        {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": "many"}},
        {"choices": [{"message": {"tool_calls": [{"function": {}}]}}]},
        RuntimeError("a defect"),
        ConnectionResetError("lost"),
    ],
)
def test_an_unusable_answer_is_the_providers_failure(bench: Bench, outcome: Exception | dict[str, Any]) -> None:
    bench.failing.outcome = outcome
    lease = bench.lease("failing")
    status, body, _ = bench.chat(lease, {"model": "failing", "messages": [TASK]})
    assert (status, body["error"]["code"]) == (424, "bad_upstream")
    assert bench.client.close_lease(lease).last_status == 502


def test_a_reply_without_a_finish_reason_is_not_complete(bench: Bench) -> None:
    bench.failing.outcome = {"choices": [{"message": {"content": "half a sent"}, "finish_reason": None}]}
    lease = bench.lease("failing")
    assert bench.chat(lease, {"model": "failing", "messages": [TASK]})[0] == 200
    traffic = bench.client.close_lease(lease)
    assert (traffic.last_status, traffic.trajectory) == (200, Trajectory((), 1))


def test_a_failure_that_was_recovered_from_is_no_error(bench: Bench) -> None:
    lease = bench.lease("failing")
    body = {"model": "failing", "messages": [TASK]}
    assert bench.chat(lease, body)[0] == 424
    bench.failing.outcome = completion(body, {"content": "fine"})
    assert bench.chat(lease, body)[0] == 200
    traffic = bench.client.close_lease(lease)
    assert (traffic.last_error, traffic.last_status) == ("", 200)
    assert traffic.trajectory == Trajectory((Turn(1, "fine"),), 1)
    assert traffic.usage.requests == 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_before_the_end_leaves_an_incomplete_exchange(bench: Bench, stream: bool) -> None:
    lease = bench.lease("long")
    with socket.create_connection(_place(bench), timeout=30) as raw:
        raw.sendall(_raw_chat(lease, {"model": "long", "messages": [TASK], "stream": stream}))
        assert b" 200 " in raw.recv(100)
    _wait((bench.tmp_path / "t" / "agent.jsonl").exists)
    traffic = bench.client.close_lease(lease)
    assert (traffic.trajectory, traffic.last_status) == (Trajectory((), 1), 0)
    assert traffic.usage.output_tokens > 7_000_000, "the tokens were spent all the same"
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert (exchange.complete, exchange.status, exchange.fault) == (False, 499, "client")
    assert exchange.reply is not None


def test_a_long_reply_read_to_its_end_is_complete(bench: Bench) -> None:
    lease = bench.lease("long")
    with bench.sdk(lease) as sdk:
        chunks = sdk.chat.completions.create(model="long", messages=[TASK], stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    traffic = bench.client.close_lease(lease)
    assert len(text) == len(traffic.trajectory.answer) == 30_000_000


def test_hanging_up_cuts_the_upstream(bench: Bench) -> None:
    lease = bench.lease("slow")
    with socket.create_connection(_place(bench), timeout=30) as raw:
        raw.sendall(_raw_chat(lease, {"model": "slow", "messages": [TASK]}))
        assert bench.slow.asked.wait(10)
    assert bench.slow.cut.wait(10)
    assert bench.client.close_lease(lease).usage.requests == 1


def test_closing_a_lease_cuts_what_is_in_flight_and_refuses_the_rest(bench: Bench) -> None:
    lease, other = bench.lease("slow"), bench.lease("slow", "other")
    with bench.sdk(lease) as sdk, ThreadPoolExecutor(1) as pool:
        call = pool.submit(
            sdk.with_options(max_retries=0).chat.completions.create, model="slow", messages=[TASK], stream=True
        )
        assert bench.slow.asked.wait(10)
        began = time.monotonic()
        traffic = bench.client.close_lease(lease)
        assert time.monotonic() - began < 5
        assert bench.slow.cut.is_set()
        assert isinstance(call.exception(10), openai.APIConnectionError)
        with pytest.raises(openai.AuthenticationError):
            sdk.models.list()
    assert (traffic.usage.requests, traffic.trajectory, traffic.last_error) == (1, Trajectory((), 1), "")
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert (exchange.status, exchange.fault, exchange.messages) == (499, "closed", [TASK])
    assert bench.http("GET", "/v1/models", other.endpoint.token)[0] == 200


def test_closing_twice_gives_the_same_traffic(bench: Bench) -> None:
    lease = bench.lease("nop")
    bench.chat(lease, {"model": "nop", "messages": [TASK]})
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: bench.client.close_lease(lease), range(8))
    assert first.trajectory.answer == ANSWER
    assert all(other == first for other in others)


def test_a_judge_has_its_own_lease_and_account(bench: Bench) -> None:
    agent, judge = bench.lease("nop"), bench.lease("nop", role="judge")
    bench.chat(agent, {"model": "nop", "messages": [TASK]})
    for _ in range(2):
        bench.chat(judge, {"model": "nop", "messages": [TASK]})
    status, ledger, _ = bench.http("GET", "/control/ledger", bench.address.token)
    assert status == 200
    assert {role: usage["requests"] for role, usage in ledger["run"].items()} == {"agent": 1, "judge": 2}
    assert [(row["key"]["task_id"], row["role"], row["usage"]["requests"]) for row in ledger["trials"]] == [
        ("t", "agent", 1),
        ("t", "judge", 2),
    ]
    assert bench.client.close_lease(judge).usage.requests == 2


def test_tokens_of_leases_do_not_reach_the_journal(bench: Bench) -> None:
    lease = bench.lease("nop")
    leak = {"role": "user", "content": f"env says {lease.endpoint.token} and {bench.address.token}"}
    bench.chat(lease, {"model": "nop", "messages": [leak]})
    bench.client.close_lease(lease)
    (exchange,) = read_journal(bench.tmp_path / "t" / "agent.jsonl")
    assert exchange.messages[0]["content"] == "env says [redacted:LEASE_TOKEN] and [redacted:CONTROL_TOKEN]"


def test_a_journal_that_cannot_be_written_is_an_error_when_the_lease_is_closed(bench: Bench) -> None:
    (bench.tmp_path / "t").write_text("a file where the folder should be")
    lease = bench.lease("nop")
    assert bench.chat(lease, {"model": "nop", "messages": [TASK]})[0] == 200
    for _ in range(2):
        with pytest.raises(ProviderError, match="journal could not be written"):
            bench.client.close_lease(lease)


def test_a_model_that_nobody_serves_in_the_role_is_a_usage_error(bench: Bench) -> None:
    with pytest.raises(UsageError, match="'oracle' for the judge; served: nop"):
        bench.lease("oracle", role="judge")


def play(bench: Bench, trial: int, steps: int) -> tuple[Traffic, Trajectory]:
    """Play an oracle script to its end; return what the proxy saw, and what it should have seen."""
    scripts = tuple(f"print({trial}, {step})" for step in range(steps))
    lease = bench.lease("oracle", f"trial{trial}", script=Script(scripts))
    messages: list[Any] = [TASK]
    turns: list[Turn] = []
    with bench.sdk(lease) as sdk:
        while True:
            message = sdk.chat.completions.create(model="oracle", messages=messages, tools=[TOOL]).choices[0].message
            calls = [call.to_dict() for call in message.tool_calls or ()]
            functions: list[Any] = [call["function"] for call in calls]
            wire = [ToolCall(str(c["id"]), f["name"], f["arguments"]) for c, f in zip(calls, functions, strict=True)]
            output = f"{trial}: {len(turns)}\n"
            turns.append(Turn(len(turns) + 1, message.content or "", tuple(wire), (output,) * len(wire)))
            if not calls:
                return bench.client.close_lease(lease), Trajectory(tuple(turns))
            messages.append(message.to_dict())
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": output} for call in calls]


def test_a_hundred_leases_at_once_add_up(bench: Bench) -> None:
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda trial: play(bench, trial, 1 + trial % 4), range(100)))
    for trial, (traffic, expected) in enumerate(results):
        steps = 1 + trial % 4
        assert traffic.trajectory == expected
        assert (traffic.usage.requests, traffic.trajectory.side_exchanges) == (steps + 1, 0)
        assert traffic.trajectory.answer == f"{trial}: {steps - 1}"
        journal = read_journal(bench.tmp_path / f"trial{trial}" / "agent.jsonl")
        assert [exchange.number for exchange in journal] == list(range(1, steps + 2))
        assert [len(exchange.messages) for exchange in journal] == list(range(1, 2 * steps + 2, 2))
    _, ledger, _ = bench.http("GET", "/control/ledger", bench.address.token)
    total = sum((traffic.usage for traffic, _ in results), Usage())
    assert total.requests == 25 * (2 + 3 + 4 + 5)
    run = Usage(**ledger["run"]["agent"])
    assert (run.requests, run.input_tokens, run.output_tokens) == (
        total.requests,
        total.input_tokens,
        total.output_tokens,
    )
    assert len(ledger["trials"]) == 100


def test_stopping_is_quiet_cuts_what_is_in_flight_and_may_be_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    server = ProxyServer({("agent", "slow"): slow}, Redactor({}))
    server.stop()
    bench = Bench(server.start(), tmp_path, slow, Raising({}))
    assert bench.client.is_healthy()
    lease = bench.lease("slow")
    with caplog.at_level(logging.DEBUG), socket.create_connection(_place(bench), timeout=30) as raw:
        raw.sendall(_raw_chat(lease, {"model": "slow", "messages": [TASK]}))
        assert slow.asked.wait(10)
        began = time.monotonic()
        server.stop()
        server.stop()
        assert time.monotonic() - began < 5
        assert raw.recv(1) == b""
    assert slow.cut.is_set()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert len(read_journal(tmp_path / "t" / "agent.jsonl")) == 1
    assert not bench.client.is_healthy()
    with pytest.raises(ProviderError, match="cannot be reached"):
        bench.client.close_lease(lease)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dataclaw-")]


def test_a_proxy_left_running_does_not_keep_a_process_alive_or_say_anything() -> None:
    code = (
        "from pytest_dataclaw.proxy.server import ProxyServer\n"
        "from pytest_dataclaw.proxy.redaction import Redactor\n"
        "from pytest_dataclaw.proxy.client import ProxyClient\n"
        "address = ProxyServer({}, Redactor({})).start()\n"
        "assert ProxyClient(address).is_healthy()\n"
    )
    done = subprocess.run([sys.executable, "-Wd", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def _place(bench: Bench) -> tuple[str, int]:
    url = urlsplit(bench.address.url)
    assert url.hostname is not None
    assert url.port is not None
    return url.hostname, url.port


def _raw_chat(lease: Lease, body: dict[str, Any]) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lease.endpoint.token}\r\n"
    return f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
