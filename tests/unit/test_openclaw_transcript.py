"""OpenClaw's transcript and the report of its turn, whole and damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_dataclaw.drive.openclaw.transcript import Said, last_said, read_rows
from pytest_dataclaw.drive.openclaw.turn import TurnReport, read_report


def assistant(*texts: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "message", "message": {"role": "assistant", "content": content, **fields}}


def test_rows_in_order_and_blank_lines_skipped() -> None:
    assert read_rows(b'{"type":"session"}\n\n{"type":"message"}\n') == ({"type": "session"}, {"type": "message"})


@pytest.mark.parametrize("line", [b'{"type":"mess', b"\xff\xfe", b"[1]", b"[" * 100_000])
def test_line_that_is_no_object_is_kept_as_unreadable(line: bytes) -> None:
    first, second, third = read_rows(b'{"a":1}\n' + line + b'\n{"b":2}')
    assert (first, third) == ({"a": 1}, {"b": 2})
    assert (second["type"], second["line"], second["bytes"]) == ("unreadable", 2, len(line))
    assert len(second["text"]) <= 2000


def test_rows_can_be_written_as_utf8() -> None:
    (row,) = read_rows(b'{"text":"a\\ud800b"}')
    assert json.dumps(row, ensure_ascii=False).encode() == b'{"text": "a?b"}'


def test_last_said_is_the_last_assistant_row() -> None:
    rows = (
        assistant("first", stopReason="toolUse"),
        assistant("sec", "ond", stopReason="error", errorMessage="401 no"),
        {"type": "message", "message": {"role": "toolResult", "content": []}},
        {"type": "unreadable"},
        {"type": "message", "message": "odd"},
    )
    assert last_said(rows) == Said("second", "error", "401 no")
    assert last_said(rows[2:]) is None


def test_last_said_survives_odd_content() -> None:
    rows = (assistant(stopReason=7, content=[1, {"type": "toolCall"}, {"type": "text", "text": None}]),)
    assert last_said(rows) == Said("", "", "")


def test_final_report() -> None:
    meta = {"stopReason": "stop", "aborted": False}
    payload = {"status": "ok", "result": {"payloads": [{"text": "a"}, {"text": "b", "mediaUrl": None}], "meta": meta}}
    data = json.dumps({"status": "final", "ready": 0.1, "took": 1.5, "payload": payload}).encode()
    assert read_report(data) == TurnReport("final", took=1.5, stop_reason="stop", text="a\nb")


def test_aborted_report() -> None:
    meta = {"aborted": True, "error": {"kind": "context_overflow", "message": "x"}}
    data = json.dumps({"status": "final", "took": 2, "payload": {"result": {"payloads": [], "meta": meta}}}).encode()
    assert read_report(data) == TurnReport("final", took=2.0, aborted=True, error_kind="context_overflow")


def test_refused_report() -> None:
    data = b'{"status":"refused","ready":1,"took":0.1,"error":{"code":"INVALID_REQUEST","message":"unknown key"}}'
    assert read_report(data) == TurnReport("refused", took=0.1, error="unknown key")


def test_closed_report() -> None:
    report = read_report(b'{"status":"closed","ready":1,"took":0.5,"error":{"code":1006,"reason":""}}')
    assert report == TurnReport("closed", took=0.5, error="WebSocket code 1006")


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"[]", b"{}", b'{"status":"done"}', b'{"status":["final"]}'])
def test_what_is_no_report_is_lost(data: bytes | None) -> None:
    report = read_report(data)
    assert report.status == "lost"
    assert "report" in report.error
