"""Why an OpenClaw turn ended, by what gateway and transcript say. OpenClaw itself reports every failure as success."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.drive.chat import Ending
from pytest_dataclaw.drive.openclaw.transcript import Said, last_said
from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.proxy.base import is_context_overflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.drive.openclaw.turn import TurnReport

_SILENCE = "NO_REPLY"
"""What OpenClaw tells the model to say when it has nothing to say."""
_RATE_LIMIT = re.compile(r"^429\b|rate.?limit", re.IGNORECASE)
_FILTERED = re.compile(r"finish_reason: content_filter", re.IGNORECASE)
_EXCERPT_CHARS = 500


def classify(turn: TurnReport, rows: Sequence[dict[str, Any]] | None, *, time_is_up: bool) -> Ending:
    """Return how the turn ended; SandboxError where it never began.

    `rows` is the transcript, None where there is none. The wire may know better (see trial.py): a stream that was cut
    looks like an answer here.
    """
    said = last_said(rows or ())
    if turn.status == "timed_out" or (time_is_up and (turn.status != "final" or _was_aborted(turn, said))):
        return Ending(EndReason.AGENT_TIMEOUT, "time was up before the agent was done")
    if turn.status == "final":
        return _final(turn, said)
    if turn.status == "unreachable" or (turn.status == "refused" and said is None):
        raise SandboxError(f"OpenClaw's gateway did not take the turn: {turn.error or turn.status}")
    if turn.memory_ran_out:
        return Ending(EndReason.OOM, "memory ran out in the sandbox, and OpenClaw was killed")
    return Ending(
        EndReason.AGENT_CRASH, f"OpenClaw ended during the turn ({turn.status}): {turn.error}"[:_EXCERPT_CHARS]
    )


def _was_aborted(turn: TurnReport, said: Said | None) -> bool:
    return turn.aborted or (said is not None and said.stop_reason == "aborted")


def _final(turn: TurnReport, said: Said | None) -> Ending:
    error = said.error if said is not None else ""
    if turn.error_kind == "context_overflow" or is_context_overflow(error):
        return Ending(EndReason.CONTEXT_OVERFLOW, error[:_EXCERPT_CHARS])
    if _was_aborted(turn, said):
        return Ending(EndReason.EARLY_STOP, "the turn was aborted from inside before its time was up")
    stop_reason = turn.stop_reason or (said.stop_reason if said is not None else "")
    if stop_reason == "error":
        return _failed(error or turn.text)
    if said is None and not stop_reason:
        raise SandboxError("OpenClaw ended the turn without a word of it in its transcript")
    text = said.text if said is not None else turn.text
    if text.strip() in ("", _SILENCE):
        return Ending(EndReason.EARLY_STOP, f"the last reply has no text (stop reason {stop_reason or 'not given'})")
    if stop_reason in ("stop", "length"):
        return Ending(EndReason.ANSWERED, "" if stop_reason == "stop" else "the answer was cut at the length limit")
    return Ending(EndReason.EARLY_STOP, f"the turn ended at a reply with stop reason {stop_reason}")


def _failed(error: str) -> Ending:
    detail = error[:_EXCERPT_CHARS]
    if _FILTERED.search(error):
        # The model was asked and its provider would not let it speak: another try would end the same way.
        return Ending(EndReason.EARLY_STOP, detail)
    return Ending(EndReason.RATE_LIMITED if _RATE_LIMIT.search(error) else EndReason.PROVIDER_ERROR, detail)
