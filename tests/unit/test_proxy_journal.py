"""Journals come back as they were written; secrets never get that far."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.model.trajectory import ToolCall, Usage
from pytest_dataclaw.proxy.exchange import Exchange, Failure, Journal, common_prefix, read_journal
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.wire import Reply

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-or-v1-0123456789abcdef"


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


FIRST = Exchange(
    number=1,
    started_at="2026-01-02T03:04:05.678901+00:00",
    started=12345.678901234,
    ended_at="2026-01-02T03:04:06+00:00",
    ended=12346.1,
    model="m",
    messages=[message("系统", "system"), message("多少行？")],
    tools=("read", "exec"),
    parameters={"temperature": 0, "stream": True, "stream_options": {"include_usage": True}},
    status=200,
    error="",
    fault="",
    reply=Reply("text", "reasoning", (ToolCall("a", "exec", '{"command": "ls'),), "tool_calls"),
    complete=True,
    failures=[Failure(429, "slow down", 1.25)],
    usage=Usage(requests=2, input_tokens=7, output_tokens=3, cost_usd=0.25, wall_seconds=0.42),
)
LONGER = replace(FIRST, number=2, messages=[*FIRST.messages, message("hm", "assistant"), message("on")], reply=None)
SHORTENED = replace(FIRST, number=3, messages=[FIRST.messages[0], message("Summary")], tools=())


def write(path: Path, *exchanges: Exchange, secrets: dict[str, str] | None = None) -> list[dict[str, Any]]:
    journal = Journal(path, Redactor(secrets or {}))
    for exchange in exchanges:
        journal.append(exchange)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_journal_comes_back_exactly_and_repeats_no_history(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "there.jsonl"
    rows = write(path, FIRST, LONGER, SHORTENED)
    assert read_journal(path) == [FIRST, LONGER, SHORTENED]
    assert [row.get("same_as") for row in rows] == [
        None,
        {"exchange": 1, "messages": 2},
        {"exchange": 2, "messages": 1},
    ]
    assert [len(row["messages"]) for row in rows] == [2, 2, 1]
    assert ["tools" in row for row in rows] == [True, False, True]
    assert "多少行" in path.read_text(encoding="utf-8")


def test_two_leases_may_use_one_journal_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, FIRST, LONGER)
    write(path, FIRST)
    assert read_journal(path) == [FIRST, LONGER, FIRST]


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    odd = replace(FIRST, messages=[message("\ud800 and \\ud800 and \\\udfff")])
    write(tmp_path / "j.jsonl", odd)
    assert read_journal(tmp_path / "j.jsonl") == [odd]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, FIRST, LONGER)
    path.write_bytes(path.read_bytes()[:-5])
    assert read_journal(path) == [FIRST]


@pytest.mark.parametrize(
    "damage",
    [b'{"number": 1\n', b"[]\n", b"\n", b'{"number": 1}\n', b"\xff\n"],
    ids=["cut", "list", "empty", "fields missing", "not UTF-8"],
)
def test_other_damage_is_an_error_that_names_the_line(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "j.jsonl"
    write(path, FIRST)
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(RecordError, match=r"j\.jsonl:2: "):
        read_journal(path)


def test_a_line_that_builds_on_another_than_the_one_before_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, FIRST, LONGER, SHORTENED)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(RecordError, match="not the line before"):
        read_journal(path)


def test_a_file_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Journal(tmp_path / "file" / "j.jsonl", Redactor({})).append(FIRST)


def test_secrets_are_scrubbed_wherever_they_are_and_the_rest_comes_back(tmp_path: Path) -> None:
    arguments = json.dumps({"command": f"curl -H 'Authorization: Bearer {KEY}'"})
    leaky = replace(
        FIRST,
        messages=[message(f"key {KEY}"), message(base64.b64encode(KEY.encode() + b"\n").decode(), "tool")],
        parameters={"user": KEY},
        error=f"401 for {KEY}",
        reply=Reply(KEY, KEY, (ToolCall("a", "exec", arguments),), "tool_calls"),
    )
    write(tmp_path / "j.jsonl", leaky, secrets={"OPENROUTER_API_KEY": KEY})
    assert KEY not in (tmp_path / "j.jsonl").read_text(encoding="utf-8")
    (back,) = read_journal(tmp_path / "j.jsonl")
    label = "[redacted:OPENROUTER_API_KEY]"
    assert back.messages[0]["content"] == f"key {label}"
    assert back.messages[1]["content"].startswith(label)
    assert back.reply is not None
    assert json.loads(back.reply.tool_calls[0].arguments)["command"] == f"curl -H 'Authorization: Bearer {label}'"
    assert (back.parameters, back.error) == ({"user": label}, f"401 for {label}")


@pytest.mark.parametrize("offset", range(4))
def test_base64_is_found_at_every_offset(offset: int) -> None:
    data = base64.b64encode(b"u" * offset + KEY.encode() + b" and more").decode()
    scrubbed = Redactor({"K": KEY}).scrub(data)
    assert "[redacted:K]" in scrubbed
    around = base64.b64encode(b"u" * offset + b" and more").decode()
    assert len(scrubbed.replace("[redacted:K]", "")) <= len(around) + 4  # no more than the characters at the seams


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda v: v, id="plain"),
        pytest.param(lambda v: json.dumps(v)[1:-1], id="json, ASCII"),
        pytest.param(lambda v: json.dumps(v, ensure_ascii=False)[1:-1], id="json"),
        pytest.param(lambda v: quote(v, safe=""), id="url"),
        pytest.param(lambda v: base64.b64encode(v.encode()).decode(), id="base64"),
        pytest.param(lambda v: base64.urlsafe_b64encode(v.encode()).decode(), id="base64, URL-safe"),
    ],
)
def test_every_form_of_a_secret_is_scrubbed(form: Any) -> None:
    value = 'pa"ss\\wörd/?>~ÿ&密'
    assert Redactor({"P": value}).scrub(f"<{form(value)}>") == "<[redacted:P]>"


def test_the_longest_secret_is_scrubbed_first() -> None:
    redactor = Redactor({"SHORT": "abcdefgh"})
    redactor.add("LONG", "abcdefghijkl")
    assert redactor.scrub("abcdefghijkl abcdefgh") == "[redacted:LONG] [redacted:SHORT]"


def test_short_values_are_ignored_and_discarded_ones_are_let_through() -> None:
    redactor = Redactor({"SHORT": "1234567", "EMPTY": ""})
    redactor.add("GONE", "abcdefgh")
    redactor.discard("abcdefgh")
    assert redactor.scrub("1234567 abcdefgh") == "1234567 abcdefgh"


@pytest.mark.parametrize(("old", "new", "shared"), [("", "ab", 0), ("ab", "abc", 2), ("abc", "abd", 2), ("ab", "a", 1)])
def test_common_prefix(old: str, new: str, shared: int) -> None:
    assert common_prefix([message(c) for c in old], [message(c) for c in new]) == shared
