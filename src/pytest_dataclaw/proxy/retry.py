"""What a request waits for: another try after a failure of its provider, and its turn where few are let through.

Only the proxy retries.

Back-off is exponential with full jitter: before the n-th further try a wait drawn evenly from 0 to
min(60, 2^(n - 1)) seconds, on top of what the provider asks for in `Retry-After`.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.proxy.base import is_context_overflow
from pytest_dataclaw.proxy.exchange import Failure
from pytest_dataclaw.proxy.upstreams.base import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from pytest_dataclaw.proxy.exchange import Exchange

_T = TypeVar("_T")

MAX_ATTEMPTS = 10
REQUEST_WAIT_SECONDS = 300.0
"""The longest that one request waits in all; agents and HTTP libraries give up on a silent one after 600."""
_BASE_SECONDS = 1.0
_CAP_SECONDS = 60.0
_PASSING = (408, 409, 429)
_LASTING_CODES = ("insufficient_quota", "content_filter", "tls_failed", "bad_upstream")
"""Failures whose status says that they pass, but which another try does not cure."""


class Patience:
    """How long one lease backs off before its provider, `seconds` in all; touched on the proxy's event loop only.

    `seed` makes the jitter repeatable; `clock` and `sleep` are for tests.
    """

    def __init__(
        self,
        seconds: float,
        seed: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._left = seconds
        self._jitter = random.Random(seed)
        self._clock = clock
        self._sleep = sleep
        self._waited = 0.0
        self._waiting_since: dict[int, float] = {}

    @property
    def waited(self) -> float:
        """The seconds waited so far, waits under way included; those of requests side by side add up."""
        now = self._clock()
        return self._waited + sum(now - since for since in self._waiting_since.values())

    @asynccontextmanager
    async def turn(self, slots: asyncio.Semaphore | None, exchange: Exchange) -> AsyncIterator[None]:
        """Hold one of the slots in the block, after a wait for it that costs no patience; None: there is no limit."""
        if slots is None:
            yield
            return
        with self._waiting(exchange):
            await slots.acquire()
        try:
            yield
        finally:
            slots.release()

    async def persist(self, attempt: Callable[[], Awaitable[_T]], exchange: Exchange) -> _T:
        """Return what `attempt` brings in the end; UpstreamError where the provider fails for good.

        Every failure is noted in the exchange, with the wait after it; a wait can be cancelled at any time.
        """
        while True:
            try:
                return await attempt()
            except UpstreamError as error:
                failure = Failure(error.status, error.message)
                exchange.failures.append(failure)
                if not is_passing(error):
                    raise
                seconds = self._next_wait(error, exchange)
                if seconds is None:
                    raise
            await self._wait(seconds, failure, exchange)

    def _next_wait(self, error: UpstreamError, exchange: Exchange) -> float | None:
        """Return how long to wait before the next try; None where there is to be none."""
        tries = len(exchange.failures)
        left = min(self._left, REQUEST_WAIT_SECONDS - sum(failure.waited for failure in exchange.failures))
        asked = error.retry_after or 0.0
        if tries >= MAX_ATTEMPTS or left <= asked:
            return None
        # Jitter comes on top of what was asked for: all who were refused at once would come back at once.
        return min(left, asked + self._jitter.uniform(0, min(_CAP_SECONDS, _BASE_SECONDS * 2 ** (tries - 1))))

    async def _wait(self, seconds: float, failure: Failure, exchange: Exchange) -> None:
        before = exchange.usage.waiting_seconds
        self._left -= seconds
        try:
            with self._waiting(exchange):
                await self._sleep(seconds)
        finally:
            failure.waited = exchange.usage.waiting_seconds - before
            self._left += seconds - failure.waited

    @contextmanager
    def _waiting(self, exchange: Exchange) -> Iterator[None]:
        began = self._waiting_since[exchange.number] = self._clock()
        try:
            yield
        finally:
            del self._waiting_since[exchange.number]
            waited = self._clock() - began
            self._waited += waited
            exchange.usage += Usage(waiting_seconds=waited)


def is_passing(error: UpstreamError) -> bool:
    """Tell whether the same request may succeed later."""
    if error.status not in _PASSING and error.status < 500:
        return False
    return error.code not in _LASTING_CODES and not is_context_overflow(error.message)
