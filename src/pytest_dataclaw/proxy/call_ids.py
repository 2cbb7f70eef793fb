"""Tool-call ids of one lease: ours towards the agent, the provider's own towards the provider.

Agents rewrite ids that they do not like (OpenClaw keeps letters and digits, 40 at most, 9 for some models), and some
models use the same ids in every turn. The trajectory is told by ids, so the agent is given ids that no agent touches.
"""

from __future__ import annotations

from typing import Any


class CallIds:
    """Swaps ids both ways; unique within the lease, nine letters and digits."""

    def __init__(self) -> None:
        self._originals: dict[str, str] = {}

    def outward(self, completion: dict[str, Any]) -> dict[str, Any]:
        """Return the completion with ids of ours; KeyError, IndexError or TypeError where it is malformed."""
        choice = completion["choices"][0]
        calls = choice["message"].get("tool_calls")
        if not calls:
            return completion
        message = {**choice["message"], "tool_calls": [{**call, "id": self._new(call["id"])} for call in calls]}
        return {**completion, "choices": [{**choice, "message": message}, *completion["choices"][1:]]}

    def inward(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the provider's ids; ids that we never gave out stay as they are."""
        return {**body, "messages": [self._restored(message) for message in body["messages"]]}

    def _new(self, original: str) -> str:
        own = f"c{len(self._originals) + 1:08d}"
        self._originals[own] = original
        return own

    def _original(self, call_id: object) -> object:
        return self._originals.get(call_id, call_id) if isinstance(call_id, str) else call_id

    def _restored(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["role"] == "tool" and "tool_call_id" in message:
            return {**message, "tool_call_id": self._original(message["tool_call_id"])}
        calls = message.get("tool_calls")
        if message["role"] == "assistant" and isinstance(calls, list):
            restored = [{**c, "id": self._original(c.get("id"))} if isinstance(c, dict) else c for c in calls]
            return {**message, "tool_calls": restored}
        return message
