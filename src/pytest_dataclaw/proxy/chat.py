"""The model API that agents and judges talk to: chat completions and the models list, by right of a lease."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.proxy.ledger import read_usage
from pytest_dataclaw.proxy.upstreams.base import UpstreamError
from pytest_dataclaw.proxy.wire import WireError, event_stream, read_reply, read_request, tool_names

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping

    from pytest_dataclaw.proxy.base import LeaseRequest, Role
    from pytest_dataclaw.proxy.exchange import Exchange
    from pytest_dataclaw.proxy.lease import LeaseBook, LeaseEntry
    from pytest_dataclaw.proxy.upstreams.base import Upstream


def bearer_token(request: web.Request) -> str:
    """Return the token of the Authorization header, or ""."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


class ModelApi:
    """Handlers of the routes under /v1."""

    def __init__(
        self,
        book: LeaseBook,
        upstreams: Mapping[tuple[Role, str], Upstream],
        slots: Mapping[tuple[Role, str], asyncio.Semaphore],
    ) -> None:
        self._book = book
        self._upstreams = upstreams
        self._slots = slots

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; there are no others under /v1."""
        return [
            web.post("/v1/chat/completions", self._chat),
            web.get("/v1/models", self._models, allow_head=False),
            web.get("/v1/models/{model:.+}", self._model, allow_head=False),
        ]

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        entry = self._book.by_token(bearer_token(request))
        with self._book.exchange(entry) as exchange:
            body = read_request(await _read_body(request))
            _note_request(exchange, body)
            _check_model(body["model"], entry.request)
            entry.admit()
            completion = await entry.patience.persist(lambda: self._attempt(exchange, body, entry), exchange)
            exchange.status, exchange.error, exchange.fault = 200, "", ""
            return await _deliver(request, exchange, completion)

    async def _attempt(self, exchange: Exchange, body: dict[str, Any], entry: LeaseEntry) -> dict[str, Any]:
        lease, call_ids = entry.request, entry.call_ids
        served = lease.role, lease.model
        try:
            async with entry.patience.turn(self._slots.get(served), exchange):
                exchange.usage += Usage(requests=1)
                completion = await self._upstreams[served].complete(call_ids.inward(body), lease)
            exchange.usage += read_usage(completion.get("usage"))
            completion = call_ids.outward(completion)
            exchange.reply = read_reply(completion)
        except WireError:
            raise
        except Exception as error:
            # A defect of an upstream and a malformed completion are the provider's failure, never the agent's.
            raise UpstreamError(502, f"unusable answer: {type(error).__name__}: {error}", "bad_upstream") from error
        return completion

    async def _models(self, request: web.Request) -> web.Response:
        lease = self._book.by_token(bearer_token(request)).request
        return web.json_response({"object": "list", "data": [_model_card(lease.model)]})

    async def _model(self, request: web.Request) -> web.Response:
        lease = self._book.by_token(bearer_token(request)).request
        _check_model(request.match_info["model"], lease)
        return web.json_response(_model_card(lease.model))


async def _read_body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise WireError(413, str(error.text), "request_too_large") from error


def _note_request(exchange: Exchange, body: dict[str, Any]) -> None:
    exchange.model = body["model"]
    exchange.messages = list(body["messages"])
    exchange.tools = tool_names(body)
    exchange.parameters = {key: body[key] for key in body if key not in ("model", "messages", "tools")}


def _check_model(model: str, lease: LeaseRequest) -> None:
    if model != lease.model:
        raise WireError(404, f"the lease is for the model {lease.model!r}, not for {model!r}", "model_not_found")


def _model_card(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": 0, "owned_by": "dataclaw"}


async def _deliver(request: web.Request, exchange: Exchange, completion: dict[str, Any]) -> web.StreamResponse:
    """Send the completion, and mark the exchange complete once its last byte is out; ConnectionError if cut."""
    response = web.StreamResponse()
    pieces: Iterable[bytes]
    if exchange.parameters.get("stream"):
        options = exchange.parameters.get("stream_options")
        wants_usage = isinstance(options, dict) and bool(options.get("include_usage"))
        response.content_type = "text/event-stream"
        response.headers["Cache-Control"] = "no-store"
        pieces = event_stream(completion, include_usage=wants_usage)
    else:
        whole = json.dumps(completion).encode()
        response.content_type = "application/json"
        response.content_length = len(whole)
        pieces = [whole]
    await response.prepare(request)
    *pieces, last = pieces
    for piece in pieces:
        await response.write(piece)
    await response.write_eof(last)  # which, unlike `write`, always waits for the socket
    if request.transport is None or request.transport.is_closing():
        raise ConnectionResetError("the client hung up while the end was being sent")
    exchange.complete = exchange.reply is not None and bool(exchange.reply.finish_reason)
    return response
