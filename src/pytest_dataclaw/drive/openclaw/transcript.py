"""OpenClaw's transcript: one JSON object a line, written by a process that the agent can reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.drive.chat import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_EXCERPT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Said:
    """An assistant row: its text (all parts joined), why it stopped, and the error if it failed."""

    text: str
    stop_reason: str
    error: str


def read_rows(data: bytes) -> tuple[dict[str, Any], ...]:
    """Return the rows of a transcript; a line that is no JSON object becomes a row of type `unreadable`."""
    lines = enumerate(data.split(b"\n"), start=1)
    return tuple(_row(number, line) for number, line in lines if line.strip())


def last_said(rows: Iterable[dict[str, Any]]) -> Said | None:
    """Return the last assistant row; None where there is none."""
    last: dict[str, Any] | None = None
    for row in rows:
        message = row.get("message")
        if row.get("type") == "message" and isinstance(message, dict) and message.get("role") == "assistant":
            last = message
    if last is None:
        return None
    return Said(_content_text(last.get("content")), _string(last.get("stopReason")), _string(last.get("errorMessage")))


def _row(number: int, line: bytes) -> dict[str, Any]:
    text = line.decode("utf-8", "replace")
    try:
        row = plain_json(text)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict):
        return row
    return {"type": "unreadable", "line": number, "bytes": len(line), "text": text[:_EXCERPT_CHARS]}


def _content_text(content: Any) -> str:
    if not isinstance(content, list):
        return _string(content)
    parts = (part for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(_string(part.get("text")) for part in parts)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
