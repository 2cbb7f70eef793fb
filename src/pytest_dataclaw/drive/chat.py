"""One model, asked over chat completions: a reply, or the reason why there is none."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.trajectory import ToolCall
from pytest_dataclaw.proxy.base import LIMIT_REACHED, is_context_overflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openai

    from pytest_dataclaw.model.run import Deadline, ModelEndpoint

Message: TypeAlias = "dict[str, Any]"

_SLACK_SECONDS = 1.0
"""By how much a socket outlives the deadline, so that it is always the deadline that is seen to pass first."""
_EXCERPT_CHARS = 500


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a conversation is over, and a sentence on it for a person."""

    reason: EndReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said. `message` is the message as it goes back into the conversation."""

    message: Message
    text: str
    calls: tuple[ToolCall, ...]
    finish_reason: str
    usage: dict[str, Any]


class Chat:
    """A client for one trial: no retries (the proxy's business), no proxy settings of the host."""

    def __init__(self, endpoint: ModelEndpoint, tools: Sequence[dict[str, Any]]) -> None:
        import openai

        self._endpoint = endpoint
        self._tools = tools
        # A lease is plain HTTP on loopback; to load the CA certificates all the same would cost each trial 25 ms.
        is_encrypted = endpoint.base_url.startswith("https:")
        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            api_key=endpoint.token,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False, verify=is_encrypted),
        )
        self._last: Future[Any] | None = None

    def ask(self, messages: list[Message], deadline: Deadline) -> Reply | Ending:
        """Return the model's reply to a conversation; an Ending where there is none, the deadline included."""
        import openai

        if deadline.passed:
            return Ending(EndReason.AGENT_TIMEOUT, "time was up before a request to the model")
        # A socket's timeout is fixed when it is set, but the deadline may move meanwhile.
        self._last = self._send(list(messages), deadline.at_most() + _SLACK_SECONDS)
        while not self._last.done() and not deadline.passed:
            wait([self._last], timeout=deadline.remaining())
        if not self._last.done():
            return Ending(EndReason.AGENT_TIMEOUT, "time was up during a request to the model")
        try:
            return read_reply(self._last.result())
        except openai.APIError as error:
            return self._failure(error)
        except (ValueError, RecursionError) as error:
            return Ending(EndReason.PROVIDER_ERROR, f"the response is not JSON: {error}")

    def close(self) -> None:
        """Close the connection, once a request that was cut off has let go of it."""
        if self._last is None:
            self._client.close()
        else:
            self._last.add_done_callback(lambda _: self._client.close())

    def _send(self, messages: list[Message], timeout: float) -> Future[Any]:
        """Ask in a thread: a socket's timeout bounds each read, and only waiting from outside bounds the whole."""
        future: Future[Any] = Future()

        def request() -> None:
            try:
                future.set_result(self._request(messages, timeout))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=request, name="dataclaw-react-request", daemon=True).start()
        return future

    def _request(self, messages: list[Message], timeout: float) -> Any:
        response = self._client.chat.completions.with_raw_response.create(
            model=self._endpoint.model,
            messages=messages,  # type: ignore[arg-type] # the SDK wants its own TypedDicts; these are their JSON
            tools=self._tools,  # type: ignore[arg-type] # likewise
            timeout=timeout,
        )
        return plain_json(response.http_response.text)

    def _failure(self, error: openai.APIError) -> Ending:
        import openai

        said = error.body.get("message") if isinstance(error.body, dict) else None
        if isinstance(error, openai.APIStatusError):
            detail = f"HTTP {error.status_code}: {said or error.message}"
        else:
            detail = f"{error.message} {error.__cause__ or ''}".strip()
        if self._endpoint.token:  # some endpoints repeat the key that they refuse
            detail = detail.replace(self._endpoint.token, "[token]")
        detail = detail[:_EXCERPT_CHARS]
        if error.code == LIMIT_REACHED:
            return Ending(EndReason.TRIAL_BUDGET, detail)
        if isinstance(error, openai.RateLimitError):
            return Ending(EndReason.RATE_LIMITED, detail)
        if isinstance(error, openai.BadRequestError) and is_context_overflow(
            f"{error.code} {error.type} {error.message}"
        ):
            return Ending(EndReason.CONTEXT_OVERFLOW, detail)
        return Ending(EndReason.PROVIDER_ERROR, detail)


def plain_json(text: str) -> Any:
    """Parse JSON; lone surrogates, which no UTF-8 can carry, become `?`. Raises ValueError or RecursionError."""
    return json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))


def read_reply(body: Any) -> Reply | Ending:
    """Read the body of a chat completion; an Ending where it is something else."""
    try:
        choice = body["choices"][0]
        message = {key: value for key, value in choice["message"].items() if value is not None}
        return Reply(
            message={"content": None, **message, "role": "assistant"},
            text=_text(message.get("content", "")),
            calls=tuple(_call(call) for call in message.get("tool_calls", ())),
            finish_reason=str(choice.get("finish_reason") or ""),
            usage=dict(body.get("usage") or {}),
        )
    except (LookupError, TypeError, AttributeError, ValueError):
        excerpt = json.dumps(body, ensure_ascii=False)[:_EXCERPT_CHARS]
        return Ending(EndReason.PROVIDER_ERROR, f"the response is not a chat completion: {excerpt}")


def _text(content: str | list[dict[str, Any]]) -> str:
    """Return the text of a message, which some providers send in parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _call(call: dict[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments", "")
    return ToolCall(
        call_id=str(call["id"]),
        name=str(function["name"]),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
    )
