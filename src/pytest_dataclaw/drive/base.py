"""What an agent is: it works on a brief in a sandbox with a leased model until it answers, stops, or time is up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pytest_dataclaw.model.result import EndReason
    from pytest_dataclaw.model.run import Deadline, ModelEndpoint
    from pytest_dataclaw.model.task import Brief
    from pytest_dataclaw.provision.base import Sandbox


@dataclass(frozen=True, slots=True)
class AgentRun:
    """How an agent's work ended, by its own account; the wire has the last word (see trial.py)."""

    end_reason: EndReason
    detail: str = ""
    transcript: tuple[dict[str, Any], ...] = ()
    """Rows of `chat.jsonl`."""
    log: str = ""
    """Text of `agent.log`."""
    gateway_log: str = ""
    """Text of `gateway.log`, for agents that run a gateway."""


class Agent(Protocol):
    """Drives one trial. Never raises for what the model or a command did; SandboxError passes through."""

    @property
    def name(self) -> str:
        """`react`, `openclaw`."""

    @property
    def profile(self) -> str:
        """The named configuration of the agent, for records."""

    def run(self, brief: Brief, sandbox: Sandbox, model: ModelEndpoint, deadline: Deadline) -> AgentRun:
        """Work on the brief until an answer, a stop, or the deadline."""
