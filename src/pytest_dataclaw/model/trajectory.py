"""What an agent did, as seen on the wire between it and its model."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, requests and cost (USD) of some exchanges; sums with `+`.

    `input_tokens` counts all prompt tokens, cache reads and writes included, as OpenAI-compatible providers do;
    `reasoning_tokens` is the part of `output_tokens` spent on reasoning. `cost_usd` is None where no price is known.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    wall_seconds: float = 0.0
    """Time spent inside model exchanges, waiting included."""
    waiting_seconds: float = 0.0
    """The part of it spent backing off before a retry, or waiting for a turn where few are let through at once."""

    @property
    def total_tokens(self) -> int:
        """Input plus output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage) if f.name != "cost_usd"}
        return Usage(**sums, cost_usd=sum(costs) if costs else None)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it; `arguments` is the raw JSON text, which may be broken."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A completed model response in the agent's chain. `index` is t of the formulas, 1-based."""

    index: int
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()
    """What the tools answered, in the order of `tool_calls`; empty strings where nothing came back."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The turns of a trial. `side_exchanges` counts what was recorded but is no turn (failed, retried, compaction)."""

    turns: tuple[Turn, ...] = ()
    side_exchanges: int = 0

    @property
    def answer(self) -> str:
        """The text of the last turn that has text; "" where no turn has any."""
        return next((turn.text for turn in reversed(self.turns) if turn.text.strip()), "")


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the proxy knows of one role of one trial."""

    trajectory: Trajectory = field(default_factory=Trajectory)
    usage: Usage = field(default_factory=Usage)
    last_error: str = ""
    """Why the last exchange failed; "" where it succeeded or there was none."""
    last_status: int = 0
    """HTTP status that the last exchange ended with; 0 where there was none."""
    limit: str = ""
    """Why a request was refused as beyond what the trial may use; "" where none was."""
    hosts: dict[str, int] | None = None
    """Requests to the web by host, of those that reached it; None where the trial had no egress proxy."""
    refused_hosts: dict[str, int] = field(default_factory=dict)
    """Requests to the web by host, of those that the egress proxy refused."""
