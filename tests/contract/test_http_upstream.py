"""Real endpoints as upstreams, played by the scripted model server: alone, and behind a proxy with the openai SDK."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import openai
import pytest

from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.ledger import read_usage
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.endpoints import resolve_upstream
from pytest_dataclaw.proxy.upstreams.failure import HttpUpstreamError
from pytest_dataclaw.proxy.upstreams.http import HttpUpstream
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import (
    Answer,
    Cut,
    Empty,
    ErrorEvent,
    Hang,
    HttpError,
    Malformed,
    Refuse,
    Reply,
    Reset,
    Scenario,
    Step,
    ToolCalls,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pytest_dataclaw.proxy.base import Role

API_KEY = "sk-provider-key-0123456789"
REQUEST: dict[str, Any] = {"model": "custom/m", "messages": [{"role": "user", "content": "q"}]}
LEASE = LeaseRequest(TrialKey("run", "t.md::t", "t"), "agent", "custom/m", Path("/nowhere"))
USAGE = Usage(
    input_tokens=50, output_tokens=7, cache_read_tokens=30, cache_write_tokens=5, reasoning_tokens=4, cost_usd=0.25
)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])


def ask(base_url: str, request: dict[str, Any] = REQUEST, **options: Any) -> dict[str, Any]:
    """Send one request through an upstream of its own."""

    async def exchange() -> dict[str, Any]:
        upstream = HttpUpstream(base_url, API_KEY, model_id="wire/m", **options)
        try:
            return await upstream.complete(request, LEASE)
        finally:
            await upstream.aclose()

    return asyncio.run(exchange())


def failure_of(step: Step, **options: Any) -> HttpUpstreamError:
    with ModelServer(Scenario(step)) as server, pytest.raises(HttpUpstreamError) as failed:
        ask(server.base_url, **options)
    assert failed.value.fault == "provider"
    return failed.value


def streamed(*events: Any, done: bool = True) -> Malformed:
    """A stream of exactly these events: the forms that providers other than OpenAI send."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Malformed("".join(lines) + ("data: [DONE]\n\n" if done else ""), content_type="text/event-stream")


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


def message_of(step: Step) -> dict[str, Any]:
    with ModelServer(Scenario(step)) as server:
        message: dict[str, Any] = ask(server.base_url)["choices"][0]["message"]
    return message


# -- what ends well ---------------------------------------------------------------------------------------------------

CALLS = ToolCalls([("exec", {"command": "ls"}), ("read", '{"path": '), ("now", "")], text="See:", reasoning="hm")
WIRE_CALLS = [
    {"id": "call00101", "type": "function", "function": {"name": "exec", "arguments": '{"command": "ls"}'}},
    {"id": "call00102", "type": "function", "function": {"name": "read", "arguments": '{"path": '}},
    {"id": "call00103", "type": "function", "function": {"name": "now", "arguments": ""}},
]
DETAILS = {
    "annotations": [{"type": "url_citation"}],
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}],
}
REPLIES: list[tuple[Callable[[Usage | None], Reply], dict[str, Any], str]] = [
    (
        lambda usage: Answer(
            "The answer is 四十二.", usage=usage, reasoning="Let me see", fields=DETAILS, chunk_size=3
        ),
        {"content": "The answer is 四十二.", "reasoning": "Let me see", **DETAILS},
        "stop",
    ),
    (
        lambda usage: Answer("cut by its own limit", "length", usage=usage),
        {"content": "cut by its own limit"},
        "length",
    ),
    (
        lambda usage: ToolCalls(CALLS.calls, text="See:", usage=usage, chunk_size=2),
        {"content": "See:", "tool_calls": WIRE_CALLS},
        "tool_calls",
    ),
    (lambda usage: Refuse(text="No.", usage=usage), {"refusal": "No."}, "stop"),
    (lambda usage: Empty(usage=usage), {}, "stop"),
]


@STREAM
@pytest.mark.parametrize("usage", [USAGE, None], ids=["usage", "no usage"])
@pytest.mark.parametrize(
    ("reply", "expected", "finish_reason"), REPLIES, ids=["answer", "length", "calls", "refusal", "empty"]
)
def test_replies_arrive_whole(
    reply: Callable[[Usage | None], Reply],
    expected: dict[str, Any],
    finish_reason: str,
    usage: Usage | None,
    stream: bool,
) -> None:
    with ModelServer(Scenario(reply(usage))) as server:
        completion = ask(server.base_url, stream=stream)
        assert server.usage() == (usage or Usage()) + Usage(requests=1)
    assert completion["object"] == "chat.completion"
    (choice,) = completion["choices"]
    assert choice["finish_reason"] == finish_reason
    message = {key: value for key, value in choice["message"].items() if value not in (None, "")}
    assert message == {"role": "assistant", **expected}
    assert ("usage" in completion) == (usage is not None)
    assert read_usage(completion.get("usage")) == (usage or Usage())


@STREAM
def test_the_request_is_passed_on_untouched_but_for_model_and_streaming(stream: bool) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    request: dict[str, Any] = {
        "model": "custom/m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "图 \ud83d"}, image]},
            {"role": "assistant", "content": None, "tool_calls": WIRE_CALLS, "reasoning_content": "hm"},
            *({"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in WIRE_CALLS),
        ],
        "tools": [{"type": "function", "function": {"name": "exec", "parameters": {"type": "object"}}}],
        "parallel_tool_calls": True,
        "temperature": 0,
        "reasoning": {"effort": "high"},
        "provider": {"order": ["a"], "allow_fallbacks": False},
        "stream": not stream,
        "stream_options": {"include_usage": False, "other": 1},
    }
    before = json.dumps(request)
    with ModelServer(Scenario(Answer("a"))) as server:
        ask(server.base_url, request, stream=stream, headers={"X-Title": "t"})
    (got,) = server.requests
    expected = {**request, "model": "wire/m", "stream": stream}
    if stream:
        expected["stream_options"] = {"include_usage": True, "other": 1}
    else:
        del expected["stream_options"]
    assert got.body == expected
    assert got.api_key == API_KEY
    assert got.headers["x-title"] == "t"
    assert json.dumps(request) == before


def test_a_trailing_slash_of_the_base_url_is_no_matter() -> None:
    with ModelServer(Scenario(Answer("a"))) as server:
        ask(server.base_url + "/")
        assert len(server.requests) == 1


def test_a_connection_is_used_again_though_the_end_of_a_stream_comes_after_done() -> None:
    connections = 0
    event = f"data: {json.dumps(delta('stop', content='a'))}\n\ndata: [DONE]\n\n".encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while header := (await reader.read(65536)):
            assert header.startswith(b"POST")
            writer.write(head + f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await asyncio.sleep(0.05)
            writer.write(b"0\r\n\r\n")
        writer.close()

    async def three() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        upstream = HttpUpstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", API_KEY, model_id="m")
        for _ in range(3):
            assert (await upstream.complete(REQUEST, LEASE))["choices"][0]["message"]["content"] == "a"
        await upstream.aclose()
        await upstream.aclose()
        server.close()
        await server.wait_closed()

    asyncio.run(three())
    assert connections == 1


def test_no_number_of_requests_at_once_is_held_back_and_all_can_be_cancelled() -> None:
    async def burst(server: ModelServer) -> None:
        upstream = HttpUpstream(server.base_url, API_KEY, model_id="m")
        tasks = [asyncio.create_task(upstream.complete(REQUEST, LEASE)) for _ in range(200)]
        await asyncio.to_thread(wait_until, lambda: len(server.requests) == 200)
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
        await asyncio.to_thread(wait_until, lambda: len(server.hung_up) == 200)
        await upstream.aclose()

    with ModelServer(Scenario(Hang(), repeat_last=True)) as server:
        asyncio.run(burst(server))


def test_a_cookie_is_not_carried_from_one_request_to_the_next() -> None:
    async def two(base_url: str) -> None:
        upstream = HttpUpstream(base_url.replace("127.0.0.1", "localhost"), API_KEY, model_id="m")
        with pytest.raises(HttpUpstreamError):
            await upstream.complete(REQUEST, LEASE)
        await upstream.complete(REQUEST, LEASE)
        await upstream.aclose()

    with ModelServer(Scenario(HttpError(503, headers={"Set-Cookie": "a=b"}), Answer("a"))) as server:
        asyncio.run(two(server.base_url))
        assert "cookie" not in server.requests[1].headers


# -- streams as other providers send them -----------------------------------------------------------------------------


def test_fragments_of_parallel_calls_may_be_interleaved_and_repeat_id_and_name() -> None:
    def fragment(index: int, call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return delta(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])

    message = message_of(
        streamed(
            fragment(0, "a", "exec", '{"x"'),
            fragment(1, "b", "read", "{"),
            fragment(0, "a", "exec", ":1}"),
            fragment(1, "", "", "}"),
            delta("tool_calls"),
        )
    )
    assert [(call["id"], call["function"]) for call in message["tool_calls"]] == [
        ("a", {"name": "exec", "arguments": '{"x":1}'}),
        ("b", {"name": "read", "arguments": "{}"}),
    ]


def test_a_new_id_for_every_fragment_is_one_call_and_a_new_name_with_it_another() -> None:
    message = message_of(
        streamed(
            delta(tool_calls=[{"index": 0, "id": "r1", "function": {"name": "exec", "arguments": ""}}]),
            delta(tool_calls=[{"index": 0, "id": "r2", "function": {"arguments": "{}"}}]),
            delta(
                tool_calls=[{"id": "r3", "function": {"name": "exec", "arguments": "[]"}, "extra_content": {"s": 1}}]
            ),
            delta("tool_calls"),
        )
    )
    assert message["tool_calls"] == [
        {"id": "r1", "type": "function", "function": {"name": "exec", "arguments": "{}"}},
        {"id": "r3", "type": "function", "function": {"name": "exec", "arguments": "[]"}, "extra_content": {"s": 1}},
    ]


def test_a_call_without_id_gets_one_and_arguments_become_text() -> None:
    call = {"index": 0, "id": "", "function": {"name": "exec", "arguments": {"x": 1}}}
    (settled,) = message_of(streamed(delta(tool_calls=[call]), delta("tool_calls")))["tool_calls"]
    assert settled["function"] == {"name": "exec", "arguments": '{"x": 1}'}
    assert settled["id"].startswith("call")
    assert len(settled["id"]) > 10


def test_reasoning_lists_and_unknown_fields_are_put_end_to_end() -> None:
    message = message_of(
        streamed(
            delta(
                role="assistant", content=None, reasoning_content="a", reasoning_details=[{"n": 1}], audio={"data": "x"}
            ),
            delta(
                role="assistant", reasoning_content="b", reasoning_details=[{"n": 2}], audio={"data": "y", "id": "i"}
            ),
            delta(content="t"),
            delta("stop"),
        )
    )
    assert message == {
        "role": "assistant",
        "content": "t",
        "reasoning_content": "ab",
        "reasoning_details": [{"n": 1}, {"n": 2}],
        "audio": {"data": "xy", "id": "i"},
    }


@pytest.mark.parametrize(
    "events",
    [
        [delta("stop", content="a"), {"choices": [], "usage": {"prompt_tokens": 3}}],
        [{**delta("stop", content="a"), "usage": {"prompt_tokens": 3}}],
        [{**delta(content="a"), "usage": {"prompt_tokens": 1}}, {**delta("stop"), "usage": {"prompt_tokens": 3}}],
        [delta(content="a"), {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}]}],
        [{**delta("stop", content="a"), "usage": None}, {**delta("stop"), "usage": {"prompt_tokens": 3}}],
    ],
    ids=["last event", "with the finish reason", "running", "in the choice", "finish reason twice"],
)
def test_usage_is_found_where_providers_put_it(events: list[Any]) -> None:
    with ModelServer(Scenario(streamed(*events))) as server:
        completion = ask(server.base_url)
    assert completion["usage"] == {"prompt_tokens": 3}
    assert completion["choices"][0]["finish_reason"] == "stop"
    assert completion["choices"][0]["message"]["content"] == "a"


def test_comments_other_line_ends_and_a_missing_end_of_the_stream_are_no_matter() -> None:
    body = ": PROCESSING\r\n\r\nevent: x\r\nid: 1\r\ndata:" + json.dumps(delta("stop", content="a")) + "\r\n"
    assert message_of(Malformed(body))["content"] == "a"


def test_only_the_first_choice_is_kept() -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}
    assert message_of(streamed(delta(content="a"), second, delta("stop")))["content"] == "a"


def test_a_provider_that_does_not_stream_when_asked_to_is_understood() -> None:
    plain = {"choices": [{"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]}
    assert message_of(Malformed(json.dumps(plain), content_type="application/json"))["content"] == "a"


def test_a_long_stream_in_small_pieces() -> None:
    text = "0123456789" * 20_000
    assert message_of(Answer(text, chunk_size=7))["content"] == text


# -- what fails -------------------------------------------------------------------------------------------------------


@STREAM
@pytest.mark.parametrize(
    ("step", "status", "code", "message"),
    [
        (
            HttpError(401, {"error": {"message": f"bad key {API_KEY}", "code": "invalid_api_key"}}),
            401,
            "invalid_api_key",
            "bad key [key]",
        ),
        (HttpError(429), 429, "error", "scripted error 429"),
        (HttpError(500, "<html>\n oops </html>"), 500, "http_500", "<html> oops </html>"),
        (HttpError(503, ""), 503, "http_503", "Service Unavailable"),
        (HttpError(400, {"detail": [{"loc": 1}]}), 400, "http_400", '[{"loc": 1}]'),
        (HttpError(400, {"message": "m", "type": "BadRequestError", "code": 400}), 400, "BadRequestError", "m"),
        (HttpError(400, '[{"error": {"message": "g", "code": 400}}]'), 400, "http_400", "g"),
        (HttpError(400, {"error": "just text"}), 400, "http_400", "just text"),
        (
            HttpError(400, {"error": {"code": 400, "message": "Provider error", "metadata": {"raw": "too long"}}}),
            400,
            "http_400",
            "Provider error: too long",
        ),
        (ErrorEvent({"code": 429, "message": "slow down"}, after_text="ab"), 429, "http_429", "slow down"),
        (ErrorEvent({"code": "rate_limit_exceeded", "message": "m"}), 429, "rate_limit_exceeded", "m"),
        (ErrorEvent({"type": "invalid_request_error", "message": "m"}), 400, "invalid_request_error", "m"),
        (ErrorEvent({"message": "m"}), 502, "http_502", "m"),
        (Cut("The answer"), 502, "stream_cut", "broke off"),
        (Hang(0.05, after_text="The answer"), 502, "stream_cut", "broke off"),
        (Hang(0.05), 502, "connection_lost", "lost"),
        (Reset(), 502, "connection_lost", "lost"),
        (Malformed("data: {not json\n\n"), 502, "malformed_response", "not "),
        (Malformed("<html>"), 502, "malformed_response", "not "),
        (Malformed("data: [1]\n\n"), 502, "malformed_response", "not "),
    ],
)
def test_failures_have_a_status_a_code_and_a_reason(
    step: Step, status: int, code: str, message: str, stream: bool
) -> None:
    error = failure_of(step, stream=stream)
    assert (error.status, error.code) == (status, code)
    assert message in error.message
    assert API_KEY not in repr(error) + error.message


@STREAM
@pytest.mark.parametrize("step", [Hang(), Hang(after_text="The answer")], ids=["at once", "amid"])
def test_silence_is_a_time_out(step: Step, stream: bool) -> None:
    error = failure_of(step, stream=stream, silence_timeout=0.2)
    assert (error.status, error.code) == (504, "timeout")


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (streamed(delta(content="a")), "stream_cut"),
        (streamed(delta(content="a"), done=False), "stream_cut"),
        (streamed(), "stream_cut"),
        (Malformed(""), "stream_cut"),
        (streamed({"choices": "x"}), "malformed_response"),
        (streamed({"choices": [{"delta": "x"}]}), "malformed_response"),
        (streamed(delta(content="a"), delta("stop", content=["b"])), "malformed_response"),
        (
            streamed(delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]), delta("tool_calls")),
            "malformed_response",
        ),
    ],
)
def test_a_stream_without_an_end_or_sense_is_no_answer(step: Step, code: str) -> None:
    error = failure_of(step)
    assert (error.status, error.code) == (502, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "malformed_response"),
        ({"choices": []}, "malformed_response"),
        ({"choices": [{"message": "x", "finish_reason": "stop"}]}, "malformed_response"),
        ({"choices": [{"message": {"content": "a"}, "finish_reason": None}]}, "malformed_response"),
        ({"choices": [{"message": {"content": "a"}, "finish_reason": "error", "error": {"code": 503}}]}, "http_503"),
    ],
)
def test_a_plain_body_that_is_no_completion_is_no_answer(body: Any, code: str) -> None:
    assert failure_of(Malformed(json.dumps(body)), stream=False).code == code


def test_an_error_within_the_choice_of_a_stream() -> None:
    event = {"choices": [{"delta": {"content": ""}, "finish_reason": "error", "error": {"code": 503, "message": "m"}}]}
    error = failure_of(streamed(event))
    assert (error.status, error.message) == (503, "m")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_kept(headers: dict[str, str], seconds: float | None) -> None:
    assert failure_of(HttpError(429, headers=headers)).retry_after == seconds


def test_a_date_to_wait_for_becomes_seconds() -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    wait = failure_of(HttpError(503, headers={"Retry-After": date})).retry_after
    assert wait is not None
    assert 50 < wait <= 60


def test_a_redirect_is_not_followed() -> None:
    with ModelServer(Scenario(Answer("a"))) as elsewhere:
        error = failure_of(HttpError(307, "", headers={"Location": elsewhere.base_url + "/chat/completions"}))
        assert error.status == 307
        assert elsewhere.requests == ()


def test_a_wrong_path_names_what_was_asked_for() -> None:
    with ModelServer(Scenario(Answer("a"))) as server, pytest.raises(HttpUpstreamError) as failed:
        ask(server.base_url.removesuffix("/v1"))
    assert failed.value.status == 404
    assert (
        f"asked: {server.base_url.removesuffix('/v1')}/chat/completions; is the base URL right" in failed.value.message
    )


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(HttpUpstreamError) as failed:
            ask(url)
    assert (failed.value.status, failed.value.code) == (502, "connection_refused")
    assert url in failed.value.message


def test_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(HttpUpstreamError) as failed:
        ask("http://nowhere.example/v1")
    assert (failed.value.status, failed.value.code) == (502, "dns_failed")


def test_a_server_that_speaks_no_tls() -> None:
    with ModelServer(Scenario(Answer("a"))) as server, pytest.raises(HttpUpstreamError) as failed:
        ask(server.base_url.replace("http:", "https:"))
    assert (failed.value.status, failed.value.code) == (502, "tls_failed")


def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert message_of(Answer("a"))["content"] == "a"


# -- behind the proxy -------------------------------------------------------------------------------------------------


@contextmanager
def proxied(upstreams: Mapping[tuple[Role, str], HttpUpstream]) -> Iterator[ProxyClient]:
    with ProxyServer(upstreams, Redactor({"KEY": API_KEY})) as address:
        yield ProxyClient(address)


def proxied_model(server: ModelServer) -> AbstractContextManager[ProxyClient]:
    return proxied({("agent", "m"): HttpUpstream(server.base_url, API_KEY, model_id="m")})


def lease_for(number: int, tmp_path: Path, model: str) -> LeaseRequest:
    key = TrialKey("run", f"t.md::t{number}", f"t{number}")
    return LeaseRequest(key, "agent", model, tmp_path / f"{number}.jsonl")


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def usage_of(number: int, turn: int) -> Usage:
    """Costs are multiples of 1/1024, so that sums are exact in whatever order."""
    return Usage(
        input_tokens=1000 * turn + number,
        output_tokens=10 + number,
        cache_read_tokens=number,
        cache_write_tokens=turn,
        reasoning_tokens=number % 7,
        cost_usd=(number + turn) / 1024,
    )


def test_our_ledger_equals_the_providers_for_a_hundred_trials_at_once(tmp_path: Path) -> None:
    trials = 100
    scenarios = {
        f"wire-{number}": Scenario(
            ToolCalls([("exec", {"n": number}), ("exec", "{broken")], usage=usage_of(number, 1)),
            HttpError(500),
            Answer(f"answer {number}", reasoning="hm", usage=usage_of(number, 2)),
        )
        for number in range(trials)
    }

    async def trial(client: openai.AsyncOpenAI, number: int) -> str:
        history: list[Any] = [{"role": "user", "content": "q"}]
        create = client.chat.completions.create
        first = await create(model=f"model-{number}", messages=history)
        calls: Any = first.choices[0].message.tool_calls
        history.append(first.choices[0].message.model_dump(exclude_none=True))
        history.extend({"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls)
        with pytest.raises(openai.APIStatusError) as failed:
            await create(model=f"model-{number}", messages=history)
        assert failed.value.status_code == 424
        if number % 2:
            last = await create(model=f"model-{number}", messages=history)
            return str(last.choices[0].message.content)
        stream = await create(model=f"model-{number}", messages=history, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    async def run_all(proxy: ProxyClient) -> list[str]:
        leases = [proxy.open_lease(lease_for(number, tmp_path, f"model-{number}")) for number in range(trials)]
        async with openai.AsyncOpenAI(base_url=leases[0].endpoint.base_url, api_key="-", max_retries=0) as client:
            clients = [client.with_options(api_key=lease.endpoint.token) for lease in leases]
            return await asyncio.gather(*(trial(clients[number], number) for number in range(trials)))

    with ModelServer(scenarios) as server:
        upstreams: dict[tuple[Role, str], HttpUpstream] = {
            ("agent", f"model-{number}"): HttpUpstream(
                server.base_url, API_KEY, model_id=f"wire-{number}", stream=number % 3 > 0
            )
            for number in range(trials)
        }
        with proxied(upstreams) as proxy:
            assert asyncio.run(run_all(proxy)) == [f"answer {number}" for number in range(trials)]
            ours = [proxy.usage(lease_for(number, tmp_path, "").key, "agent") for number in range(trials)]
        for number, usage in enumerate(ours):
            assert without_times(usage) == server.usage(f"wire-{number}")
            assert server.usage(f"wire-{number}") == usage_of(number, 1) + usage_of(number, 2) + Usage(requests=3)
        assert without_times(sum(ours, Usage())) == server.usage()
        assert server.usage().requests == 300
    assert API_KEY not in "".join(path.read_text() for path in tmp_path.iterdir())


def without_times(usage: Usage) -> Usage:
    return Usage(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=usage.cost_usd,
    )


@STREAM
def test_reasoning_and_parallel_calls_reach_the_agent_through_the_proxy(stream: bool, tmp_path: Path) -> None:
    with ModelServer(Scenario(CALLS, CALLS)) as server:
        upstream = HttpUpstream(server.base_url, API_KEY, model_id="wire/m", stream=stream)
        with proxied({("agent", "custom/m"): upstream}) as proxy:
            endpoint = proxy.open_lease(lease_for(1, tmp_path, "custom/m")).endpoint
            with openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.token, max_retries=0) as sdk:
                plain: Any = sdk.chat.completions.create(model="custom/m", messages=REQUEST["messages"])
                with sdk.chat.completions.stream(model="custom/m", messages=REQUEST["messages"]) as events:
                    deltas: list[Any] = [
                        e.chunk.choices[0].delta for e in events if e.type == "chunk" and e.chunk.choices
                    ]
                    snapshot: Any = events.current_completion_snapshot
    assert "".join(getattr(delta, "reasoning", "") for delta in deltas) == plain.choices[0].message.reasoning == "hm"
    for choice, before in ((plain.choices[0], 0), (snapshot.choices[0], 3)):
        assert choice.message.content == "See:"
        assert [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls] == [
            (f"c0000000{before + 1}", "exec", '{"command": "ls"}'),
            (f"c0000000{before + 2}", "read", '{"path": '),
            (f"c0000000{before + 3}", "now", ""),
        ]


def test_a_cut_stream_never_reaches_the_agent(tmp_path: Path) -> None:
    with ModelServer(Scenario(Cut("half an answer"))) as server:
        with proxied_model(server) as proxy:
            lease = proxy.open_lease(lease_for(1, tmp_path, "m"))
            sdk = openai.OpenAI(base_url=lease.endpoint.base_url, api_key=lease.endpoint.token)
            with sdk, pytest.raises(openai.APIStatusError) as failed:
                sdk.chat.completions.create(model="m", messages=REQUEST["messages"], stream=True)
            traffic = proxy.close_lease(lease)
        assert len(server.requests) == 1
    assert failed.value.status_code == 424
    assert "half an answer" not in failed.value.response.text
    assert (traffic.last_status, traffic.trajectory.turns) == (502, ())


@pytest.mark.parametrize("who", ["lease", "client"])
@pytest.mark.parametrize("step", [Hang(), Hang(after_text="The answer")], ids=["at once", "amid"])
def test_the_providers_request_ends_with_the_lease_and_with_the_client(who: str, step: Step, tmp_path: Path) -> None:
    with ModelServer(Scenario(step)) as server, proxied_model(server) as proxy:
        lease = proxy.open_lease(lease_for(1, tmp_path, "m"))
        agent = http.client.HTTPConnection(urlsplit(lease.endpoint.base_url).netloc, timeout=10)
        headers = {"Authorization": f"Bearer {lease.endpoint.token}"}
        agent.request("POST", "/v1/chat/completions", json.dumps({**REQUEST, "model": "m"}), headers)
        wait_until(lambda: len(server.requests) == 1)
        assert server.hung_up == ()
        if who == "lease":
            proxy.close_lease(lease)
        else:
            agent.close()
        wait_until(lambda: len(server.hung_up) == 1)
        agent.close()


# -- OpenRouter --------------------------------------------------------------------------------------------------------


def test_openrouter_can_be_played() -> None:
    async def exchange(base_url: str) -> dict[str, Any]:
        upstream = resolve_upstream(
            "openrouter/a/m", "agent", {"OPENROUTER_API_KEY": "router-key"}, openrouter_url=base_url
        )
        try:
            return await upstream.complete(REQUEST, LEASE)
        finally:
            await upstream.aclose()

    with ModelServer({"router-key": Scenario(Answer("a", usage=USAGE))}) as server:
        assert read_usage(asyncio.run(exchange(server.base_url))["usage"]) == USAGE
        assert server.requests[0].model == "a/m"
