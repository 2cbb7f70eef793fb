"""The LLM judge: a plain chat completion, asked again by cause until its reply can be used."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pytest_dataclaw.errors import JudgeError
from pytest_dataclaw.judge.prompt import PROMPT_VERSION, Messages, correction, outcome_messages, process_messages
from pytest_dataclaw.judge.reply import (
    ReplyFault,
    outcome_schema,
    parse_outcome,
    parse_process,
    part_keys,
    process_schema,
)
from pytest_dataclaw.judge.text import clean
from pytest_dataclaw.model.verdict import OutcomeVerdict, ProcessVerdict

if TYPE_CHECKING:
    from collections.abc import Callable

    import openai

    from pytest_dataclaw.judge.base import Case
    from pytest_dataclaw.model.run import ModelEndpoint

T = TypeVar("T")

# No right, no money, no such model: asking again cannot help. 424 is the proxy's word that it has asked often enough.
_FINAL_STATUS = frozenset({401, 402, 403, 404, 424})

# Request fields that a judge can do without, and the words by which an endpoint refuses them.
_OPTIONAL = {
    "response_format": ("response_format", "json_schema", "structured output"),
    "temperature": ("temperature",),
}
_ERROR_LIMIT = 2_000


@dataclass(frozen=True, slots=True)
class _Question(Generic[T]):
    kind: str
    messages: Messages
    schema: dict[str, Any]
    read: Callable[[str], T]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one request brought: `cause` is `ok`, `runtime` or `empty`; `status` is that of an HTTP error, else 0."""

    cause: str
    text: str = ""
    usage: dict[str, Any] | None = None
    error: str = ""
    status: int = 0


class LLMJudge:
    """Asks a model for verdicts; `attempts` is the budget of each cause of failure: `runtime`, `empty`, `format`.

    `timeout` is in seconds, for one request. What the endpoint refuses of the optional request fields (structured
    output, temperature 0) is left out for the rest of this judge's life; the rows of `chat` say what was sent.
    """

    def __init__(self, endpoint: ModelEndpoint, name: str, *, attempts: int = 3, timeout: float = 300.0) -> None:
        self._endpoint = endpoint
        self._name = name
        self._attempts = attempts
        self._timeout = timeout
        self._refused: set[str] = set()
        self._structured_works: set[str] = set()

    @property
    def name(self) -> str:
        """The name that records and summaries give this judge."""
        return self._name

    def judge_outcome(self, case: Case) -> OutcomeVerdict:
        """Rule on every part of the answer; an answer that imitates a verdict or hides text is only flagged."""
        keys = part_keys(case.gold)
        question = _Question(
            "outcome", outcome_messages(case), outcome_schema(keys), lambda text: parse_outcome(text, keys)
        )
        parts, chat = self._ask(question)
        flags = clean(case.answer).flags
        return OutcomeVerdict(self._name, parts, attempts=len(chat), flags=flags, chat=chat)

    def judge_process(self, case: Case) -> ProcessVerdict:
        """Rule on every milestone."""
        keys = [milestone.key for milestone in case.gold.milestones]
        turns = len(case.trajectory.turns)
        question = _Question(
            "process", process_messages(case), process_schema(), lambda text: parse_process(text, keys, turns)
        )
        milestones, chat = self._ask(question)
        return ProcessVerdict(self._name, milestones, attempts=len(chat), chat=chat)

    def _ask(self, question: _Question[T]) -> tuple[T, tuple[dict[str, Any], ...]]:
        """Ask until a reply can be read; JudgeError when one cause has used up its attempts."""
        chat: list[dict[str, Any]] = []
        spent: Counter[str] = Counter()
        messages = question.messages
        with self._connect() as client:
            while True:
                request = self._request(question, messages)
                answer, row = _send(client, request)
                chat.append({"kind": question.kind, "attempt": len(chat) + 1, **row})
                if field := self._refused_field(question.kind, request, answer):
                    self._refused.add(field)
                    continue
                fault = answer.error
                if answer.cause == "ok":
                    self._structured_works.add(question.kind)
                    try:
                        return question.read(answer.text), tuple(chat)
                    except ReplyFault as error:
                        fault = str(error)
                        chat[-1].update(cause="format", error=fault)
                        messages = [*question.messages, *correction(answer.text, fault)]
                cause = chat[-1]["cause"]
                spent[cause] += 1
                if spent[cause] >= self._attempts or answer.status in _FINAL_STATUS:
                    message = f"judge {self._name}: no usable {question.kind} verdict in {len(chat)} attempts"
                    raise JudgeError(f"{message}; last failure: {cause}: {fault}", chat=tuple(chat))

    def _connect(self) -> openai.OpenAI:
        import openai

        # trust_env off: a proxy named in the environment must not come between us and the model proxy on loopback.
        return openai.OpenAI(
            base_url=self._endpoint.base_url,
            api_key=self._endpoint.token,
            timeout=self._timeout,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False, timeout=self._timeout),
        )

    def _request(self, question: _Question[T], messages: Messages) -> dict[str, Any]:
        schema = {"name": f"dataclaw_{question.kind}", "strict": True, "schema": question.schema}
        request: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "temperature": 0,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        return {field: value for field, value in request.items() if field not in self._refused}

    def _refused_field(self, kind: str, request: dict[str, Any], answer: _Answer) -> str | None:
        """Name the optional field that the endpoint refuses: by its words, or by a 400 before it ever worked."""
        if answer.status not in (400, 422):
            return None
        words = answer.error.casefold()
        sent = [field for field in _OPTIONAL if field in request]
        for field in sent:
            if any(word in words for word in _OPTIONAL[field]):
                return field
        unproven = answer.status == 400 and kind not in self._structured_works
        return "response_format" if unproven and "response_format" in sent else None


def _send(client: openai.OpenAI, request: dict[str, Any]) -> tuple[_Answer, dict[str, Any]]:
    """Send one request; return what came of it, and its row for the judge's file."""
    import openai

    started_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    started = time.monotonic()
    try:
        answer = _read(client.chat.completions.create(**request))
    except (openai.OpenAIError, ValueError) as error:  # ValueError: a body that is no JSON passes the client unwrapped
        # The client's own message leaves out what a body says beside `message`, and what broke a connection.
        details = getattr(error, "body", None) or error.__cause__ or ""
        reason = f"{type(error).__name__}: {error} {details}".rstrip()
        answer = _Answer("runtime", error=_clean(reason[:_ERROR_LIMIT]), status=getattr(error, "status_code", 0))
    schema = request.get("response_format")
    row = {
        "cause": answer.cause,
        "error": answer.error,
        "request": {
            "messages": request["messages"],
            "model": request["model"],
            "temperature": request.get("temperature"),
            "response_format": schema["json_schema"]["name"] if schema else None,
            "prompt_version": PROMPT_VERSION,
        },
        "response": answer.text or None,
        "usage": answer.usage,
        "started_at": started_at,
        "seconds": time.monotonic() - started,
    }
    return answer, row


def _read(completion: object) -> _Answer:
    """Read a completion without trusting its shape: the client does not check what a custom endpoint sends."""
    from openai import BaseModel

    choices = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        reason = getattr(completion, "error", None) or "the response is no chat completion"
        return _Answer("runtime", error=_clean(str(reason)[:_ERROR_LIMIT]))
    message = getattr(choices[0], "message", None)
    content = getattr(message, "content", None)
    usage = getattr(completion, "usage", None)
    counts = usage.to_dict(mode="json", warnings=False) if isinstance(usage, BaseModel) else None
    if not isinstance(content, str) or not content.strip():
        reason = getattr(message, "refusal", None) or "no content"
        return _Answer("empty", usage=counts, error=_clean(str(reason)[:_ERROR_LIMIT]))
    return _Answer("ok", text=_clean(content), usage=counts)


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
