"""Counts tokens, requests and cost from the wire, per trial and per run, agent and judge apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.trajectory import Usage

if TYPE_CHECKING:
    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.proxy.base import Role


class Ledger:
    """The usage of every trial in both roles."""

    def __init__(self) -> None:
        self._usage: dict[tuple[TrialKey, Role], Usage] = {}

    def add(self, key: TrialKey, role: Role, usage: Usage) -> None:
        """Book what one exchange used; failed ones too, which count as requests."""
        self._usage[key, role] = self.trial(key, role) + usage

    def trial(self, key: TrialKey, role: Role) -> Usage:
        """Return what one role of one trial has used so far."""
        return self._usage.get((key, role), Usage())

    def total(self, role: Role) -> Usage:
        """Return what one role has used in the whole run so far."""
        return sum((usage for (_, booked), usage in self._usage.items() if booked == role), Usage())

    def trials(self) -> list[tuple[TrialKey, Role, Usage]]:
        """Return the usage of every trial and role that has any, in the order of their first exchange."""
        return [(key, role, usage) for (key, role), usage in self._usage.items()]


def read_usage(wire: dict[str, Any] | None) -> Usage:
    """Map a provider's usage object to tokens and cost; ValueError where a number is none or is negative.

    Besides OpenAI's fields it knows OpenRouter's (`cost` in USD, `cache_write_tokens`), Anthropic's as gateways pass
    them on (`cache_creation_input_tokens`, `cache_read_input_tokens`) DeepSeek's (`prompt_cache_hit_tokens`)
    and Moonshot's (`cached_tokens`).
    """
    if wire is None:
        return Usage()
    prompt = wire.get("prompt_tokens_details") or {}
    completion = wire.get("completion_tokens_details") or {}
    reads = (
        (prompt, "cached_tokens"),
        (wire, "cache_read_input_tokens"),
        (wire, "prompt_cache_hit_tokens"),
        (wire, "cached_tokens"),
    )
    writes = (prompt, "cache_write_tokens"), (prompt, "cache_creation_tokens"), (wire, "cache_creation_input_tokens")
    return Usage(
        input_tokens=_count((wire, "prompt_tokens")),
        output_tokens=_count((wire, "completion_tokens")),
        cache_read_tokens=_count(*reads),
        cache_write_tokens=_count(*writes),
        reasoning_tokens=_count((completion, "reasoning_tokens")),
        cost_usd=_cost(wire.get("cost")),
    )


def _count(*places: tuple[dict[str, Any], str]) -> int:
    """Return the number at the first place that has one; the places are synonyms, so they never add up."""
    for source, name in places:
        value = source.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"usage: {name} is {value!r}, not a count")
        return value
    return 0


def _cost(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError(f"usage: cost is {value!r}, not an amount in USD")
    return float(value)
