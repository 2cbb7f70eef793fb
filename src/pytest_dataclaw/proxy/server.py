"""The model proxy: a thread with an event loop of its own that serves the control and the model API on loopback."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_dataclaw.proxy.chat import ModelApi, bearer_token
from pytest_dataclaw.proxy.control import MODEL_NOT_SERVED, ControlAddress, lease_request_from_json, trial_from_query
from pytest_dataclaw.proxy.egress import EgressServer
from pytest_dataclaw.proxy.egress_policy import EgressPolicy
from pytest_dataclaw.proxy.lease import LeaseBook
from pytest_dataclaw.proxy.ledger import Ledger
from pytest_dataclaw.proxy.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from pytest_dataclaw.proxy.base import Egress, Role
    from pytest_dataclaw.proxy.lease import LeaseEntry
    from pytest_dataclaw.proxy.redaction import Redactor
    from pytest_dataclaw.proxy.upstreams.base import Upstream

    _Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
    _Guard = Callable[[web.Request], None]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())  # a program that set up no logging must not find our lines on its stderr

MAX_BODY_BYTES = 64 * 1024 * 1024
_SHUTDOWN_SECONDS = 2.0
_MAX_SOCKET_PATH_BYTES = 103
"""The shortest limit among systems (macOS: 104 with the final NUL; Linux: 108)."""


class ProxyServer:
    """Serves models by role and name; one per run. Use as a context manager, or `start` and `stop` it once."""

    def __init__(
        self,
        upstreams: Mapping[tuple[Role, str], Upstream],
        redactor: Redactor,
        egress: EgressPolicy | None = None,
        slots: Mapping[tuple[Role, str], asyncio.Semaphore] | None = None,
    ) -> None:
        self._upstreams = dict(upstreams)
        self._slots = slots or {}
        self._egress = egress or EgressPolicy()
        self._redactor = redactor
        self._token = secrets.token_urlsafe(32)
        self._ledger = Ledger()
        self._book = LeaseBook(self._ledger, redactor)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def start(self) -> ControlAddress:
        """Start serving on an ephemeral port of 127.0.0.1; OSError where that is impossible."""
        self._redactor.add("CONTROL_TOKEN", self._token)
        ready: Future[str] = Future()
        thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="dataclaw-proxy", daemon=True)
        thread.start()
        url = ready.result()
        self._thread = thread
        return ControlAddress(url, self._token)

    def stop(self) -> None:
        """Cut what is in flight, finish the journals, close all sockets and end the thread. Idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()

    def __enter__(self) -> ControlAddress:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self, ready: Future[str]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        runner = _runner(self._guard_control, [*self._model_routes(), *self._control_routes()])
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        except Exception as error:
            ready.set_exception(error)  # whatever it is, `start` raises it and does not wait for ever
        else:
            ready.set_result(f"http://127.0.0.1:{runner.addresses[0][1]}")
            await self._stopping.wait()
        finally:
            await self._book.shut()
            await runner.cleanup()
            for upstream in set(self._upstreams.values()):
                await upstream.aclose()

    def _model_routes(self) -> list[web.RouteDef]:
        return ModelApi(self._book, self._upstreams, self._slots).routes()

    def _control_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/control/leases", self._open_lease),
            web.delete("/control/leases/{lease_id}", self._close_lease),
            web.get("/control/health", self._health, allow_head=False),
            web.get("/control/usage", self._show_usage, allow_head=False),
            web.get("/control/ledger", self._show_ledger, allow_head=False),
        ]

    def _guard_control(self, request: web.Request) -> None:
        if request.path.startswith("/control/") and not _has_token(request, self._token):
            raise WireError(401, "the control token is wrong", "invalid_control_token")

    async def _open_lease(self, request: web.Request) -> web.Response:
        try:
            wanted = lease_request_from_json(await request.json())
        except (ValueError, KeyError, TypeError) as error:
            raise WireError(400, f"not a lease request: {error!r}", "invalid_request") from error
        if (wanted.role, wanted.model) not in self._upstreams:
            served = ", ".join(sorted(model for role, model in self._upstreams if role == wanted.role)) or "none"
            message = f"no model {wanted.model!r} for the {wanted.role}; served: {served}"
            raise WireError(422, message, MODEL_NOT_SERVED)
        entry = self._book.open(wanted)
        place = wanted.socket
        try:
            if place is not None:
                await self._listen(entry, place)
            if wanted.egress is not None:
                place = wanted.egress.socket
                await self._let_out(entry, wanted.egress)
        except OSError as error:
            await self._book.close(entry.lease_id)
            raise WireError(422, f"cannot listen at {place}: {error}", "no_socket") from error
        return web.json_response({"lease_id": entry.lease_id, "token": entry.token})

    async def _listen(self, entry: LeaseEntry, path: Path) -> None:
        """Serve the lease, and nothing else, on a unix socket until it is closed; OSError where that is impossible."""

        def guard(request: web.Request) -> None:
            if not _has_token(request, entry.token):
                raise WireError(401, "the token is not that of this socket's lease", "invalid_api_key")

        _check_place(path)
        async with AsyncExitStack() as resources:
            resources.callback(path.unlink, missing_ok=True)
            runner = _runner(guard, self._model_routes())
            resources.push_async_callback(runner.cleanup)
            await runner.setup()
            await web.UnixSite(runner, path).start()
            path.chmod(0o666)
            entry.resources = resources.pop_all()

    async def _let_out(self, entry: LeaseEntry, egress: Egress) -> None:
        """Serve the egress proxy to a lease's trial until the lease is closed; OSError where that is impossible."""
        _check_place(egress.socket)
        server = EgressServer(self._egress, lambda passage: self._book.record_passage(entry, egress, passage))
        entry.resources.callback(egress.socket.unlink, missing_ok=True)
        entry.resources.push_async_callback(server.aclose)
        await server.start(egress.socket)

    async def _close_lease(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(await self._book.close(request.match_info["lease_id"])))

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _show_usage(self, request: web.Request) -> web.Response:
        try:
            key, role = trial_from_query(request.query)
        except (KeyError, ValueError) as error:
            raise WireError(400, f"not a trial and a role: {error!r}", "invalid_request") from error
        return web.json_response(asdict(self._book.usage(key, role)))

    async def _show_ledger(self, request: web.Request) -> web.Response:
        roles: tuple[Role, ...] = ("agent", "judge")
        run = {role: asdict(self._ledger.total(role)) for role in roles}
        trials = [
            {"key": asdict(key), "role": role, "usage": asdict(usage)} for key, role, usage in self._ledger.trials()
        ]
        return web.json_response({"run": run, "trials": trials})


def _check_place(path: Path) -> None:
    """Raise OSError where no unix socket can be made."""
    if len(os.fsencode(path)) > _MAX_SOCKET_PATH_BYTES:
        raise OSError(f"the path of a unix socket has at most {_MAX_SOCKET_PATH_BYTES} bytes")
    if path.exists():  # asyncio would take the socket of another lease for a stale one, and its place
        raise FileExistsError("something is there already")


def _runner(guard: _Guard, routes: list[web.RouteDef]) -> web.AppRunner:
    """Return a runner of some routes; `guard` raises WireError for a request that must not reach them."""

    @web.middleware
    async def guarded(request: web.Request, handler: _Handler) -> web.StreamResponse:
        guard(request)
        return await handler(request)

    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_answer_errors, guarded])
    app.add_routes(routes)
    return web.AppRunner(
        app,
        access_log=None,
        logger=_LOG,
        handler_cancellation=True,  # a client that hangs up must not leave a paid request running
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )


def _has_token(request: web.Request, token: str) -> bool:
    return hmac.compare_digest(bearer_token(request).encode("utf-8", "surrogateescape"), token.encode())


@web.middleware
async def _answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer every error in OpenAI's shape, marked as not worth a retry: only the proxy retries."""
    try:
        return await handler(request)
    except WireError as error:
        failure = error
    except web.HTTPException as error:
        failure = WireError(error.status, error.reason, "http_error")
    return web.json_response(failure.body, status=failure.final_status, headers={"x-should-retry": "false"})
