"""How a scripted reply looks on the wire: one chat completion, or the server-sent events of a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.testing.scenario import Answer, Empty, Refuse, ToolCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.model.trajectory import Usage
    from pytest_dataclaw.testing.scenario import Reply, Request

DONE = b"data: [DONE]\n\n"


def completion(request: Request, reply: Reply) -> dict[str, Any]:
    """Return the reply as a `chat.completion` object."""
    choice = {"index": 0, "message": _message(request, reply), "finish_reason": _finish_reason(reply)}
    whole = {**_head(request), "object": "chat.completion", "choices": [choice]}
    return whole if reply.usage is None else {**whole, "usage": wire_usage(reply.usage)}


def reply_events(request: Request, reply: Reply) -> Iterator[bytes]:
    """Yield the reply as events, up to and including the one with the finish reason."""
    message, size = _message(request, reply), reply.chunk_size
    texts = {name: message.pop(name, None) or "" for name in ("reasoning", "content")}
    calls = message.pop("tool_calls", ())
    yield _chunk(request, {**message, "content": ""})
    for name, text in texts.items():
        for piece in _pieces(text, size):
            yield _chunk(request, {name: piece})
    for index, call in enumerate(calls):
        opening = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
        yield _chunk(request, {"tool_calls": [opening]})
        for piece in _pieces(call["function"]["arguments"], size):
            yield _chunk(request, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield _chunk(request, {}, _finish_reason(reply))


def usage_event(request: Request, usage: Usage) -> bytes:
    """Return the event that reports the usage of a stream, its last one before `[DONE]`."""
    return event({**_head(request), "object": "chat.completion.chunk", "choices": [], "usage": wire_usage(usage)})


def event(data: Any) -> bytes:
    """Return JSON data as a server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def wire_usage(usage: Usage) -> dict[str, Any]:
    """Return usage as OpenAI and OpenRouter report it; details only where there are any."""
    prompt = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    wire: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    if any(prompt.values()):
        wire["prompt_tokens_details"] = prompt
    if usage.reasoning_tokens:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    if usage.cost_usd is not None:
        wire["cost"] = usage.cost_usd
    return wire


def _head(request: Request) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.number}", "created": 1_700_000_000, "model": request.model}


def _chunk(request: Request, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return event({**_head(request), "object": "chat.completion.chunk", "choices": [choice]})


def _message(request: Request, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, **reply.fields}
    if reply.reasoning:
        message["reasoning"] = reply.reasoning
    if isinstance(reply, Answer):
        message["content"] = reply.text
    elif isinstance(reply, ToolCalls):
        message["content"] = reply.text or None
        message["tool_calls"] = _tool_calls(request, reply)
    elif isinstance(reply, Refuse):
        message["refusal"] = reply.text
    return message


def _tool_calls(request: Request, reply: ToolCalls) -> list[dict[str, Any]]:
    calls = []
    for index, (name, arguments) in enumerate(reply.calls, start=1):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        call_id = f"call{request.number:03}{index:02}"
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": text}})
    return calls


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason if isinstance(reply, (Answer, ToolCalls, Empty)) else "stop"


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))
