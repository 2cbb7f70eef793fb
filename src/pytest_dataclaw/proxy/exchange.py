"""The record of one exchange with a model, and the journal that keeps the exchanges of a lease on disk.

The journal is JSON lines. Agents send their whole history with every request, so a line holds only what is new:
`same_as: {exchange, messages}` says how many leading messages equal those of the line before, and `tools` is left
out where it has not changed. Secrets are scrubbed from the finished line.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.model.trajectory import ToolCall, Usage
from pytest_dataclaw.proxy.wire import Fault, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_dataclaw.proxy.redaction import Redactor


@dataclass(slots=True)
class Failure:
    """A try at the provider that failed: status, reason, and the seconds waited after it (0: it was the last)."""

    status: int
    error: str
    waited: float = 0.0


@dataclass(slots=True)
class Exchange:
    """One request of a lease and what became of it; filled in while it runs, not changed once it has ended.

    `started` and `ended` are seconds on the monotonic clock, `started_at` and `ended_at` UTC in ISO 8601. It starts out
    as the client's failure: an agent that finds a new way to break a request must not pass for a provider's failure.
    """

    number: int
    """1-based within the lease, in the order of the requests' arrival."""
    started_at: str
    started: float
    ended_at: str = ""
    ended: float = 0.0
    model: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    tools: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    """Everything else of the request: sampling parameters, tool choice, streaming."""
    status: int = 400
    """HTTP status by the upstream's or the proxy's account; 499 where the client hung up or the lease was closed."""
    error: str = "the request could not be read"
    fault: Fault = "client"
    reply: Reply | None = None
    complete: bool = False
    """Whether a finish reason was seen and the end of the reply was handed to the client."""
    usage: Usage = field(default_factory=Usage)
    """`requests` counts the tries at the provider; 0 where the proxy refused the request itself."""
    failures: list[Failure] = field(default_factory=list)
    """The tries at the provider that failed, in order."""


class Journal:
    """Appends exchanges to a file, each as one line in one write."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._previous: Exchange | None = None

    def append(self, exchange: Exchange) -> None:
        """Write an exchange that has ended; OSError where the file cannot be written whole."""
        append_line(self._path, self._redactor.scrub(_to_json(_row(exchange, self._previous))))
        self._previous = exchange


def append_line(path: Path, line: str) -> None:
    """Append a line of JSON to a file, whole, in one write; OSError where that fails."""
    # JSON may carry lone surrogates, which UTF-8 cannot; as escapes they survive the round trip.
    data = line.encode("utf-8", "backslashreplace") + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path}: a line could not be written whole")
    finally:
        os.close(descriptor)


def read_journal(path: Path) -> list[Exchange]:
    """Return the exchanges of a journal, as they were but for scrubbed secrets.

    A last line without its newline was torn by a crash and is left out; any other damage is a RecordError.
    """
    exchanges: list[Exchange] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            exchanges.append(_exchange(json.loads(line), exchanges[-1] if exchanges else None))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{path}:{number}: not a line of a journal: {error}") from error
    return exchanges


def common_prefix(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> int:
    """Return how many leading messages two histories share."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((index for index, (a, b) in pairs if a is not b and a != b), min(len(old), len(new)))


def _to_json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _row(exchange: Exchange, previous: Exchange | None) -> dict[str, Any]:
    row = {f.name: getattr(exchange, f.name) for f in fields(exchange)}
    row["usage"] = asdict(exchange.usage)
    row["failures"] = [asdict(failure) for failure in exchange.failures]
    row["reply"] = asdict(exchange.reply) if exchange.reply is not None else None
    if previous is not None:
        shared = common_prefix(previous.messages, exchange.messages)
        row["same_as"] = {"exchange": previous.number, "messages": shared}
        row["messages"] = exchange.messages[shared:]
        if previous.tools == exchange.tools:
            del row["tools"]
    return row


def _exchange(row: dict[str, Any], previous: Exchange | None) -> Exchange:
    same_as = row.pop("same_as", None)
    if same_as is not None:
        if previous is None or previous.number != same_as["exchange"] or len(previous.messages) < same_as["messages"]:
            raise ValueError(f"it builds on {same_as}, which is not the line before it")
        row["messages"] = previous.messages[: same_as["messages"]] + row["messages"]
        row.setdefault("tools", previous.tools)
    row["tools"] = tuple(row["tools"])
    row["usage"] = Usage(**row["usage"])
    row["failures"] = [Failure(**failure) for failure in row.get("failures", ())]
    if row["reply"] is not None:
        calls = tuple(ToolCall(**call) for call in row["reply"].pop("tool_calls"))
        row["reply"] = Reply(**row["reply"], tool_calls=calls)
    return Exchange(**row)
