from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_dataclaw.drive.chat import Ending, Reply, plain_json, read_reply
from pytest_dataclaw.drive.tools import Command, cut_middle, read_call, render
from pytest_dataclaw.model.trajectory import ToolCall
from pytest_dataclaw.provision.base import ExecResult


def call(arguments: Any) -> ToolCall:
    return ToolCall("c", "exec", json.dumps(arguments))


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "ls"}, Command("ls", 300.0)),
        ({"command": "ls", "timeout": None}, Command("ls", 300.0)),
        ({"command": "ls", "timeout": 2}, Command("ls", 2.0)),
        ({"command": "ls", "timeout": 0.5}, Command("ls", 0.5)),
        ({"command": "ls", "timeout": 10**400}, Command("ls", 300.0)),
        ({"command": "ls", "why": "to look"}, Command("ls", 300.0)),
    ],
)
def test_commands(arguments: Any, command: Command) -> None:
    assert read_call(call(arguments), 300.0) == command


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ExecResult("42\n", 0), "42\n"),
        (ExecResult("", 0), ""),
        (ExecResult("", 2), "[exit code 2]"),
        (ExecResult("no\n", 2), "no\n[exit code 2]"),
        (ExecResult("no", -9), "no\n[exit code -9]"),
        (ExecResult("so far", None, timed_out=True), "so far\n[timed out after 1.5 s]"),
    ],
)
def test_what_the_model_is_told(result: ExecResult, told: str) -> None:
    assert render(result, 1.5, 100) == told


@pytest.mark.parametrize(
    ("limit", "cut"),
    [
        (10, "abcdefghij"),
        (9, "abcde\n[... 1 characters left out ...]\nghij"),
        (2, "a\n[... 8 characters left out ...]\nj"),
        (1, "a\n[... 9 characters left out ...]\n"),
    ],
)
def test_cut_middle(limit: int, cut: str) -> None:
    assert cut_middle("abcdefghij", limit) == cut


def test_plain_json_keeps_all_but_lone_surrogates() -> None:
    assert plain_json(r'{"a": "\ud83d\ude00", "b": "\ud83d", "c": [1, 2.5, null, "甲"]}') == {
        "a": "😀",
        "b": "?",
        "c": [1, 2.5, None, "甲"],
    }


def test_arguments_that_a_server_sent_as_an_object() -> None:
    message = {"tool_calls": [{"id": 7, "function": {"name": "exec", "arguments": {"command": "ls"}}}]}
    reply = read_reply({"choices": [{"message": message}]})
    assert isinstance(reply, Reply)
    assert reply.calls == (ToolCall("7", "exec", '{"command": "ls"}'),)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "", {})


@pytest.mark.parametrize("body", [None, [], {}, {"choices": None}, {"choices": [{"message": None}]}, {"choices": [7]}])
def test_bodies_that_are_no_completion(body: Any) -> None:
    assert isinstance(read_reply(body), Ending)
