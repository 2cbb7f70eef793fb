"""Hand-written exchanges, and the turns that must come of them."""

from __future__ import annotations

from typing import Any

from pytest_dataclaw.model.trajectory import ToolCall, Trajectory, Turn
from pytest_dataclaw.proxy.exchange import Exchange
from pytest_dataclaw.proxy.trajectory import build_trajectory
from pytest_dataclaw.proxy.wire import Reply

TOOLS = ("read", "exec")
Message = dict[str, Any]

SYSTEM: Message = {"role": "system", "content": "You analyse data."}
TASK: Message = {"role": "user", "content": "How many rows?"}


def call(call_id: str, command: str = "ls") -> ToolCall:
    return ToolCall(call_id, "exec", f'{{"command": "{command}"}}')


def said(text: str = "", *calls: ToolCall) -> Message:
    wire = [
        {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": wire} if wire else {})}


def result(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def exchange(
    number: int,
    messages: list[Message],
    text: str = "",
    *calls: ToolCall,
    tools: tuple[str, ...] = TOOLS,
    complete: bool = True,
) -> Exchange:
    reply = Reply(text, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")
    return Exchange(number, "", 0.0, messages=messages, tools=tools, reply=reply, complete=complete, status=200)


def failed(number: int, messages: list[Message]) -> Exchange:
    return Exchange(number, "", 0.0, messages=messages, tools=TOOLS, status=503, fault="provider")


def texts(trajectory: Trajectory) -> list[str]:
    return [turn.text for turn in trajectory.turns]


def test_no_exchange_gives_no_turn() -> None:
    assert build_trajectory([]) == Trajectory()


def test_only_failures_give_no_turn() -> None:
    assert build_trajectory([failed(1, [TASK]), exchange(2, [TASK], "half", complete=False)]) == Trajectory((), 2)


def test_a_single_answer_is_one_turn() -> None:
    assert build_trajectory([exchange(1, [SYSTEM, TASK], "42")]) == Trajectory((Turn(1, "42"),))


def test_a_chain_of_tool_calls_takes_each_result_from_the_request_after_it() -> None:
    one = [SYSTEM, TASK]
    two = [*one, said("Looking.", call("a")), result("a", "x.csv")]
    three = [
        *two,
        said("", call("b")),
        {**result("b", ""), "content": [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]},
    ]
    trajectory = build_trajectory(
        [exchange(1, one, "Looking.", call("a")), exchange(2, two, "", call("b")), exchange(3, three, "42 rows")]
    )
    assert trajectory == Trajectory(
        (
            Turn(1, "Looking.", (call("a"),), ("x.csv",)),
            Turn(2, "", (call("b"),), ("42",)),
            Turn(3, "42 rows"),
        )
    )
    assert trajectory.answer == "42 rows"


def test_results_of_parallel_calls_come_in_the_order_of_the_calls() -> None:
    calls = call("a", "ls"), call("b", "pwd")
    two = [TASK, said("", *calls), result("b", "/tmp"), result("a", "x.csv")]
    trajectory = build_trajectory([exchange(1, [TASK], "", *calls), exchange(2, two, "done")])
    assert trajectory.turns[0].results == ("x.csv", "/tmp")


def test_two_parallel_calls_with_one_id_keep_both_results() -> None:
    calls = call("a", "ls"), call("a", "pwd")
    two = [TASK, said("", *calls), result("a", "x.csv"), result("a", "/tmp")]
    trajectory = build_trajectory([exchange(1, [TASK], "", *calls), exchange(2, two, "done")])
    assert trajectory.turns[0].results == ("x.csv", "/tmp")


def test_the_last_turn_has_an_empty_result_for_every_call() -> None:
    trajectory = build_trajectory([exchange(1, [TASK], "", call("a"), call("b"))])
    assert trajectory.turns == (Turn(1, "", (call("a"), call("b")), ("", "")),)


def test_a_request_that_answers_only_one_of_two_calls_goes_on_from_them() -> None:
    # OpenClaw drops the call of a tool that it does not have, and its result.
    one = [TASK, said("", call("a")), result("a", "x.csv")]
    trajectory = build_trajectory([exchange(1, [TASK], "", call("a"), call("b")), exchange(2, one, "done")])
    assert (texts(trajectory), trajectory.side_exchanges) == (["", "done"], 0)
    assert trajectory.turns[0].results == ("x.csv", "")


def test_a_request_that_answers_a_call_of_another_turn_too_does_not_go_on() -> None:
    two = [TASK, said("", call("a"), call("z")), result("a", "x.csv"), result("z", "y.csv")]
    trajectory = build_trajectory([exchange(1, [TASK], "", call("a"), call("b")), exchange(2, two, "done")])
    assert (texts(trajectory), trajectory.side_exchanges) == (["done"], 1)


def test_a_repeated_request_is_superseded_by_the_one_whose_ids_are_carried_on() -> None:
    lost = exchange(1, [TASK], "first", call("a"))
    kept = exchange(2, [TASK], "second", call("b"))
    last = exchange(3, [TASK, said("second", call("b")), result("b", "x")], "done")
    trajectory = build_trajectory([lost, kept, last])
    assert (texts(trajectory), trajectory.side_exchanges) == (["second", "done"], 1)


def test_the_first_response_counts_if_its_ids_are_the_ones_carried_on() -> None:
    exchanges = [
        exchange(1, [TASK], "first", call("a")),
        exchange(2, [TASK], "second", call("b")),
        exchange(3, [TASK, said("first", call("a")), result("a", "x")], "done"),
    ]
    assert texts(build_trajectory(exchanges)) == ["first", "done"]


def test_of_two_responses_to_the_last_request_the_later_is_the_answer() -> None:
    assert texts(build_trajectory([exchange(1, [TASK], "first"), exchange(2, [TASK], "second")])) == ["second"]


def test_a_failed_exchange_in_between_is_recorded_and_not_counted() -> None:
    two = [TASK, said("", call("a")), result("a", "x")]
    exchanges = [exchange(1, [TASK], "", call("a")), failed(2, two), exchange(3, two, "done")]
    trajectory = build_trajectory(exchanges)
    assert (texts(trajectory), trajectory.side_exchanges) == (["", "done"], 1)


def test_a_cut_exchange_that_carried_a_reply_is_not_counted() -> None:
    two = [TASK, said("", call("a")), result("a", "x")]
    cut = exchange(2, two, "done", complete=False)
    trajectory = build_trajectory([exchange(1, [TASK], "", call("a")), cut])
    assert (len(trajectory.turns), trajectory.side_exchanges) == (1, 1)


def test_title_generation_before_the_first_turn_is_a_side_exchange() -> None:
    title = exchange(1, [{"role": "user", "content": "Name this chat"}], "Row count", tools=())
    trajectory = build_trajectory([title, exchange(2, [TASK], "42")])
    assert (texts(trajectory), trajectory.side_exchanges) == (["42"], 1)


def test_title_generation_after_a_one_turn_answer_does_not_become_the_answer() -> None:
    title = exchange(2, [{"role": "user", "content": "Name this chat"}], "Row count", tools=())
    assert build_trajectory([exchange(1, [TASK], "42"), title]).answer == "42"


def test_a_title_made_from_the_whole_history_does_not_continue_the_chain() -> None:
    history = [TASK, said("", call("a")), result("a", "x"), {"role": "user", "content": "Name this chat"}]
    exchanges = [
        exchange(1, [TASK], "", call("a")),
        exchange(2, history, "Row count", tools=()),
        exchange(3, history[:3], "42"),
    ]
    trajectory = build_trajectory(exchanges)
    assert (texts(trajectory), trajectory.side_exchanges) == (["", "42"], 1)


def test_compaction_in_the_middle_and_the_shortened_history_after_it() -> None:
    one = [SYSTEM, TASK]
    two = [*one, said("", call("a")), result("a", "x")]
    full = [*two, said("", call("b")), result("b", "y")]
    short = [SYSTEM, {"role": "user", "content": "Summary so far."}, said("", call("b")), result("b", "y")]
    exchanges = [
        exchange(1, one, "one", call("a")),
        exchange(2, two, "two", call("b")),
        exchange(3, [SYSTEM, {"role": "user", "content": f"Sum up: {full}"}], "Summary so far.", tools=()),
        exchange(4, short, "three", call("c")),
        exchange(5, [*short, said("three", call("c")), result("c", "z")], "four"),
    ]
    trajectory = build_trajectory(exchanges)
    assert (texts(trajectory), trajectory.side_exchanges) == (["one", "two", "three", "four"], 1)
    assert [turn.results for turn in trajectory.turns] == [("x",), ("y",), ("z",), ()]


def test_ids_that_repeat_in_every_turn_mean_the_latest() -> None:
    one = [TASK]
    two = [*one, said("one", call("call_0")), result("call_0", "x")]
    three = [*two, said("two", call("call_0")), result("call_0", "y")]
    exchanges = [
        exchange(1, one, "one", call("call_0")),
        exchange(2, two, "two", call("call_0")),
        exchange(3, three, "three"),
    ]
    trajectory = build_trajectory(exchanges)
    assert texts(trajectory) == ["one", "two", "three"]
    assert [turn.results for turn in trajectory.turns] == [("x",), ("y",), ()]


def test_a_repeated_request_is_no_child_of_itself_though_ids_repeat() -> None:
    two = [TASK, said("one", call("call_0")), result("call_0", "x")]
    exchanges = [
        exchange(1, [TASK], "one", call("call_0")),
        exchange(2, two, "lost", call("call_0")),
        exchange(3, two, "two", call("call_0")),
        exchange(4, [*two, said("two", call("call_0")), result("call_0", "y")], "three"),
    ]
    trajectory = build_trajectory(exchanges)
    assert (texts(trajectory), trajectory.side_exchanges) == (["one", "two", "three"], 1)


def test_a_user_message_after_a_text_turn_continues_the_chain() -> None:
    two = [TASK, said(" 41 "), {"role": "user", "content": "Are you sure?"}]
    trajectory = build_trajectory([exchange(1, [TASK], "41"), exchange(2, two, "42")])
    assert (texts(trajectory), trajectory.answer) == (["41", "42"], "42")


def test_a_text_turn_without_a_user_message_after_it_is_not_continued() -> None:
    trajectory = build_trajectory([exchange(1, [TASK], "41"), exchange(2, [TASK, said("41")], "42")])
    assert texts(trajectory) == ["42"]


def test_another_conversation_with_other_tools_loses_to_the_longer_one() -> None:
    helper = [exchange(2, [{"role": "user", "content": "Help"}], "sub", tools=("read",))]
    two = [TASK, said("", call("a")), result("a", "x")]
    trajectory = build_trajectory([exchange(1, [TASK], "", call("a")), *helper, exchange(3, two, "42")])
    assert (texts(trajectory), trajectory.side_exchanges) == (["", "42"], 1)


def test_exchanges_are_taken_by_number_not_by_position() -> None:
    two = [TASK, said("", call("a")), result("a", "x")]
    assert len(build_trajectory([exchange(2, two, "42"), exchange(1, [TASK], "", call("a"))]).turns) == 2


def test_a_runaway_loop_is_built_in_bounded_time() -> None:
    exchanges = [exchange(number, [TASK], "", call(f"id{number}")) for number in range(1, 1732)]
    trajectory = build_trajectory(exchanges)
    assert (len(trajectory.turns), trajectory.side_exchanges) == (1, 1730)
