"""A model played by a function: how a deterministic judge speaks the protocol of an LLM."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.proxy.upstreams.base import UpstreamError, completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_dataclaw.proxy.base import LeaseRequest


class PlayedUpstream:
    """Answers with what `reply` makes of the messages; its ValueError is answered with status 400."""

    def __init__(self, reply: Callable[[list[dict[str, Any]]], str]) -> None:
        self._reply = reply

    async def aclose(self) -> None:
        """Nothing is held."""

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        """Return the reply, which is computed in a thread of its own."""
        try:
            text = await asyncio.to_thread(self._reply, request["messages"])
        except ValueError as error:
            raise UpstreamError(400, str(error), "cannot_play") from error
        return completion(request, {"content": text})
