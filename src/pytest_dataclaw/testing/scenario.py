"""What a scripted model does: steps, one per request, and the scenarios that string them together.

A step is plain data. In its place a scenario also takes a function that is given the request and returns the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_dataclaw.model.trajectory import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_USAGE = Usage(input_tokens=100, output_tokens=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one request gets; `delay` is the wait before the first byte, in seconds."""

    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Step):
    """A step that ends well. It is streamed where the request asks for that."""

    reasoning: str = ""
    usage: Usage | None = _USAGE
    """What the reply reports: tokens, and `cost_usd` unless None. None: the reply reports nothing.

    As with real providers, a stream reports it only where `stream_options.include_usage` asks for it."""
    chunk_size: int = 16
    """Characters of reasoning, text and arguments in one streamed event."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the message: annotations, reasoning_details, ..."""


@dataclass(frozen=True, slots=True)
class Answer(Reply):
    """Text."""

    text: str
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class ToolCalls(Reply):
    """One tool call or several at once, each a name and its arguments; a string goes out as it is, valid or not.

    The ids are nine letters and digits, unique within a scenario: `call00302` is the second call of its third request.
    """

    calls: Sequence[tuple[str, str | Mapping[str, Any]]]
    text: str = ""
    finish_reason: str = "tool_calls"


@dataclass(frozen=True, slots=True)
class Refuse(Reply):
    """A refusal: no text, but a message in `refusal`."""

    text: str = "I cannot help with that."


@dataclass(frozen=True, slots=True)
class Empty(Reply):
    """A well-formed reply without any text or tool call."""

    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class HttpError(Step):
    """An HTTP error; `body` is sent as JSON, or as it is where it is a string. None: an error in OpenAI's shape."""

    status: int
    body: str | Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErrorEvent(Step):
    """An error that is found after status 200 has gone out: an event of the stream, or the body of a plain reply."""

    error: Mapping[str, Any]
    after_text: str = ""


@dataclass(frozen=True, slots=True)
class Hang(Step):
    """Silence for some seconds, then the connection is closed; None: until the client or the server gives up.

    With `after_text` the silence comes after this much of an answer, without it before the first byte.
    """

    seconds: float | None = None
    after_text: str = ""


@dataclass(frozen=True, slots=True)
class Cut(Step):
    """An answer that breaks off after this text: the connection is closed, the reply not ended."""

    after_text: str = "The answer is"


@dataclass(frozen=True, slots=True)
class Reset(Step):
    """A connection that is reset before the first byte (on a unix socket: closed)."""


@dataclass(frozen=True, slots=True)
class Malformed(Step):
    """Status 200 and a body that is not the protocol's; it is sent as it is.

    Without a `content_type` it is what the request asked for: an event stream or JSON.
    """

    body: str = "data: {not json\n\n"
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A chat-completions request as the server got it; `number` is 1-based within its scenario."""

    number: int
    scenario: str
    """Key of the scenario that answers it; "" where there is but one, or none that fits."""
    headers: Mapping[str, str]
    """By lower-case name."""
    body: Mapping[str, Any]

    @property
    def api_key(self) -> str:
        """The bearer token, or ""."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else ""

    @property
    def model(self) -> str:
        """The model asked for, or ""."""
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The conversation so far."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", ())
        return messages


ScriptedStep: TypeAlias = "Step | Callable[[Request], Step]"


class Scenario:
    """Steps in the order of the requests they answer; `repeat_last` goes on with the last one for ever.

    A request past the end is answered with status 400, so that no client tries it again.
    """

    def __init__(self, *steps: ScriptedStep, repeat_last: bool = False) -> None:
        if not steps:
            raise ValueError("a scenario needs at least one step")
        self._steps = steps
        self._repeat_last = repeat_last

    def step(self, request: Request) -> Step:
        """Return the step for a request."""
        index = request.number - 1
        if index >= len(self._steps) and not self._repeat_last:
            name = f"scenario {request.scenario!r}" if request.scenario else "scenario"
            return refusal(400, f"the {name} ends after {len(self._steps)} requests; this is number {request.number}")
        step = self._steps[min(index, len(self._steps) - 1)]
        return step if isinstance(step, Step) else step(request)


def refusal(status: int, message: str) -> HttpError:
    """Return an error of the server itself, in OpenAI's shape."""
    return HttpError(status, {"error": {"message": message, "type": "scenario_error", "code": None}})
