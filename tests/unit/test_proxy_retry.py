"""Which failures the proxy tries again, and after how long; on a clock that stands still but for the waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.proxy.exchange import Exchange, Failure
from pytest_dataclaw.proxy.retry import Patience
from pytest_dataclaw.proxy.upstreams.base import UpstreamError
from pytest_dataclaw.proxy.upstreams.failure import HttpUpstreamError
from pytest_dataclaw.proxy.wire import WireError


class Clock:
    """Time that passes in waits only; `waits` has the length of each."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


class Provider:
    """Fails with these errors, one a try, the last one for ever if so wanted; else answers."""

    def __init__(self, *errors: Exception, forever: bool = False) -> None:
        self.errors = list(errors)
        self.forever = forever
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors[0] if self.forever and len(self.errors) == 1 else self.errors.pop(0)
        return "answer"


def patience(clock: Clock, seconds: float = 1000.0, seed: str = "lease") -> Patience:
    return Patience(seconds, seed, clock=clock, sleep=clock.sleep)


def exchange(number: int = 1) -> Exchange:
    return Exchange(number, "", 0.0)


def persist(provider: Provider, patient: Patience, of: Exchange | None = None) -> str:
    return asyncio.run(patient.persist(provider, of or exchange()))


def failing(status: int, code: str = "", message: str = "why", retry_after: float | None = None) -> UpstreamError:
    return HttpUpstreamError(status, message, code, retry_after=retry_after)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529])
def test_a_failure_that_may_pass_is_tried_again(status: int) -> None:
    clock, of = Clock(), exchange()
    assert persist(Provider(failing(status), failing(status)), patience(clock), of) == "answer"
    assert [(failure.status, failure.error) for failure in of.failures] == [(status, "why")] * 2
    assert [failure.waited for failure in of.failures] == pytest.approx(clock.waits)
    assert of.usage == Usage(waiting_seconds=sum(failure.waited for failure in of.failures))


@pytest.mark.parametrize("code", ["connection_lost", "timeout", "dns_failed", "stream_cut", "malformed_response"])
def test_trouble_on_the_way_is_tried_again(code: str) -> None:
    assert persist(Provider(failing(502, code)), patience(Clock())) == "answer"


@pytest.mark.parametrize(
    "error",
    [
        *(failing(status) for status in (301, 400, 401, 402, 403, 404, 413, 422)),
        failing(429, "insufficient_quota"),
        failing(500, "content_filter"),
        failing(502, "tls_failed"),
        failing(502, "bad_upstream"),
        failing(500, message="the request exceeds the maximum context length"),
    ],
    ids=lambda error: f"{error.status} {error.code}",
)
def test_what_another_try_does_not_cure_is_final(error: UpstreamError) -> None:
    clock, of, provider = Clock(), exchange(), Provider(error, forever=True)
    with pytest.raises(UpstreamError) as raised:
        persist(provider, patience(clock), of)
    assert raised.value is error
    assert (provider.tries, clock.waits) == (1, [])
    assert of.failures == [Failure(error.status, error.message)]


def test_an_error_of_the_client_is_none_of_the_provider() -> None:
    of = exchange()
    with pytest.raises(WireError, match="mine"):
        persist(Provider(WireError(500, "mine", "x")), patience(Clock()), of)
    assert of.failures == []


def test_waits_grow_to_a_minute_and_end_after_ten_tries() -> None:
    bounds = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    drawn: list[list[float]] = []
    for seed in range(200):
        clock, of, provider = Clock(), exchange(), Provider(failing(503), forever=True)
        with pytest.raises(UpstreamError):
            persist(provider, patience(clock, seed=str(seed)), of)
        assert provider.tries == len(of.failures) == 10
        assert of.failures[-1].waited == 0
        drawn.append(clock.waits)
    for bound, waits in zip(bounds, zip(*drawn, strict=True), strict=True):
        # Even draws from 0 to the bound: of 200, the least is below and the greatest above these with p < 1e-9.
        assert 0 <= min(waits) < 0.1 * bound
        assert 0.9 * bound < max(waits) <= bound
        assert 0.4 * bound < sum(waits) / len(waits) < 0.6 * bound


def test_the_same_lease_draws_the_same_waits() -> None:
    def waits(seed: str) -> list[float]:
        clock = Clock()
        persist(Provider(*[failing(500)] * 5), patience(clock, seed=seed))
        return clock.waits

    assert waits("a") == waits("a") != waits("b")


@pytest.mark.parametrize("asked", [0.0, 0.5, 7.0, 299.0])
def test_the_wait_that_the_provider_asks_for_is_kept_with_jitter_on_top(asked: float) -> None:
    clock = Clock()
    assert persist(Provider(failing(429, retry_after=asked)), patience(clock)) == "answer"
    (wait,) = clock.waits
    assert asked < wait <= asked + 1


def test_a_request_waits_five_minutes_in_all_at_most() -> None:
    clock, provider = Clock(), Provider(failing(429, retry_after=300))
    with pytest.raises(UpstreamError):
        persist(provider, patience(clock))
    assert clock.waits == []
    provider = Provider(failing(429, retry_after=200), failing(429, retry_after=100), Exception("not asked again"))
    with pytest.raises(UpstreamError) as raised:
        persist(provider, patience(clock))
    assert raised.value.retry_after == 100
    assert provider.tries == 2


def test_all_requests_of_a_lease_share_its_patience() -> None:
    clock = Clock()
    patient = patience(clock, seconds=10)
    assert persist(Provider(failing(429, retry_after=6)), patient, exchange(1)) == "answer"
    assert 6 < patient.waited <= 7
    with pytest.raises(UpstreamError):  # it would have to wait for 5, and at most 4 are left
        persist(Provider(failing(429, retry_after=5)), patient, exchange(2))
    with pytest.raises(UpstreamError):
        persist(Provider(failing(503), forever=True), patient, exchange(3))
    assert patient.waited <= 10
    assert patient.waited == pytest.approx(sum(clock.waits))


def test_the_last_wait_is_cut_to_what_is_left_and_then_it_is_over() -> None:
    clock, provider = Clock(), Provider(failing(503), forever=True)
    patient = patience(clock, seconds=1.5)
    with pytest.raises(UpstreamError):
        persist(provider, patient)
    assert patient.waited <= 1.5
    if provider.tries < 10:
        assert patient.waited == pytest.approx(1.5)


def test_the_wait_for_a_turn_counts_but_costs_no_patience() -> None:
    clock, of = Clock(), exchange()
    patient = patience(clock, seconds=5)

    async def queue() -> None:
        slots = asyncio.Semaphore(1)
        await slots.acquire()

        async def use() -> None:
            async with patient.turn(slots, of):
                assert slots.locked()

        task = asyncio.ensure_future(use())
        await asyncio.sleep(0)
        clock.now += 30
        assert patient.waited == 30
        slots.release()
        await task
        assert not slots.locked()

    asyncio.run(queue())
    assert patient.waited == of.usage.waiting_seconds == 30
    assert of.failures == []
    assert persist(Provider(failing(429, retry_after=4)), patient) == "answer"


def test_without_patience_nothing_is_tried_again() -> None:
    clock, provider = Clock(), Provider(failing(500))
    with pytest.raises(UpstreamError):
        persist(provider, patience(clock, seconds=0))
    assert (provider.tries, clock.waits) == (1, [])


def test_a_wait_counts_while_it_lasts_and_what_was_waited_is_kept_when_it_is_cut() -> None:
    clock, of, provider = Clock(), exchange(), Provider(failing(500))

    async def endless(seconds: float) -> None:
        await asyncio.Event().wait()

    async def cut() -> Patience:
        patient = Patience(100, "lease", clock=clock, sleep=endless)
        task: Any = asyncio.ensure_future(patient.persist(provider, of))
        while not provider.tries:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert patient.waited == 0
        clock.now += 40
        assert patient.waited == 40
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return patient

    patient = asyncio.run(cut())
    clock.now += 40
    assert patient.waited == of.usage.waiting_seconds == of.failures[0].waited == 40
    assert provider.tries == 1
