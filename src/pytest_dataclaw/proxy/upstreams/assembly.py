"""Puts a provider's reply together: server-sent events into chunks, chunks into one chat completion, and checks it."""

from __future__ import annotations

import json
import secrets
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.proxy.upstreams.failure import HttpUpstreamError, failure, malformed

if TYPE_CHECKING:
    from collections.abc import Iterable

_DONE = "[DONE]"
_FIELDS = (b"data", b"event", b"id", b"retry")
_WHOLE = ("role", "id", "type", "name", "finish_reason", "native_finish_reason", "stop_reason")
"""Texts that a provider sends at once, and some repeat with every fragment: the first one counts."""


class EventDecoder:
    """Splits a byte stream into the data of its server-sent events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of the events that end in this piece; HttpUpstreamError where it is no event stream."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        ended = []
        for line in lines:
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name in _FIELDS:
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
            elif name:
                raise malformed(f"not an event stream: {line[:80]!r}")
            elif line.strip() == b"" and self._data:
                ended.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data.clear()
        return ended


class Assembly:
    """Gathers the chunks of a stream; only the first choice is kept, which is the one that agents use."""

    def __init__(self) -> None:
        self._head = _Gathered()
        self._choice = _Gathered()
        self._message = _Gathered()
        self._calls: list[_Gathered] = []
        self._call_at: dict[int, tuple[str, _Gathered]] = {}
        self._usage: object = None

    def take(self, events: Iterable[str]) -> bool:
        """Take in the data of some events, and tell whether `[DONE]` was among them."""
        for data in events:
            if data.strip() == _DONE:
                return True
            self.add(data)
        return False

    def add(self, data: str) -> None:
        """Take in a chunk; HttpUpstreamError where it is malformed or an error."""
        chunk = parse(data)
        try:
            self._add(chunk)
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            raise malformed(f"chunk {data[:200]}: {error!r}") from error

    def completion(self) -> dict[str, Any]:
        """Return the whole; HttpUpstreamError `stream_cut` where no finish reason has come."""
        try:
            choice = self._choice.joined()
            message = {"role": "assistant", "content": None, **self._message.joined()}
            if self._calls:
                message["tool_calls"] = [call.joined() for call in self._calls]
            head = self._head.joined()
        except TypeError as error:
            raise malformed(str(error)) from error
        if not choice.get("finish_reason") and not choice.get("error"):
            raise HttpUpstreamError(502, "the stream ended before the reply did", "stream_cut")
        whole = {**head, "object": "chat.completion", "choices": [{**choice, "index": 0, "message": message}]}
        return checked(whole if self._usage is None else {**whole, "usage": self._usage})

    def _add(self, chunk: dict[str, Any]) -> None:
        choices = [choice for choice in chunk.pop("choices", None) or () if not choice.get("index")]
        # The last report counts: some providers send a running one with every chunk, Moonshot sends it in the choice.
        reports = [chunk.pop("usage", None), *(choice.pop("usage", None) for choice in choices)]
        self._usage = next((report for report in reports if report is not None), self._usage)
        self._head.add_once(chunk)
        for choice in choices:
            delta = dict(choice.pop("delta", None) or {})
            for fragment in delta.pop("tool_calls", None) or ():
                self._call_of(fragment).add(fragment)
            self._message.add(delta)
            self._choice.add(choice)

    def _call_of(self, fragment: dict[str, Any]) -> _Gathered:
        """Find the call that a fragment belongs to.

        Its index says, but Gemini numbers parallel calls alike and leaves the index out, and some servers make up a
        new id for every fragment: a new id that comes with a name opens a new call.
        """
        index, call_id = fragment.pop("index", None) or 0, fragment.get("id") or ""
        known = self._call_at.get(index)
        named = bool((fragment.get("function") or {}).get("name"))
        if known is None or (named and call_id and call_id != known[0]):
            known = self._call_at[index] = (call_id, _Gathered())
            self._calls.append(known[1])
        return known[1]


class _Gathered:
    """The values that each key of an object got over a stream, in order; joined once, so that long texts stay cheap."""

    def __init__(self) -> None:
        self._values: dict[str, list[Any]] = {}

    def add(self, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            values = self._values.setdefault(key, [])
            if value is not None:
                values.append(value)

    def add_once(self, head: dict[str, Any]) -> None:
        """Take the keys that have no value yet."""
        self.add({key: value for key, value in head.items() if not self._values.get(key)})

    def joined(self) -> dict[str, Any]:
        return {key: _join(key, values) for key, values in self._values.items()}


def _join(key: str, values: list[Any]) -> Any:
    """Put texts and lists end to end, objects key by key; of numbers and the like the last one counts."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float, bool}:
        return values[-1] if values else None
    if len(kinds) > 1:
        raise TypeError(f"{key} changes its type within the stream: {sorted(kind.__name__ for kind in kinds)}")
    if kinds == {str}:
        return next(filter(None, values), "") if key in _WHOLE else "".join(values)
    if kinds == {list}:
        return list(chain.from_iterable(values))
    whole = _Gathered()
    for value in values:
        whole.add(value)
    return whole.joined()


def parse(data: str | bytes) -> dict[str, Any]:
    """Return a JSON object; HttpUpstreamError where it is none, or one that says what went wrong."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise malformed(f"not JSON: {data[:200]!r}") from error
    if not isinstance(payload, dict):
        raise malformed(f"not an object: {data[:200]!r}")
    if payload.get("error"):
        raise failure(payload)
    return payload


def checked(completion: dict[str, Any]) -> dict[str, Any]:
    """Return a completion with every tool call complete; HttpUpstreamError where it is no completion, or failed."""
    try:
        choice = completion["choices"][0]
        message = choice["message"]
        if choice.get("error") or choice.get("finish_reason") == "error":
            raise failure(choice.get("error"))
        if not choice.get("finish_reason"):
            raise malformed("the reply has no finish reason")
        if message.get("tool_calls"):
            message["tool_calls"] = [_complete_call(call) for call in message["tool_calls"]]
    except (LookupError, TypeError, AttributeError) as error:
        raise malformed(f"not a chat completion: {error!r}: {json.dumps(completion)[:200]}") from error
    return completion


def _complete_call(call: dict[str, Any]) -> dict[str, Any]:
    """Fill in what some providers leave out of a call and no agent can do without: id, type, empty arguments."""
    function = call["function"]
    if not isinstance(function["name"], str) or not function["name"]:
        raise TypeError("a tool call without a name")
    arguments = function.get("arguments") or ""
    return {
        **call,
        "id": call.get("id") or f"call{secrets.token_hex(8)}",
        "type": call.get("type") or "function",
        "function": {
            **function,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
        },
    }
