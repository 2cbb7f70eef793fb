"""How real endpoints say that they failed, in the forms found in the field, as one kind of error."""

from __future__ import annotations

import json
import math
import time
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.proxy.upstreams.base import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MESSAGE_CHARS = 2000
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
    "overloaded_error": 503,
}
"""For errors that come after status 200 and tell their kind by a word alone."""


class HttpUpstreamError(UpstreamError):
    """A failure of a real endpoint."""

    def __init__(self, status: int, message: str, code: str, *, retry_after: float | None = None) -> None:
        super().__init__(status, message[:_MESSAGE_CHARS], code)
        self.retry_after = retry_after


def malformed(what: str) -> HttpUpstreamError:
    """Return the error for a reply that is not what the protocol promises."""
    return HttpUpstreamError(502, f"malformed response: {what}", "malformed_response")


def failure(payload: object, *, status: int | None = None, retry_after: float | None = None) -> HttpUpstreamError:
    """Return what an error body says; without an HTTP status, by the status it names itself, else 502.

    Knows OpenAI's and OpenRouter's shape, whose `metadata.raw` is the word of the provider behind it; a bare message;
    FastAPI's `detail`; and an error inside a list, as from Gemini.
    """
    error = _error_object(payload)
    message = _text(error.get("message") or error.get("detail")) or "no reason given"
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):
        message = f"{message}: {_text(metadata['raw'])}"
    found = status or _named_status(error)
    words = (error.get(name) for name in ("code", "type"))
    code = next((word for word in words if isinstance(word, str) and word), f"http_{found}")
    return HttpUpstreamError(found, message, code, retry_after=retry_after)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the wait a response asks for: `retry-after-ms`, or `Retry-After` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("Retry-After", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    date = parsedate_tz(headers.get("Retry-After", ""))
    return max(0.0, mktime_tz(date) - time.time()) if date is not None else None


def _error_object(payload: object) -> dict[str, Any]:
    error = payload[0] if isinstance(payload, list) and payload else payload
    if isinstance(error, dict):
        error = error.get("error") or error
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, dict) else {}


def _named_status(error: dict[str, Any]) -> int:
    for name in ("code", "status", "type"):
        word = error.get(name)
        if str(word).isdigit() and 400 <= int(str(word)) < 600:
            return int(str(word))
        if word in _STATUS_OF_CODE:
            return _STATUS_OF_CODE[word]
    return 502


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
