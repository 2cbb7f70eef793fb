"""One turn over the gateway's WebSocket: the job for `turn.mjs`, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.drive.chat import plain_json
from pytest_dataclaw.drive.openclaw.config import OWN_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from pytest_dataclaw.drive.openclaw.config import Plan

SESSION = "chat"
_HANDSHAKE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class TurnReport:
    """How a turn ended by the gateway's account.

    `status`: `final` (the gateway had its say), `refused`, `closed` (the gateway went away during the turn),
    `unreachable`, `timed_out` (the deadline stopped the client), `lost` (the client was killed or its report is gone).
    `text` is what the gateway would have sent to a user: answer, or an error's text. `took` is in seconds.
    `memory_ran_out` says whether a turn ended early as client or gateway was killed for want of memory.
    """

    status: str
    took: float = 0.0
    error: str = ""
    stop_reason: str = ""
    aborted: bool = False
    error_kind: str = ""
    text: str = ""
    memory_ran_out: bool = False


def job(plan: Plan, message: str) -> dict[str, Any]:
    """Return the job; without an agent's id among the parameters, the session's id is its transcript's name."""
    params = {"message": message, "sessionId": SESSION, "timeout": OWN_TIMEOUT_SECONDS}
    return {"port": plan.port, "token": plan.gateway_token, "wait": _HANDSHAKE_SECONDS, "params": params}


def read_report(data: bytes | None) -> TurnReport:
    """Read what the client printed; anything else than a report of its shape is `lost`."""
    try:
        report = plain_json((data or b"").decode())
    except (ValueError, RecursionError) as error:
        return TurnReport("lost", error=f"no report of the turn: {error}")
    status = _text(report, "status")
    if status not in ("final", "refused", "closed", "unreachable"):
        return TurnReport("lost", error="the report of the turn has no known status")
    result = _object(_object(report, "payload"), "result")
    meta = _object(result, "meta")
    payloads = result.get("payloads")
    texts = [_text(payload, "text") for payload in payloads] if isinstance(payloads, list) else []
    took = report.get("took")
    return TurnReport(
        status=status,
        took=float(took) if isinstance(took, (int, float)) else 0.0,
        error=_error(_object(report, "error")),
        stop_reason=_text(meta, "stopReason"),
        aborted=meta.get("aborted") is True,
        error_kind=_text(_object(meta, "error"), "kind"),
        text="\n".join(text for text in texts if text),
    )


def _error(error: dict[str, Any]) -> str:
    """Return the message of an error; a closed connection has a code and mostly no reason."""
    code = error.get("code")
    return _text(error, "message") or _text(error, "reason") or (f"WebSocket code {code}" if code is not None else "")


def _object(parent: Any, key: str) -> dict[str, Any]:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _text(parent: Any, key: str) -> str:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, str) else ""
