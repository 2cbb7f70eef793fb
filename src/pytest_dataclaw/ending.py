"""How driving an agent ended: what it says itself, what became of its sandbox, and what the wire saw.

The wire has the last word. What the agent brought about is judged; what went wrong elsewhere is errored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.trajectory import Traffic
from pytest_dataclaw.model.verdict import Ruling
from pytest_dataclaw.proxy.base import is_context_overflow

if TYPE_CHECKING:
    from pytest_dataclaw.drive.base import AgentRun
    from pytest_dataclaw.model.verdict import OutcomeVerdict
    from pytest_dataclaw.provision.base import Fate

_TOO_MANY_REQUESTS = 429
_REFUSED = (400, 413, 422)
"""How a provider says that it is the request that is wrong."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What driving the agent left behind: how it ended, and what the wire saw."""

    end_reason: EndReason
    detail: str = ""
    traffic: Traffic = field(default_factory=Traffic)


def how_it_ended(run: AgentRun, traffic: Traffic, fate: Fate | None) -> tuple[EndReason, str]:
    """Return end reason and detail: the agent's own account, corrected by the sandbox's fate and by the wire.

    A sandbox that ended from inside is the agent's doing. An agent whose last exchange failed did not answer, whatever
    it says; errors that it recovered from are no errors.
    """
    if fate is not None:
        return fate.end_reason, fate.detail
    said = run.end_reason
    if said in (EndReason.ANSWERED, EndReason.EARLY_STOP, EndReason.PROVIDER_ERROR, EndReason.RATE_LIMITED):
        if traffic.limit:
            return EndReason.TRIAL_BUDGET, traffic.limit
        if traffic.last_error:
            return _wire_failure(traffic), traffic.last_error
        if said.errored:
            # The agent's word alone: an agent must not leave the denominator by forging its own log.
            return EndReason.EARLY_STOP, f"the agent tells of a failed model, but the wire is healthy: {run.detail}"
        if said is EndReason.ANSWERED and not traffic.trajectory.answer.strip():
            return EndReason.EARLY_STOP, "the agent says it answered, but no turn on the wire has text"
    return said, run.detail


def _wire_failure(traffic: Traffic) -> EndReason:
    """Name the failure of the last exchange.

    A provider that refuses a request after it has served others refuses what the agent made of it: the agent's doing.
    """
    if traffic.last_status == _TOO_MANY_REQUESTS:
        return EndReason.RATE_LIMITED
    if traffic.last_status in _REFUSED:
        if is_context_overflow(traffic.last_error):
            return EndReason.CONTEXT_OVERFLOW
        if traffic.trajectory.turns:
            return EndReason.EARLY_STOP
    return EndReason.PROVIDER_ERROR


def why(outcome: OutcomeVerdict, attempt: Attempt) -> str:
    """Return why a trial is not solved: how it ended if not by an answer, then the judge's reasons part by part."""
    parts: dict[str, list[str]] = {}
    for part in outcome.parts:
        if part.ruling is not Ruling.YES:
            parts.setdefault(part.reason or part.ruling.value, []).append(part.key)
    reasons = [reason if keys == ["match"] else f"{', '.join(keys)}: {reason}" for reason, keys in parts.items()]
    if attempt.end_reason is not EndReason.ANSWERED and attempt.detail:
        reasons.insert(0, attempt.detail)
    return "; ".join(reasons)
