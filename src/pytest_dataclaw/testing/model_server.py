"""A scripted model: plays scenarios over the real chat-completions protocol, and keeps what it was asked and reported.

    with ModelServer(Scenario(ToolCalls([("exec", {"command": "ls"})]), Answer("42"))) as server:
        client = OpenAI(base_url=server.base_url, api_key="any")
        ...
    assert len(server.requests) == 2
    assert server.usage().output_tokens == 20

It serves on loopback and, where a path is given, on a unix socket too, which a container without a network can reach.
Errors, stalls, resets and broken streams are steps as well: see `pytest_dataclaw.testing.scenario`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.testing.player import Player
from pytest_dataclaw.testing.scenario import Request, Scenario, refusal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from pytest_dataclaw.testing.scenario import Step

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())

_MAX_BODY_BYTES = 64 * 1024 * 1024


class ModelServer:
    """Serves one scenario to everybody, or several by API key or model id. Use it as a context manager.

    A key of `scenarios` is an API key or a model id; the API key is looked up first, and the key "" fits whoever is
    left. Each scenario counts its own requests, so any number of conversations can be played at once. A request that
    no scenario fits gets status 404.
    """

    def __init__(self, scenarios: Scenario | Mapping[str, Scenario], *, unix_socket: Path | None = None) -> None:
        self._scenarios = {"": scenarios} if isinstance(scenarios, Scenario) else dict(scenarios)
        self._unix_socket = unix_socket
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._hung_up: list[Request] = []
        self._usage: dict[str, Usage] = {}
        self._port = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """The base URL for clients, `/v1` included; its port is free only once the server has started."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far, in the order of their arrival."""
        with self._lock:
            return tuple(self._requests)

    @property
    def hung_up(self) -> tuple[Request, ...]:
        """The requests whose client went away before the end."""
        with self._lock:
            return tuple(self._hung_up)

    def usage(self, scenario: str | None = None) -> Usage:
        """Return requests, and tokens and cost as reported to clients, of one scenario or of all; no times."""
        with self._lock:
            if scenario is not None:
                return self._usage.get(scenario, Usage())
            return sum(self._usage.values(), Usage())

    def start(self) -> None:
        """Start serving on an ephemeral port; OSError where that is impossible."""
        ready: Future[int] = Future()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="model-server", daemon=True)
        thread.start()
        self._port = ready.result()
        self._thread = thread

    def stop(self) -> None:
        """Cut what is in flight, close the sockets and end the thread. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()

    def __enter__(self) -> ModelServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self, ready: Future[int]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.add_routes([web.post("/v1/chat/completions", self._chat), web.get("/v1/models", self._models)])
        runner = web.AppRunner(app, access_log=None, logger=_LOG, handler_cancellation=True, shutdown_timeout=0.1)
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
            port = runner.addresses[0][1]
            if self._unix_socket is not None:
                await web.UnixSite(runner, self._unix_socket).start()
                self._unix_socket.chmod(0o666)  # a container's user is not the host's
        except Exception as error:
            ready.set_exception(error)  # whatever it is, `start` raises it and does not wait for ever
        else:
            ready.set_result(port)
            await self._stopping.wait()
        finally:
            await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        cards = [{"id": key or "scripted", "object": "model", "owned_by": "scenario"} for key in self._scenarios]
        return web.json_response({"object": "list", "data": cards})

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        request, step = self._admit(await http.read(), {name.lower(): value for name, value in http.headers.items()})
        try:
            await asyncio.sleep(step.delay)
            return await Player(http, request, self._report).play(step)
        except (asyncio.CancelledError, ConnectionError):
            if self._stopping is not None and not self._stopping.is_set():
                with self._lock:
                    self._hung_up.append(request)
            raise

    def _admit(self, raw: bytes, headers: dict[str, str]) -> tuple[Request, Step]:
        """Record a request and find the step that answers it."""
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        asked = Request(0, "", headers, body if isinstance(body, dict) else {})
        key = next((key for key in (asked.api_key, asked.model, "") if key in self._scenarios), None)
        with self._lock:
            before = self._usage.get(key or "", Usage())
            request = Request(before.requests + 1, key or "", headers, asked.body)
            self._requests.append(request)
            self._usage[request.scenario] = before + Usage(requests=1)
        if not isinstance(body, dict):
            return request, refusal(400, "the body is not a JSON object")
        if key is None:
            return request, refusal(404, f"no scenario for this API key or the model {request.model!r}")
        return request, self._scenarios[key].step(request)

    def _report(self, request: Request, usage: Usage) -> None:
        with self._lock:
            self._usage[request.scenario] += usage
