"""The lease book: who may use which model, what goes over each lease, and how a lease ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_dataclaw.model.trajectory import Traffic, Usage
from pytest_dataclaw.proxy.call_ids import CallIds
from pytest_dataclaw.proxy.exchange import Exchange, Journal, append_line, common_prefix
from pytest_dataclaw.proxy.retry import Patience
from pytest_dataclaw.proxy.trajectory import build_trajectory
from pytest_dataclaw.proxy.wire import LimitError, WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.proxy.base import Egress, LeaseRequest, Role
    from pytest_dataclaw.proxy.egress import Passage
    from pytest_dataclaw.proxy.ledger import Ledger
    from pytest_dataclaw.proxy.redaction import Redactor

LEASE_TOKEN = "LEASE_TOKEN"


class LeaseEntry:
    """A lease as the book holds it; touched on the proxy's event loop only."""

    def __init__(self, request: LeaseRequest, redactor: Redactor) -> None:
        self.lease_id = secrets.token_hex(8)
        self.token = secrets.token_urlsafe(32)
        self.request = request
        self.journal = Journal(request.journal, redactor)
        self.numbers = itertools.count(1)
        self.call_ids = CallIds()
        self.patience = Patience(request.patience, self.lease_id)
        self.exchanges: list[Exchange] = []
        self.passages: list[Passage] = []
        self.in_flight: set[asyncio.Task[object]] = set()
        self.written: list[Future[None]] = []
        self.closing: asyncio.Task[Traffic] | None = None
        self.resources = AsyncExitStack()
        """What is given back once nothing is in flight any more: the lease's socket, where it has one."""
        self._admitted = 0

    def admit(self) -> None:
        """Count a request that is about to be sent; LimitError where the lease may send no more."""
        limit = self.request.max_requests
        if limit is not None and self._admitted >= limit:
            raise LimitError(f"the trial has sent as many requests to its model as it may ({limit})")
        self._admitted += 1


class LeaseBook:
    """All leases of a run. Closed ones keep only what went over them."""

    def __init__(self, ledger: Ledger, redactor: Redactor) -> None:
        self._ledger = ledger
        self._redactor = redactor
        self._entries: dict[str, LeaseEntry] = {}
        self._by_token: dict[str, LeaseEntry] = {}
        # One thread for all journals: writing never blocks the loop, and lines keep their order.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dataclaw-journal")

    def open(self, request: LeaseRequest) -> LeaseEntry:
        """Enter a new lease."""
        entry = LeaseEntry(request, self._redactor)
        self._redactor.add(LEASE_TOKEN, entry.token)
        self._entries[entry.lease_id] = self._by_token[entry.token] = entry
        return entry

    def by_token(self, token: str) -> LeaseEntry:
        """Return the open lease of a token; WireError 401 where there is none."""
        try:
            return self._by_token[token]
        except KeyError:
            raise WireError(401, "the lease is unknown or closed", "invalid_api_key") from None

    def usage(self, key: TrialKey, role: Role) -> Usage:
        """Return what a role of a trial has used so far; waits count from their start, all else from its end."""
        entries = (entry for entry in self._entries.values() if (entry.request.key, entry.request.role) == (key, role))
        return replace(self._ledger.trial(key, role), waiting_seconds=sum(entry.patience.waited for entry in entries))

    @contextmanager
    def exchange(self, entry: LeaseEntry) -> Iterator[Exchange]:
        """Hold one exchange in flight; it is recorded when the block ends, in whatever way."""
        task = asyncio.current_task()
        assert task is not None
        exchange = Exchange(next(entry.numbers), started_at=_now(), started=time.monotonic())
        entry.in_flight.add(task)
        try:
            yield exchange
        except WireError as error:
            exchange.status, exchange.error, exchange.fault = error.status, error.message, error.fault
            raise
        except (asyncio.CancelledError, ConnectionError):
            # Cut before the end of the reply was out; once it is out, hanging up is the client's good right.
            if not exchange.complete:
                closed = entry.closing is not None
                exchange.status, exchange.fault = 499, "closed" if closed else "client"
                exchange.error = "the lease was closed" if closed else "the client hung up"
            raise
        finally:
            self._record(entry, exchange)
            entry.in_flight.discard(task)

    async def close(self, lease_id: str) -> Traffic:
        """End a lease: refuse new requests, cut those in flight, and say what went over it; the same every time."""
        entry = self._entries.get(lease_id)
        if entry is None:
            raise WireError(404, f"there is no lease {lease_id}", "unknown_lease")
        if entry.closing is None:
            entry.closing = asyncio.get_running_loop().create_task(self._close(entry))
        # Shielded: a caller that hangs up must not leave the lease half closed.
        return await asyncio.shield(entry.closing)

    async def shut(self) -> None:
        """Close every lease and end the journals' thread."""
        await asyncio.gather(*map(self.close, self._entries), return_exceptions=True)
        self._writer.shutdown()

    async def _close(self, entry: LeaseEntry) -> Traffic:
        self._by_token.pop(entry.token, None)
        cut = set(entry.in_flight)
        for task in cut:
            task.cancel()
        if cut:
            await asyncio.wait(cut)
        await entry.resources.aclose()
        try:
            await asyncio.gather(*map(asyncio.wrap_future, entry.written))
        except OSError as error:
            raise WireError(500, f"the journal could not be written: {error}", "journal_failed") from error
        self._redactor.discard(entry.token)
        exchanges = sorted(entry.exchanges, key=lambda exchange: exchange.number)
        traffic = await asyncio.to_thread(_traffic, exchanges)
        if entry.request.egress is not None:
            passages = entry.passages
            hosts = Counter(passage.host for passage in passages if passage.reached)
            refused = Counter(passage.host for passage in passages if passage.refused and passage.host)
            traffic = replace(traffic, hosts=dict(hosts), refused_hosts=dict(refused))
        entry.exchanges.clear()
        entry.written.clear()
        return traffic

    def record_passage(self, entry: LeaseEntry, egress: Egress, passage: Passage) -> None:
        """Put on record a request to the egress proxy that has ended."""
        passage.host = self._redactor.scrub(passage.host)
        entry.passages.append(passage)
        line = self._redactor.scrub(json.dumps(asdict(passage), ensure_ascii=False))
        entry.written.append(self._writer.submit(append_line, egress.journal, line))

    def _record(self, entry: LeaseEntry, exchange: Exchange) -> None:
        exchange.ended_at, exchange.ended = _now(), time.monotonic()
        exchange.usage += Usage(wall_seconds=exchange.ended - exchange.started)
        if entry.exchanges:
            # Each request repeats the history: keep one copy of it in memory.
            before = entry.exchanges[-1].messages
            shared = common_prefix(before, exchange.messages)
            exchange.messages[:shared] = before[:shared]
        entry.exchanges.append(exchange)
        self._ledger.add(entry.request.key, entry.request.role, exchange.usage)
        entry.written.append(self._writer.submit(entry.journal.append, exchange))


def _traffic(exchanges: list[Exchange]) -> Traffic:
    # Requests that the proxy refused, and those cut by the client or by closing, say nothing of the provider.
    met = [exchange for exchange in exchanges if exchange.fault in ("", "provider")]
    return Traffic(
        trajectory=build_trajectory(exchanges),
        usage=sum((exchange.usage for exchange in exchanges), Usage()),
        last_error=met[-1].error if met else "",
        last_status=met[-1].status if met else 0,
        limit=next((exchange.error for exchange in exchanges if exchange.fault == "limit"), ""),
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()
