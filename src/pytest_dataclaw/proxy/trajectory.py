"""From the wire to the trajectory that is scored.

A turn is a completed response in the agent's chain: the next request of the chain carries results of its tool calls
(of some at least, and of no others) or, where it called no tool, its text followed by a user message. All else (failed
and repeated requests, title generation, compaction) was recorded but is no turn. A response whose calls all name tools
that do not exist is one of these where the agent drops them: its next request repeats the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.trajectory import Trajectory, Turn
from pytest_dataclaw.proxy.wire import Reply, message_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.proxy.exchange import Exchange


def build_trajectory(exchanges: Sequence[Exchange]) -> Trajectory:
    """Return the longest chain among the exchanges; the later of two equal ones, one with tools before one without."""
    links: list[_Link] = []
    for exchange in sorted(exchanges, key=lambda exchange: exchange.number):
        if exchange.complete and exchange.reply is not None:
            links.append(_link(exchange, exchange.reply, links))
    # Without the first criterion a title that is asked for after a one-turn answer would be taken for the answer.
    last = max(links, key=lambda link: (bool(link.exchange.tools), link.depth, link.exchange.number), default=None)
    turns: list[Turn] = []
    following: _Link | None = None
    while last is not None:
        results = following.carried.results_of(last.reply) if following else ("",) * len(last.reply.tool_calls)
        turns.append(Turn(last.depth, last.reply.text, last.reply.tool_calls, results))
        last, following = last.parent, last
    return Trajectory(turns=tuple(reversed(turns)), side_exchanges=len(exchanges) - len(turns))


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a request says of the turn before it: the last assistant message and all that came after."""

    assistant: dict[str, Any] | None
    results: tuple[tuple[str, str], ...]
    """Tool-call id and text of each result."""
    answered: frozenset[str]
    user_spoke: bool

    def answers(self, reply: Reply) -> bool:
        """Whether the request goes on from a reply."""
        if reply.tool_calls:
            # OpenClaw drops a call of a tool that it does not have, with its result; the others come back.
            called = {call.call_id for call in reply.tool_calls}
            return bool(self.answered) and self.answered <= called and self._calls <= called
        if self.assistant is None or self.assistant.get("tool_calls") or not self.user_spoke:
            return False
        return message_text(self.assistant.get("content")).strip() == reply.text.strip()

    @property
    def _calls(self) -> set[str]:
        calls = self.assistant.get("tool_calls") if self.assistant else None
        return {str(call.get("id")) for call in calls or () if isinstance(call, dict)}

    def results_of(self, reply: Reply) -> tuple[str, ...]:
        """Return the results in the order of the reply's tool calls, whose ids may repeat; "" where one is missing."""
        left = list(self.results)
        texts: list[str] = []
        for call in reply.tool_calls:
            found = next((result for result in left if result[0] == call.call_id), None)
            if found is not None:
                left.remove(found)
            texts.append(found[1] if found is not None else "")
        return tuple(texts)


@dataclass(frozen=True, slots=True)
class _Link:
    """A completed exchange in its chain; `depth` is the index of its turn."""

    exchange: Exchange
    reply: Reply
    carried: _Carried
    parent: _Link | None
    depth: int


def _link(exchange: Exchange, reply: Reply, earlier: Sequence[_Link]) -> _Link:
    carried = _carried(exchange.messages)
    # Some models use the same ids in every turn, so of several candidates the latest is meant.
    candidates = (link for link in reversed(earlier) if carried.answers(link.reply))
    parent = next((link for link in candidates if _may_follow(exchange, link.exchange)), None)
    return _Link(exchange, reply, carried, parent, parent.depth + 1 if parent else 1)


def _may_follow(exchange: Exchange, earlier: Exchange) -> bool:
    # A request with the very same messages repeats the earlier one, whose response was lost, even if the ids fit.
    return set(exchange.tools) == set(earlier.tools) and exchange.messages != earlier.messages


def _carried(messages: Sequence[dict[str, Any]]) -> _Carried:
    spoken = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    after = messages[spoken[-1] + 1 :] if spoken else messages
    tools = [message for message in after if message.get("role") == "tool"]
    results = tuple((str(tool.get("tool_call_id")), message_text(tool.get("content"))) for tool in tools)
    return _Carried(
        assistant=messages[spoken[-1]] if spoken else None,
        results=results,
        answered=frozenset(call_id for call_id, _ in results),
        user_spoke=any(message.get("role") == "user" for message in after),
    )
