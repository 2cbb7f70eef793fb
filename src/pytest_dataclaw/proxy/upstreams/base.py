"""What an upstream is: it answers one chat-completions request, whole; the proxy streams it where that was asked."""

from __future__ import annotations

import json
import secrets
import time
from typing import TYPE_CHECKING, Any, Protocol

from pytest_dataclaw.proxy.wire import Fault, WireError

if TYPE_CHECKING:
    from pytest_dataclaw.proxy.base import LeaseRequest


class UpstreamError(WireError):
    """An exchange that failed on the provider's side; `status` is the provider's HTTP status.

    `retry_after` is the wait that the provider asked for in seconds, None where it asked for none.
    """

    fault: Fault = "provider"
    retry_after: float | None = None


class Upstream(Protocol):
    """Answers requests for a model; called on the proxy's event loop, which it must not block."""

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        """Return a `chat.completion` object with one choice; raise UpstreamError where there is none to be had."""

    async def aclose(self) -> None:
        """Let go of connections. Idempotent."""


def completion(request: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """Return a `chat.completion` object for an assistant message of a built-in model.

    Its usage is an estimate, a token for every four characters (rounded up) of the serialised messages; cost 0.
    """
    prompt, reply = _estimate(request["messages"]), _estimate(message)
    usage = {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply, "cost": 0.0}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": usage,
    }


def _estimate(data: object) -> int:
    return -(-len(json.dumps(data, ensure_ascii=False)) // 4)
