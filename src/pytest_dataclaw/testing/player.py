"""Plays one step of a scenario on one HTTP connection."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import TYPE_CHECKING

from aiohttp import web

from pytest_dataclaw.testing.replies import DONE, completion, event, reply_events, usage_event
from pytest_dataclaw.testing.scenario import (
    Answer,
    Cut,
    ErrorEvent,
    Hang,
    HttpError,
    Malformed,
    Reply,
    Reset,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_dataclaw.model.trajectory import Usage
    from pytest_dataclaw.testing.scenario import Request, Step

_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Player:
    """Answers one request; `report` is called with the usage that a reply is about to report."""

    def __init__(self, http: web.Request, request: Request, report: Callable[[Request, Usage], None]) -> None:
        self._http = http
        self._request = request
        self._report = report
        self._streams = bool(request.body.get("stream"))

    async def play(self, step: Step) -> web.StreamResponse:
        """Answer with a step; ConnectionError where the client is gone."""
        if isinstance(step, Reply):
            return await (self._stream(step) if self._streams else self._plain(step))
        if isinstance(step, HttpError):
            return self._error(step)
        if isinstance(step, Malformed):
            content_type = step.content_type or (_EVENT_STREAM if self._streams else _JSON)
            return web.Response(body=step.body.encode(), content_type=content_type)
        if isinstance(step, ErrorEvent):
            return await self._late_error(step)
        if isinstance(step, Cut):
            return self._close(await self._begin(step.after_text))
        if isinstance(step, Hang):
            return await self._hang(step)
        if isinstance(step, Reset):
            return self._reset()
        raise TypeError(f"{step!r} is no step of a scenario")

    async def _plain(self, reply: Reply) -> web.Response:
        if reply.usage is not None:
            self._report(self._request, reply.usage)
        return web.json_response(completion(self._request, reply))

    async def _stream(self, reply: Reply) -> web.StreamResponse:
        response = await self._send(reply_events(self._request, reply))
        options = self._request.body.get("stream_options")
        if reply.usage is not None and isinstance(options, dict) and options.get("include_usage"):
            self._report(self._request, reply.usage)
            await response.write(usage_event(self._request, reply.usage))
        await response.write(DONE)
        return response

    def _error(self, step: HttpError) -> web.Response:
        if isinstance(step.body, str):
            return web.Response(status=step.status, text=step.body, headers=step.headers)
        body = step.body or {"error": {"message": f"scripted error {step.status}", "type": "error", "code": None}}
        return web.json_response(body, status=step.status, headers=step.headers)

    async def _late_error(self, step: ErrorEvent) -> web.StreamResponse:
        if not self._streams:
            return web.json_response({"error": step.error})
        response = await self._send(self._opening(step.after_text))
        await response.write(event({"error": step.error}))
        return response

    async def _hang(self, step: Hang) -> web.StreamResponse:
        response = await self._begin(step.after_text) if step.after_text else web.StreamResponse()
        if step.seconds is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(step.seconds)
        return self._close(response)

    async def _begin(self, text: str) -> web.StreamResponse:
        """Send the first part of an answer: its events up to the end of the text, or half of its JSON."""
        if self._streams:
            return await self._send(self._opening(text))
        whole = json.dumps(completion(self._request, Answer(text))).encode()
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Content-Length": str(len(whole))})
        await response.prepare(self._http)
        await response.write(whole[: len(whole) // 2])
        return response

    def _opening(self, text: str) -> list[bytes]:
        return list(reply_events(self._request, Answer(text)))[:-1]

    async def _send(self, pieces: Iterable[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _EVENT_STREAM, "Cache-Control": "no-store"})
        await response.prepare(self._http)
        for piece in pieces:
            await response.write(piece)
        return response

    def _close(self, response: web.StreamResponse) -> web.StreamResponse:
        if self._http.transport is not None:
            self._http.transport.close()
        return response

    def _reset(self) -> web.StreamResponse:
        transport = self._http.transport
        if transport is not None:
            sock = transport.get_extra_info("socket")
            if sock.family == socket.AF_INET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            transport.abort()
        return web.StreamResponse()
