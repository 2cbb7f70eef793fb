"""The scripted model server: raw HTTP for what goes on the wire, the openai SDK for what clients make of it."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import OpenAI

from pytest_dataclaw.model.trajectory import Usage
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
    Request,
    Reset,
    Scenario,
    Step,
    ToolCalls,
)

if TYPE_CHECKING:
    from pathlib import Path

QUESTION: list[Any] = [{"role": "user", "content": "q"}]
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def post(server: ModelServer, body: Any, key: str = "k", timeout: float = 10) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(server.base_url.split(":")[2].split("/")[0]), timeout=timeout
    )
    try:
        raw = body if isinstance(body, str) else json.dumps(body)
        connection.request("POST", "/v1/chat/completions", raw, {"Authorization": f"Bearer {key}", "X-Extra": "1"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def ask(server: ModelServer, model: str = "m", key: str = "k", **parameters: Any) -> tuple[int, Any]:
    response, raw = post(server, {"model": model, "messages": QUESTION, **parameters}, key)
    return response.status, json.loads(raw)


def chunks(raw: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in raw.decode().split("\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_a_plain_answer_and_its_usage() -> None:
    usage = Usage(
        input_tokens=50, output_tokens=7, cache_read_tokens=30, cache_write_tokens=5, reasoning_tokens=4, cost_usd=0.25
    )
    with ModelServer(Scenario(Answer("42", reasoning="hm", usage=usage, fields={"annotations": [1]}))) as server:
        status, body = ask(server)
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["model"] == "m"
    message = {"role": "assistant", "content": "42", "reasoning": "hm", "annotations": [1]}
    assert body["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert body["usage"] == {
        "prompt_tokens": 50,
        "completion_tokens": 7,
        "total_tokens": 57,
        "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 4},
        "cost": 0.25,
    }


def test_a_streamed_answer_comes_in_pieces_and_ends_with_usage_and_done() -> None:
    with ModelServer(Scenario(Answer("abcdefg", reasoning="xyz", chunk_size=3))) as server:
        response, raw = post(server, {"model": "m", "messages": QUESTION, **WITH_USAGE})
    assert response.headers["Content-Type"] == "text/event-stream"
    *events, last = chunks(raw)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [delta["reasoning"] for delta in deltas if "reasoning" in delta] == ["xyz"]
    assert [delta["content"] for delta in deltas[1:] if "content" in delta] == ["abc", "def", "g"]
    assert [event["choices"][0]["finish_reason"] for event in events] == [None] * 5 + ["stop"]
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def test_a_stream_reports_usage_only_where_asked_and_the_ledger_counts_only_reports() -> None:
    with ModelServer(Scenario(Answer("a"), repeat_last=True)) as server:
        _, raw = post(server, {"model": "m", "messages": QUESTION, "stream": True})
        assert not any("usage" in chunk for chunk in chunks(raw))
        assert server.usage() == Usage(requests=1)
        ask(server)
        assert server.usage() == Usage(requests=2, input_tokens=100, output_tokens=10)


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls_with_broken_arguments_reach_the_sdk_as_written(stream: bool) -> None:
    step = ToolCalls([("exec", {"command": "ls é"}), ("read", '{"path": '), ("now", "")], text="See:", chunk_size=4)
    with ModelServer(Scenario(step)) as server, OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as sdk:
        if stream:
            with sdk.chat.completions.stream(model="m", messages=QUESTION) as events:
                for _ in events:
                    pass
                choice: Any = events.current_completion_snapshot.choices[0]
        else:
            choice = sdk.chat.completions.create(model="m", messages=QUESTION).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "See:"
    assert [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls] == [
        ("call00101", "exec", '{"command": "ls é"}'),
        ("call00102", "read", '{"path": '),
        ("call00103", "now", ""),
    ]


def test_refusals_and_empty_replies() -> None:
    with ModelServer(Scenario(Refuse(text="No."), Empty(finish_reason="length"))) as server:
        refused, empty = (ask(server)[1]["choices"][0] for _ in range(2))
    assert refused["message"] == {"role": "assistant", "content": None, "refusal": "No."}
    assert empty == {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "length"}


def test_errors_have_their_status_body_and_headers() -> None:
    scenario = Scenario(
        HttpError(429, headers={"Retry-After": "7"}), HttpError(502, "<html>"), HttpError(400, {"detail": "bad"})
    )
    with ModelServer(scenario) as server:
        limited, raw = post(server, {"model": "m", "messages": QUESTION})
        assert (limited.status, limited.headers["Retry-After"]) == (429, "7")
        assert json.loads(raw)["error"]["message"] == "scripted error 429"
        gateway, html = post(server, {"model": "m", "messages": QUESTION})
        assert (gateway.status, html) == (502, b"<html>")
        assert ask(server) == (400, {"detail": "bad"})


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_reply_never_ends(stream: bool) -> None:
    with ModelServer(Scenario(Cut("abc"))) as server, pytest.raises(http.client.IncompleteRead) as cut:
        post(server, {"model": "m", "messages": QUESTION, "stream": stream})
    assert cut.value.partial
    assert b"[DONE]" not in cut.value.partial
    assert b'"finish_reason": "stop"' not in cut.value.partial


@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_connection(stream: bool) -> None:
    with ModelServer(Scenario(Reset())) as server, pytest.raises(ConnectionResetError) as reset:
        post(server, {"model": "m", "messages": QUESTION, "stream": stream})
    assert not isinstance(reset.value, http.client.RemoteDisconnected)


def test_hanging_until_the_client_gives_up_is_noted() -> None:
    with ModelServer(Scenario(Hang())) as server:
        with pytest.raises(TimeoutError):
            post(server, {"model": "m", "messages": QUESTION}, timeout=0.2)
        end = time.monotonic() + 5
        while not server.hung_up and time.monotonic() < end:
            time.sleep(0.01)
        assert server.hung_up == server.requests
        assert len(server.requests) == 1


def test_a_hanging_server_stops_at_once_and_blames_no_client() -> None:
    server = ModelServer(Scenario(Hang()))
    server.start()
    with socket.create_connection(("127.0.0.1", int(server.base_url.split(":")[2].split("/")[0]))) as client:
        client.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{"model": "m"}')
        while not server.requests:
            time.sleep(0.01)
        started = time.monotonic()
        server.stop()
        server.stop()
    assert time.monotonic() - started < 3
    assert server.hung_up == ()


def test_a_hang_of_some_seconds_ends_in_a_cut() -> None:
    with ModelServer(Scenario(Hang(0.1, after_text="abc"))) as server, pytest.raises(http.client.IncompleteRead) as cut:
        post(server, {"model": "m", "messages": QUESTION, "stream": True})
    assert b'"content": "abc"' in cut.value.partial


def test_what_is_malformed_goes_out_as_it_is() -> None:
    with ModelServer(Scenario(Malformed(), Malformed("<p>", content_type="text/html"))) as server:
        streamed, raw = post(server, {"model": "m", "messages": QUESTION, "stream": True})
        assert (streamed.headers["Content-Type"], raw) == ("text/event-stream", b"data: {not json\n\n")
        page, raw = post(server, {"model": "m", "messages": QUESTION, "stream": True})
        assert (page.status, page.headers["Content-Type"], raw) == (200, "text/html", b"<p>")


def test_an_error_after_the_status_line() -> None:
    scenario = Scenario(ErrorEvent({"code": 502, "message": "down"}, after_text="abc"), repeat_last=True)
    with ModelServer(scenario) as server:
        assert ask(server) == (200, {"error": {"code": 502, "message": "down"}})
        _, raw = post(server, {"model": "m", "messages": QUESTION, "stream": True})
    assert b'"content": "abc"' in raw
    assert raw.endswith(b'data: {"error": {"code": 502, "message": "down"}}\n\n')


def test_scenarios_are_chosen_by_key_then_by_model_and_count_apart() -> None:
    scenarios = {"key-a": Scenario(Answer("by key")), "m": Scenario(Answer("by model"), Answer("again"))}
    with ModelServer(scenarios) as server:
        texts = [ask(server, key=key)[1]["choices"][0]["message"]["content"] for key in ("x", "key-a", "y")]
        assert texts == ["by model", "by key", "again"]
        status, body = ask(server, model="other")
        assert (status, body["error"]["message"]) == (404, "no scenario for this API key or the model 'other'")
        assert [(r.number, r.scenario, r.api_key, r.model) for r in server.requests] == [
            (1, "m", "x", "m"),
            (1, "key-a", "key-a", "m"),
            (2, "m", "y", "m"),
            (1, "", "k", "other"),
        ]
        assert server.usage("m") == Usage(requests=2, input_tokens=200, output_tokens=20)
        assert server.usage("key-a") == Usage(requests=1, input_tokens=100, output_tokens=10)
        assert server.usage("") == Usage(requests=1)
        assert server.usage().requests == 4


def test_the_empty_key_fits_whoever_is_left() -> None:
    with ModelServer({"a": Scenario(Answer("A")), "": Scenario(Answer("rest"))}) as server:
        assert ask(server, model="b")[1]["choices"][0]["message"]["content"] == "rest"


def test_a_scenario_ends_with_an_error_that_nobody_retries_or_repeats_its_last_step() -> None:
    with ModelServer(
        {"short": Scenario(Answer("a")), "long": Scenario(Answer("a"), Answer("b"), repeat_last=True)}
    ) as server:
        assert [ask(server, "long")[1]["choices"][0]["message"]["content"] for _ in range(4)] == ["a", "b", "b", "b"]
        ask(server, "short")
        with OpenAI(base_url=server.base_url, api_key="k") as sdk, pytest.raises(openai.BadRequestError) as ended:
            sdk.chat.completions.create(model="short", messages=QUESTION)
        assert "scenario 'short' ends after 1 requests; this is number 2" in str(ended.value)
        assert server.usage("short").requests == 2


def test_a_step_may_be_a_function_of_the_request() -> None:
    def echo(request: Request) -> Step:
        return Answer(f"{request.number}: {request.messages[-1]['content']}")

    with ModelServer(Scenario(echo, repeat_last=True)) as server:
        texts = [ask(server)[1]["choices"][0]["message"]["content"] for _ in range(2)]
    assert texts == ["1: q", "2: q"]


def test_requests_are_kept_as_they_came() -> None:
    body = {"model": "m", "messages": QUESTION, "temperature": 0, "provider": {"order": ["x"]}}
    with ModelServer(Scenario(Answer("a"))) as server:
        post(server, body, key="secret")
    (request,) = server.requests
    assert request.body == body
    assert (request.headers["x-extra"], request.api_key) == ("1", "secret")


def test_a_body_that_is_no_object_is_refused_and_kept() -> None:
    with ModelServer(Scenario(Answer("a"))) as server:
        for body in ("{", "[]"):
            response, _ = post(server, body)
            assert response.status == 400
        assert [request.body for request in server.requests] == [{}, {}]


def test_the_delay_comes_before_the_first_byte() -> None:
    with ModelServer(Scenario(Answer("a", delay=0.3))) as server:
        started = time.monotonic()
        ask(server)
    assert 0.3 <= time.monotonic() - started < 3


def test_the_models_list() -> None:
    with (
        ModelServer({"a": Scenario(Empty()), "b/c": Scenario(Empty())}) as server,
        OpenAI(base_url=server.base_url, api_key="k") as sdk,
    ):
        assert [model.id for model in sdk.models.list()] == ["a", "b/c"]


def test_a_unix_socket_serves_the_same_for_any_user(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with ModelServer(Scenario(Answer("a"), repeat_last=True), unix_socket=path) as server:
        assert path.stat().st_mode & 0o777 == 0o666
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(str(path))
            body = b'{"model": "m"}'
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert client.recv(12) == b"HTTP/1.1 200"
        ask(server)
        assert len(server.requests) == 2


def test_a_reset_on_a_unix_socket_closes_it(tmp_path: Path) -> None:
    with ModelServer(Scenario(Reset()), unix_socket=tmp_path / "s"), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(tmp_path / "s"))
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert client.recv(1) == b""


def test_a_socket_path_that_cannot_be_had_is_an_os_error(tmp_path: Path) -> None:
    server = ModelServer(Scenario(Answer("a")), unix_socket=tmp_path / "absent" / "s")
    with pytest.raises(OSError, match="s"):
        server.start()
    server.stop()


def test_a_scenario_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        Scenario()
