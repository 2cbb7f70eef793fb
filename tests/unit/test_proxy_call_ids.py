"""Tool-call ids: the agent gets ours, the provider gets its own back."""

from __future__ import annotations

from typing import Any

from pytest_dataclaw.proxy.call_ids import CallIds


def _completion(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "exec", "arguments": "{}"}, "extra": 1} for i in ids]
    return {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": calls}}],
        "id": "x",
    }


def _ids(completion: dict[str, Any]) -> list[str]:
    return [call["id"] for call in completion["choices"][0]["message"]["tool_calls"]]


def test_ids_are_nine_letters_and_digits_and_never_repeat() -> None:
    swap = CallIds()
    first, second = swap.outward(_completion("call_0", "call_1")), swap.outward(_completion("call_0"))
    ids = [*_ids(first), *_ids(second)]
    assert len(set(ids)) == 3
    assert all(len(i) == 9 and i.isalnum() and i.isascii() for i in ids)
    assert first["choices"][0]["message"]["tool_calls"][0]["extra"] == 1


def test_the_provider_gets_its_own_ids_back_and_the_agents_request_is_left_alone() -> None:
    swap = CallIds()
    (own,) = _ids(swap.outward(_completion("functions.exec:0")))
    call = {"id": own, "type": "function", "function": {"name": "exec", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": own, "content": "ok"}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": own}, {"role": "assistant", "tool_calls": [call]}, result],
    }
    inward = swap.inward(body)
    assert inward["messages"][0] == {"role": "user", "content": own}
    assert inward["messages"][1]["tool_calls"][0]["id"] == "functions.exec:0"
    assert inward["messages"][2]["tool_call_id"] == "functions.exec:0"
    assert (call["id"], result["tool_call_id"]) == (own, own)


def test_ids_that_were_never_given_out_stay() -> None:
    odd = [
        {"role": "tool", "tool_call_id": 7},
        {"role": "assistant", "tool_calls": ["?", {"id": "mine"}]},
        {"role": "tool"},
    ]
    assert CallIds().inward({"messages": odd})["messages"] == odd


def test_a_reply_without_calls_is_passed_on_as_it_is() -> None:
    plain = {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
    assert CallIds().outward(plain) is plain
