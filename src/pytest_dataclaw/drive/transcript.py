"""What the `react` agent leaves behind: `chat.jsonl` rows in the shape of OpenClaw's transcripts, and a log."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.drive.chat import plain_json

if TYPE_CHECKING:
    from pytest_dataclaw.drive.chat import Reply
    from pytest_dataclaw.model.trajectory import ToolCall

_STOP_REASONS = {"stop": "stop", "tool_calls": "toolUse", "length": "length"}


class Transcript:
    """The messages of a conversation as rows, and lines for a person beside them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._lines: list[str] = []

    @property
    def log(self) -> str:
        """All notes, one line each."""
        return "".join(f"{line}\n" for line in self._lines)

    def note(self, text: str) -> None:
        """Add a line to the log; line breaks within it are escaped."""
        self._lines.append(f"{_now()} {text}".replace("\r", "\\r").replace("\n", "\\n"))

    def user(self, text: str) -> None:
        """Add the prompt."""
        self._add({"role": "user", "content": [_text(text)]})

    def assistant(self, reply: Reply) -> None:
        """Add a reply: its text, then its tool calls. Arguments are the parsed JSON, or the raw text if broken."""
        calls = [
            {"type": "toolCall", "id": call.call_id, "name": call.name, "arguments": _arguments(call)}
            for call in reply.calls
        ]
        self._add(
            {
                "role": "assistant",
                "content": [*([_text(reply.text)] if reply.text else []), *calls],
                "stopReason": "toolUse" if calls else _STOP_REASONS.get(reply.finish_reason, reply.finish_reason),
                "usage": _usage(reply.usage),
            }
        )

    def tool_result(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        """Add what a tool call was answered."""
        self._add(
            {
                "role": "toolResult",
                "toolCallId": call.call_id,
                "toolName": call.name,
                "content": [_text(text)],
                "isError": is_error,
            }
        )

    def _add(self, message: dict[str, Any]) -> None:
        self.rows.append({"type": "message", "timestamp": _now(), "message": message})


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _arguments(call: ToolCall) -> Any:
    try:
        return plain_json(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments


def _usage(usage: dict[str, Any]) -> dict[str, int]:
    """Return tokens under OpenClaw's names, whose `input` leaves out what was read from a cache."""
    details = usage.get("prompt_tokens_details")
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    cached = _count(details, "cached_tokens")
    return {
        "input": prompt - cached,
        "output": completion,
        "cacheRead": cached,
        "cacheWrite": 0,
        "totalTokens": prompt + completion,
    }


def _count(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0
