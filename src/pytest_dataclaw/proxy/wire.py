"""The OpenAI chat-completions wire format: reading requests and replies, writing errors and event streams."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_dataclaw.model.trajectory import ToolCall
from pytest_dataclaw.proxy.base import LIMIT_REACHED

if TYPE_CHECKING:
    from collections.abc import Iterator

Fault: TypeAlias = Literal["", "client", "provider", "closed", "limit"]
"""Whose doing a failed exchange is: the client's (bad request, hung up), the provider's, or the lease was closed.

`limit`: the request was refused because the trial has used up what it may use."""


class WireError(Exception):
    """A request that is answered with an error in OpenAI's shape. `status` is HTTP's, `code` a short identifier."""

    fault: Fault = "client"

    def __init__(self, status: int, message: str, code: str) -> None:
        self.status = status
        self.message = message
        self.code = code
        super().__init__(message)

    @property
    def final_status(self) -> int:
        """The status to answer with: 424 in place of one that clients take as an invitation to retry."""
        return 424 if self.status in (408, 409, 429) or self.status >= 500 else self.status

    @property
    def body(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        kind = "upstream_error" if self.fault == "provider" else "invalid_request_error"
        return {"error": {"message": self.message, "type": kind, "code": self.code}}


class LimitError(WireError):
    """A request beyond what the trial may use; it was not sent."""

    fault: Fault = "limit"

    def __init__(self, message: str) -> None:
        super().__init__(403, message, LIMIT_REACHED)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered; `finish_reason` is "" where the provider gave none."""

    text: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""


MAX_DEPTH = 100
"""How deep a request may nest: what passes here can be compared and written without running out of stack."""


def message_text(content: object) -> str:
    """Return the text of a message's content: a string, a list of parts (their texts joined), or nothing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def read_request(raw: bytes) -> dict[str, Any]:
    """Return a chat-completions request with a model, messages and well-formed tools; else WireError 400."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise WireError(400, f"the body is not JSON: {error}", "invalid_json") from error
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise WireError(400, "the body must be an object with a string `model`", "invalid_request")
    if _nests_deeper(body, MAX_DEPTH):
        raise WireError(400, f"the body nests deeper than {MAX_DEPTH} levels", "invalid_request")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise WireError(400, "`messages` must be a list that is not empty", "invalid_request")
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise WireError(400, "every message must be an object with a string `role`", "invalid_request")
    try:
        tool_names(body)
    except (KeyError, TypeError) as error:
        raise WireError(
            400, "every tool must be an object with a function that has a name", "invalid_request"
        ) from error
    return body


def _nests_deeper(body: dict[str, Any], depth: int) -> bool:
    level: list[Any] = [body]
    for _ in range(depth):
        containers = [node.values() if isinstance(node, dict) else node for node in level]
        level = [child for children in containers for child in children if isinstance(child, (dict, list))]
    return bool(level)


def tool_names(body: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the tools a request offers, in its order."""
    return tuple(tool["function"]["name"] for tool in body.get("tools") or ())


def read_reply(completion: dict[str, Any]) -> Reply:
    """Return the first choice of a completion; KeyError, IndexError or TypeError where it is malformed."""
    choice = completion["choices"][0]
    message = choice["message"]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    return Reply(
        text=message_text(message.get("content")),
        reasoning=message_text(message.get("reasoning") or message.get("reasoning_content")),
        tool_calls=tuple(ToolCall(call_id, function["name"], function["arguments"]) for call_id, function in calls),
        finish_reason=choice.get("finish_reason") or "",
    )


def event_stream(completion: dict[str, Any], *, include_usage: bool) -> Iterator[bytes]:
    """Yield a whole completion as the server-sent events that a streaming provider would have sent, `[DONE]` last."""
    known = {key: value for key, value in completion.items() if key in ("id", "created", "model")}
    head = {**known, "object": "chat.completion.chunk"}
    choice = completion["choices"][0]
    for delta in _deltas(choice["message"]):
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": completion.get("usage")})
    yield b"data: [DONE]\n\n"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    # Encrypted reasoning comes last: clients match it to tool calls that they have seen.
    extra = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls", "reasoning_details")}
    yield {"role": "assistant", **extra}
    if message.get("content"):
        yield {"content": message_text(message["content"])}
    for index, call in enumerate(message.get("tool_calls") or ()):
        opening = {"type": "function", **call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [opening]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": call["function"]["arguments"]}}]}
    if message.get("reasoning_details"):
        yield {"reasoning_details": message["reasoning_details"]}


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
