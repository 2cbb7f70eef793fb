"""Why a turn ended: every way that was seen of the real OpenClaw, and some that an agent could bring about."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_dataclaw.drive.openclaw.classify import classify
from pytest_dataclaw.drive.openclaw.turn import TurnReport
from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.result import EndReason

OVERFLOW = "400 This model's maximum context length is 16000 tokens. However, your messages resulted in 20000 tokens."


def row(text: str, stop_reason: str, error: str = "") -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}] if text else [],
        "stopReason": stop_reason,
    }
    return {"type": "message", "message": {**message, "errorMessage": error} if error else message}


LOOK = row("Let me look.", "toolUse")


@pytest.mark.parametrize(
    ("stop_reason", "rows", "expected"),
    [
        ("stop", [LOOK, row("0.92", "stop")], EndReason.ANSWERED),
        ("length", [row("The answer is trunc", "length")], EndReason.ANSWERED),
        ("length", [row("", "length")], EndReason.EARLY_STOP),
        ("stop", [LOOK, row("", "stop")], EndReason.EARLY_STOP),
        ("stop", [row(" \n", "stop")], EndReason.EARLY_STOP),
        ("stop", [row("NO_REPLY", "stop")], EndReason.EARLY_STOP),
        ("toolUse", [LOOK], EndReason.EARLY_STOP),
        ("error", [row("", "error", "Provider finish_reason: content_filter")], EndReason.EARLY_STOP),
        ("error", [row("", "error", "401 Incorrect API key provided")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "403 forbidden")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "400 bad request")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "404 no such model")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "402 insufficient credits")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "500 The server had an error")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "Connection error.")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "Unterminated string in JSON at position 4")], EndReason.PROVIDER_ERROR),
        ("error", [row("", "error", "429 Rate limit reached for requests")], EndReason.RATE_LIMITED),
        ("error", [LOOK, row("", "error", "401 Incorrect API key provided")], EndReason.PROVIDER_ERROR),
        ("", [row("", "error", OVERFLOW)], EndReason.CONTEXT_OVERFLOW),
        ("error", [LOOK, row("", "error", OVERFLOW)], EndReason.CONTEXT_OVERFLOW),
    ],
)
def test_final_turn(stop_reason: str, rows: list[dict[str, Any]], expected: EndReason) -> None:
    assert classify(TurnReport("final", stop_reason=stop_reason), rows, time_is_up=False).reason is expected


def test_an_error_that_was_recovered_from_is_none() -> None:
    rows = [row("", "error", "500 once"), row("0.92", "stop")]
    assert classify(TurnReport("final", stop_reason="stop"), rows, time_is_up=False).reason is EndReason.ANSWERED


def test_answer_in_time_counts_even_if_time_is_up_by_now() -> None:
    ending = classify(TurnReport("final", stop_reason="stop"), [row("0.92", "stop")], time_is_up=True)
    assert ending.reason is EndReason.ANSWERED


@pytest.mark.parametrize("rows", [None, [LOOK], [row("", "aborted", "Request was aborted.")]])
def test_client_stopped_by_the_deadline(rows: list[dict[str, Any]] | None) -> None:
    assert classify(TurnReport("timed_out"), rows, time_is_up=True).reason is EndReason.AGENT_TIMEOUT


@pytest.mark.parametrize("status", ["closed", "lost", "unreachable"])
def test_whatever_breaks_when_time_is_up_is_a_timeout(status: str) -> None:
    assert classify(TurnReport(status), None, time_is_up=True).reason is EndReason.AGENT_TIMEOUT


def test_aborted_turn() -> None:
    rows = [row("", "aborted", "Request was aborted.")]
    aborted = TurnReport("final", aborted=True)
    assert classify(aborted, rows, time_is_up=True).reason is EndReason.AGENT_TIMEOUT
    assert classify(aborted, rows, time_is_up=False).reason is EndReason.EARLY_STOP


@pytest.mark.parametrize("status", ["closed", "lost"])
def test_openclaw_gone_during_the_turn_is_the_agents_doing(status: str) -> None:
    ending = classify(TurnReport(status, error="1006"), [LOOK], time_is_up=False)
    assert ending.reason is EndReason.AGENT_CRASH
    assert "1006" in ending.detail


@pytest.mark.parametrize("status", ["closed", "lost"])
def test_openclaw_killed_as_memory_ran_out(status: str) -> None:
    turn = TurnReport(status, error="1006", memory_ran_out=True)
    assert classify(turn, [LOOK], time_is_up=False).reason is EndReason.OOM
    assert classify(turn, [LOOK], time_is_up=True).reason is EndReason.AGENT_TIMEOUT


def test_turn_that_failed_in_the_gateway_once_the_model_had_spoken() -> None:
    ending = classify(TurnReport("refused", error="ENOSPC: no space left"), [LOOK], time_is_up=False)
    assert ending.reason is EndReason.AGENT_CRASH
    assert "ENOSPC" in ending.detail


@pytest.mark.parametrize(
    "turn",
    [
        TurnReport("refused", error="unknown agent"),
        TurnReport("unreachable", error="no gateway within 60 s"),
        TurnReport("final"),
    ],
)
def test_turn_that_never_began_is_infrastructure(turn: TurnReport) -> None:
    with pytest.raises(SandboxError):
        classify(turn, None, time_is_up=False)


def test_agent_that_removed_its_transcript_is_judged_by_the_gateways_word() -> None:
    answered = TurnReport("final", stop_reason="stop", text="0.92")
    assert classify(answered, None, time_is_up=False).reason is EndReason.ANSWERED
    silent = TurnReport("final", stop_reason="stop")
    assert classify(silent, None, time_is_up=False).reason is EndReason.EARLY_STOP
