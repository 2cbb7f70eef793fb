"""Retries and the request cap of the proxy, between the scripted model server and the openai SDK as the agent."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import openai
import pytest

from pytest_dataclaw.model.run import Deadline, TrialKey
from pytest_dataclaw.model.trajectory import Traffic, Turn, Usage
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.exchange import Exchange, read_journal
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.base import UpstreamError, completion
from pytest_dataclaw.proxy.upstreams.http import HttpUpstream
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import Answer, Cut, HttpError, Malformed, Reset, Scenario, Step, ToolCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_dataclaw.proxy.base import Lease, Role

MESSAGES: Any = [{"role": "user", "content": "q"}]
FIVE_MINUTES = HttpError(429, headers={"Retry-After": "290"})


@contextmanager
def proxied(server: ModelServer, models: int = 1) -> Iterator[ProxyClient]:
    upstreams: dict[tuple[Role, str], HttpUpstream] = {
        ("agent", f"m{number}"): HttpUpstream(server.base_url, "key", model_id=f"m{number}") for number in range(models)
    }
    with ProxyServer(upstreams, Redactor({})) as address:
        yield ProxyClient(address)


def request(tmp_path: Path, number: int = 0, **limits: Any) -> LeaseRequest:
    key = TrialKey("run", f"t.md::t{number}", f"t{number}")
    return LeaseRequest(key, "agent", f"m{number}", tmp_path / f"{number}.jsonl", **limits)


def ask(lease: Lease, *, stream: bool = False) -> str:
    with openai.OpenAI(base_url=lease.endpoint.base_url, api_key=lease.endpoint.token) as sdk:
        create = sdk.chat.completions.create
        if not stream:
            return str(create(model=lease.endpoint.model, messages=MESSAGES).choices[0].message.content)
        chunks = create(model=lease.endpoint.model, messages=MESSAGES, stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_in_vain(lease: Lease) -> None:
    with pytest.raises(openai.APIError):
        ask(lease)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


def without_times(usage: Usage) -> Usage:
    return replace(usage, wall_seconds=0.0, waiting_seconds=0.0)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
@pytest.mark.parametrize(
    ("failures", "statuses"),
    [
        ([HttpError(429)], [429]),
        ([HttpError(500), HttpError(503)], [500, 503]),
        ([Cut("half an answer")], [502]),
        ([Reset()], [502]),
        ([Malformed("<html>")], [502]),
    ],
    ids=["429", "500 twice", "cut", "reset", "malformed"],
)
def test_a_failure_that_passes_is_not_seen_by_the_agent(
    failures: list[Step], statuses: list[int], stream: bool, tmp_path: Path
) -> None:
    with ModelServer(Scenario(*failures, Answer("whole"))) as server, proxied(server) as proxy:
        wanted = request(tmp_path, patience=60)
        lease = proxy.open_lease(wanted)
        assert ask(lease, stream=stream) == "whole"
        usage, traffic = proxy.usage(wanted.key, "agent"), proxy.close_lease(lease)
        assert len(server.requests) == len(failures) + 1
        assert without_times(usage) == without_times(traffic.usage) == server.usage()
    assert traffic.trajectory.turns == (Turn(1, "whole"),)
    assert (traffic.last_status, traffic.last_error, traffic.trajectory.side_exchanges) == (200, "", 0)
    (exchange,) = read_journal(tmp_path / "0.jsonl")
    assert [failure.status for failure in exchange.failures] == statuses
    waited = sum(failure.waited for failure in exchange.failures)
    assert 0 < waited <= sum((1, 2)[: len(failures)]) + 0.5
    assert traffic.usage.waiting_seconds == pytest.approx(waited)
    assert usage.waiting_seconds == pytest.approx(waited)
    assert traffic.usage.wall_seconds > waited


def last_of(step: Step, tmp_path: Path, **limits: Any) -> tuple[openai.APIStatusError, Traffic, Exchange]:
    """Ask once where the provider always does the same; return the error, the traffic, and the exchange."""
    with ModelServer(Scenario(step, repeat_last=True)) as server, proxied(server) as proxy:
        lease = proxy.open_lease(request(tmp_path, **limits))
        with pytest.raises(openai.APIStatusError) as failed:
            ask(lease)
        traffic = proxy.close_lease(lease)
        (exchange,) = read_journal(tmp_path / "0.jsonl")
        assert len(server.requests) == len(exchange.failures) == traffic.usage.requests
    return failed.value, traffic, exchange


def test_a_provider_that_never_lets_up_is_a_final_failure(tmp_path: Path) -> None:
    error, traffic, exchange = last_of(HttpError(429), tmp_path, patience=1)
    assert (error.status_code, error.response.headers["x-should-retry"]) == (424, "false")
    assert (traffic.last_status, traffic.last_error) == (429, "scripted error 429")
    assert len(exchange.failures) > 1
    assert traffic.usage.waiting_seconds == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    "step",
    [HttpError(401), HttpError(429, {"error": {"message": "m", "code": "insufficient_quota"}}), HttpError(429)],
    ids=["401", "quota", "no patience"],
)
def test_a_failure_that_is_final_is_passed_on_at_once(step: HttpError, tmp_path: Path) -> None:
    patience = 0 if step.body is None and step.status == 429 else 60
    _, traffic, exchange = last_of(step, tmp_path, patience=patience)
    assert (traffic.last_status, len(exchange.failures), traffic.usage.waiting_seconds) == (step.status, 1, 0)


def test_a_wait_counts_while_it_lasts_and_moves_the_deadline(tmp_path: Path) -> None:
    with ModelServer(Scenario(FIVE_MINUTES)) as server, proxied(server) as proxy:
        wanted = request(tmp_path, patience=300)
        lease = proxy.open_lease(wanted)
        deadline = Deadline(1, extra=lambda: proxy.usage(wanted.key, "agent").waiting_seconds)
        asking = threading.Thread(target=ask_in_vain, args=[lease])
        asking.start()
        wait_until(lambda: proxy.usage(wanted.key, "agent").waiting_seconds > 0.2)
        time.sleep(1)
        assert not deadline.passed
        time.sleep(1)
        assert deadline.passed, "once over at most"
        traffic = proxy.close_lease(lease)
        asking.join()
    assert traffic.usage.waiting_seconds == pytest.approx(2.2, abs=0.5)


@pytest.mark.parametrize("who", ["lease", "client"])
def test_a_wait_ends_with_the_lease_and_with_the_client(who: str, tmp_path: Path) -> None:
    with ModelServer(Scenario(FIVE_MINUTES)) as server, proxied(server) as proxy:
        wanted = request(tmp_path, patience=300)
        lease = proxy.open_lease(wanted)
        agent = http.client.HTTPConnection(urlsplit(lease.endpoint.base_url).netloc, timeout=10)
        body = json.dumps({"model": "m0", "messages": MESSAGES})
        agent.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {lease.endpoint.token}"})
        wait_until(lambda: proxy.usage(wanted.key, "agent").waiting_seconds > 0)
        began = time.monotonic()
        if who == "client":
            agent.close()
            wait_until((tmp_path / "0.jsonl").exists)
        traffic = proxy.close_lease(lease)
        assert time.monotonic() - began < 2
        agent.close()
        assert proxy.usage(wanted.key, "agent").waiting_seconds == traffic.usage.waiting_seconds
        assert len(server.requests) == traffic.usage.requests == 1
    (exchange,) = read_journal(tmp_path / "0.jsonl")
    assert (exchange.status, exchange.fault) == (499, {"lease": "closed", "client": "client"}[who])
    assert [failure.status for failure in exchange.failures] == [429]


def test_requests_beyond_the_cap_are_refused_and_not_sent(tmp_path: Path) -> None:
    with ModelServer(Scenario(HttpError(500), Answer("a"), Answer("b"), repeat_last=True)) as server:
        with proxied(server) as proxy:
            lease = proxy.open_lease(request(tmp_path, patience=60, max_requests=2))
            assert [ask(lease), ask(lease)] == ["a", "b"], "what the proxy tries again counts once"
            for _ in range(2):
                with pytest.raises(openai.PermissionDeniedError) as refused:
                    ask(lease)
                assert refused.value.code == "request_limit"
                assert refused.value.response.headers["x-should-retry"] == "false"
            traffic = proxy.close_lease(lease)
        assert len(server.requests) == traffic.usage.requests == 3
        assert without_times(traffic.usage) == server.usage()
    assert "as it may (2)" in traffic.limit
    assert (traffic.last_status, traffic.last_error, traffic.trajectory.answer) == (200, "", "b")
    assert [exchange.fault for exchange in read_journal(tmp_path / "0.jsonl")] == ["", "", "limit", "limit"]


class Counting:
    """Answers after a while, and tells how many requests it had at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.5)
        self.now -= 1
        if lease.role == "judge":
            raise UpstreamError(400, "no", "no")
        return completion(request, {"content": "a"})

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(("limit", "most"), [(2, 2), (None, 8)])
def test_no_more_requests_at_once_than_the_provider_is_to_get(limit: int | None, most: int, tmp_path: Path) -> None:
    provider = Counting()
    roles: tuple[Role, ...] = ("agent", "judge")
    upstreams: dict[tuple[Role, str], Counting] = {(role, "m0"): provider for role in roles}
    slots = dict.fromkeys(upstreams, asyncio.Semaphore(limit)) if limit else None

    def use(lease: Lease) -> None:
        with suppress(openai.BadRequestError):
            ask(lease)

    with ProxyServer(upstreams, Redactor({}), slots=slots) as address, ThreadPoolExecutor(8) as pool:
        proxy = ProxyClient(address)
        wanted = [replace(request(tmp_path), role=role) for role in roles for _ in range(4)]
        leases = [proxy.open_lease(one) for one in wanted]
        list(pool.map(use, leases))
        waits = sorted(proxy.close_lease(lease).usage.waiting_seconds for lease in leases)
    assert provider.most == most
    assert waits[0] < 0.1
    assert (waits[-1] > 0.5) == bool(limit), "the last of eight requests of 0.5 s, two at a time, waits for 1.5 s"


def test_our_ledger_equals_the_providers_though_it_refuses_a_third_of_a_hundred_trials_requests(
    tmp_path: Path,
) -> None:
    trials = 100
    slow_down = HttpError(429, headers={"retry-after-ms": "10"})

    def usage_of(number: int, turn: int) -> Usage:
        # Costs are multiples of 1/1024, so that sums are exact in whatever order.
        return Usage(input_tokens=1000 * turn + number, output_tokens=10 + number, cost_usd=(number + turn) / 1024)

    scenarios = {
        f"m{number}": Scenario(
            *([slow_down] if number % 2 else []),
            ToolCalls([("exec", {"n": number})], usage=usage_of(number, 1)),
            *([] if number % 2 else [slow_down]),
            Answer(f"answer {number}", usage=usage_of(number, 2)),
        )
        for number in range(trials)
    }

    async def trial(client: openai.AsyncOpenAI, model: str) -> None:
        history = list(MESSAGES)
        first = await client.chat.completions.create(model=model, messages=history)
        history.append(first.choices[0].message.model_dump(exclude_none=True))
        calls: Any = first.choices[0].message.tool_calls
        history.extend({"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls)
        async for _ in await client.chat.completions.create(model=model, messages=history, stream=True):
            pass

    async def run_all(leases: list[Lease]) -> None:
        base_url = leases[0].endpoint.base_url
        async with openai.AsyncOpenAI(base_url=base_url, api_key="-", max_retries=0) as client:
            clients = [client.with_options(api_key=lease.endpoint.token) for lease in leases]
            await asyncio.gather(*(trial(clients[number], f"m{number}") for number in range(trials)))

    with ModelServer(scenarios) as server, proxied(server, trials) as proxy:
        leases = [proxy.open_lease(request(tmp_path, number, patience=60)) for number in range(trials)]
        asyncio.run(run_all(leases))
        traffics = [proxy.close_lease(lease) for lease in leases]
        for number, traffic in enumerate(traffics):
            assert (traffic.trajectory.answer, len(traffic.trajectory.turns)) == (f"answer {number}", 2)
            assert (traffic.last_error, traffic.trajectory.side_exchanges) == ("", 0)
            assert 0.01 <= traffic.usage.waiting_seconds < 3
            expected = usage_of(number, 1) + usage_of(number, 2) + Usage(requests=3)
            assert without_times(traffic.usage) == server.usage(f"m{number}") == expected
        assert without_times(sum((traffic.usage for traffic in traffics), Usage())) == server.usage()
        assert server.usage().requests == 300
