"""The way to the web of a web task: a forward proxy, at a unix socket per trial, that puts on record what is reached.

The container has no other way out. Names are looked up here, and only here; every address is checked, and the
connection goes to an address that was (a name that leads elsewhere the next time gains nothing).
"""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_dataclaw.proxy.egress_policy import EgressError, parse_request

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Callable
    from pathlib import Path
    from urllib.parse import SplitResult

    from pytest_dataclaw.proxy.egress_policy import EgressPolicy, ProxyRequest

_MAX_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_LOOKUPS = 8
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass(slots=True)
class Passage:
    """One request to the egress proxy and what became of it; a tunnel counts as one."""

    time: str
    """UTC, ISO 8601."""
    method: str = ""
    host: str = ""
    port: int = 0
    up: int = 0
    down: int = 0
    """Bytes passed on."""
    status: int = 0
    """HTTP status: the server's, 200 for a tunnel, the proxy's own where nothing was reached."""
    error: str = ""
    reached: bool = False
    """Whether a connection came about."""
    refused: bool = False
    """Whether the proxy let none come about."""
    seconds: float = 0.0


class EgressServer:
    """The egress proxy of one trial; `log` is called with each passage when it has ended. Lives on one event loop."""

    def __init__(self, policy: EgressPolicy, log: Callable[[Passage], None]) -> None:
        self._policy = policy
        self._log = log
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests = 0
        self._bytes = 0
        # Threads of its own, as names that take long to look up must hold up nothing else.
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="dataclaw-lookup")

    async def start(self, path: Path) -> None:
        """Listen at a unix socket that every user may connect to; OSError where that is impossible."""
        self._server = await asyncio.start_unix_server(self._accept, path, limit=_MAX_HEAD_BYTES)
        path.chmod(0o666)

    async def aclose(self) -> None:
        """Listen no more and cut what is open; the passages have been logged when this returns."""
        if self._server is not None:
            self._server.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lookups.shutdown(wait=False, cancel_futures=True)

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._requests += 1
        if len(self._tasks) >= self._policy.max_connections or self._requests > self._policy.max_requests:
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        passage = Passage(datetime.now(timezone.utc).isoformat())
        began = time.monotonic()
        try:
            await self._pass(reader, writer, passage)
        except EgressError as error:
            passage.error = str(error)
            passage.refused = not passage.reached and error.status < 500
            if not passage.status:
                passage.status = error.status
                writer.write(_answer(error.status, passage.error))
        except (OSError, EOFError) as error:
            passage.error = f"the connection broke: {error}"
        except asyncio.CancelledError:
            passage.error = "the trial ended"
            writer.transport.abort()
            raise
        finally:
            passage.seconds = round(time.monotonic() - began, 3)
            writer.close()
            self._log(passage)

    async def _pass(self, reader: StreamReader, writer: StreamWriter, passage: Passage) -> None:
        request = parse_request(await self._read_head(reader))
        passage.method, passage.host, passage.port = request.method, request.host, request.port
        self._policy.check_port(request.port)
        if self._bytes >= self._policy.max_bytes:
            raise EgressError(403, "the trial has used up its bytes")
        outer_reader, outer_writer = await self._connect(request)
        passage.reached = True
        try:
            if request.is_tunnel:
                passage.status = 200
                writer.write(_ESTABLISHED)
            await self._relay((reader, writer), (outer_reader, outer_writer), passage)
        finally:
            outer_writer.transport.abort()

    async def _read_head(self, reader: StreamReader) -> bytes:
        try:
            return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self._policy.connect_seconds)
        except asyncio.LimitOverrunError as error:
            raise EgressError(431, f"the request's head is over {_MAX_HEAD_BYTES} bytes") from error
        except asyncio.TimeoutError as error:
            raise EgressError(408, "no request came") from error

    # -- to the other side --------------------------------------------------------------------------------------

    async def _connect(self, request: ProxyRequest) -> tuple[StreamReader, StreamWriter]:
        """Return a connection to which a plain request has been sent already, and a tunnel's client can write."""
        proxy = self._policy.upstreams.get("https" if request.is_tunnel else "http")
        try:
            if proxy is None:
                reader, writer = await asyncio.wait_for(self._dial(request), self._policy.connect_seconds)
                if not request.is_tunnel:
                    writer.write(_head(request.method, request.path, request.headers))
                return reader, writer
            return await asyncio.wait_for(self._through(urlsplit(proxy), request), self._policy.connect_seconds)
        except asyncio.TimeoutError as error:
            raise EgressError(504, f"{request.host} did not answer in time") from error
        except (OSError, EOFError) as error:
            raise EgressError(502, f"cannot connect to {request.host}: {error}") from error

    async def _dial(self, request: ProxyRequest) -> tuple[StreamReader, StreamWriter]:
        failure: OSError | None = None
        for address in await self._addresses(request):
            try:
                reader, writer = await asyncio.open_connection(address, request.port)
            except OSError as error:
                failure = error
                continue
            own = writer.get_extra_info("sockname")[0]
            if own == address and not self._policy.allows(address):  # a public address of this very machine
                writer.close()
                raise EgressError(403, f"{address} is this machine")
            return reader, writer
        assert failure is not None  # a name without any address is an error of looking it up
        raise failure

    async def _addresses(self, request: ProxyRequest) -> list[str]:
        """Look a name up, and refuse it if one of its addresses is."""
        look_up = partial(socket.getaddrinfo, request.host, request.port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._lookups, look_up)
        except UnicodeError as error:
            raise EgressError(400, f"{request.host} is no name of a host") from error
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        for address in addresses:
            self._policy.check_address(address)
        return addresses

    async def _through(self, proxy: SplitResult, request: ProxyRequest) -> tuple[StreamReader, StreamWriter]:
        """Go through the proxy of this machine's network; it looks up the names that cannot be looked up here."""
        with suppress(socket.gaierror):
            await self._addresses(request)
        reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or 80, limit=_MAX_HEAD_BYTES)
        headers = _credentials(proxy)
        if not request.is_tunnel:
            url = f"http://{request.authority}{request.path}"
            writer.write(_head(request.method, url, (*request.headers, *headers)))
            return reader, writer
        writer.write(_head("CONNECT", request.authority, (f"Host: {request.authority}", *headers)))
        reply = _STATUS.match(await reader.readuntil(b"\r\n\r\n"))
        if reply is None or reply[1] != b"200":
            writer.close()
            raise EgressError(502, f"the proxy {proxy.hostname} refused a tunnel to {request.authority}")
        return reader, writer

    # -- both ways ----------------------------------------------------------------------------------------------

    async def _relay(
        self, client: tuple[StreamReader, StreamWriter], server: tuple[StreamReader, StreamWriter], passage: Passage
    ) -> None:
        """Pass bytes on until the server is done; a client may be done before it."""
        active = [time.monotonic()]

        async def pump(source: StreamReader, sink: StreamWriter, *, up: bool) -> None:
            while chunk := await self._read(source, active):
                active[0] = time.monotonic()
                self._count(len(chunk), passage, up=up)
                if not up and not passage.status:
                    status = _STATUS.match(chunk)
                    passage.status = int(status[1]) if status else 502
                sink.write(chunk)
                await sink.drain()
            with suppress(OSError):
                sink.write_eof()

        upwards = asyncio.create_task(pump(client[0], server[1], up=True))
        downwards = asyncio.create_task(pump(server[0], client[1], up=False))
        try:
            await asyncio.wait((upwards, downwards), return_when=asyncio.FIRST_COMPLETED)
            if upwards.done():
                upwards.result()
            await downwards
        finally:
            upwards.cancel()
            downwards.cancel()
            await asyncio.gather(upwards, downwards, return_exceptions=True)

    async def _read(self, source: StreamReader, active: list[float]) -> bytes:
        """Read what comes next; EgressError once nothing has come from either side for `idle_seconds`."""
        while True:
            left = active[0] + self._policy.idle_seconds - time.monotonic()
            if left <= 0:
                raise EgressError(504, f"nothing was sent for {self._policy.idle_seconds:g} s")
            try:
                return await asyncio.wait_for(source.read(_CHUNK_BYTES), left)
            except asyncio.TimeoutError:
                if source.exception() is not None:  # not our timeout, but that of the connection itself
                    raise

    def _count(self, size: int, passage: Passage, *, up: bool) -> None:
        self._bytes += size
        if self._bytes > self._policy.max_bytes:
            raise EgressError(403, "the trial has used up its bytes")
        if up:
            passage.up += size
        else:
            passage.down += size


def _head(method: str, target: str, headers: tuple[str, ...]) -> bytes:
    return "\r\n".join((f"{method} {target} HTTP/1.1", *headers, "", "")).encode("latin-1")


def _credentials(proxy: SplitResult) -> tuple[str, ...]:
    if proxy.username is None:
        return ()
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return (f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}",)


def _answer(status: int, reason: str) -> bytes:
    body = f"dataclaw: {reason}\n".encode("utf-8", "replace")
    head = (f"HTTP/1.1 {status} Refused", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}")
    return "\r\n".join((*head, "Connection: close", "", "")).encode() + body
