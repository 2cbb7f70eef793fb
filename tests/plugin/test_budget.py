"""Limits and retries end to end: pytest with the `react` agent against a scripted provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import Answer, HttpError, Scenario, ToolCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Bench, Result

LOOP = ToolCalls([("exec", {"command": "echo on and on"})])


@pytest.fixture
def run(bench: Bench) -> Callable[..., tuple[Result, dict[str, Any], ModelServer]]:
    """Return a function that runs one task against a provider, and returns result, record and provider."""

    def run(scenario: Scenario, *arguments: str) -> tuple[Result, dict[str, Any], ModelServer]:
        bench.add()
        with ModelServer(scenario) as server:
            bench.env = {"OPENCLAW_CUSTOM_BASE_URL": server.base_url, "OPENCLAW_CUSTOM_API_KEY": "sk-scripted-key"}
            fixed = ("--dataclaw-model=custom", "--dataclaw-judge=rules", "--dataclaw-agent=react")
            result = bench.run(*fixed, "--dataclaw-sandbox=local", "-p", "no:xdist", *arguments)
        (record,) = result.records()
        return result, record, server

    return run


def test_an_endless_loop_ends_at_the_cap_and_is_judged(run: Callable[..., Any]) -> None:
    result, record, server = run(Scenario(LOOP, repeat_last=True), "--dataclaw-max-requests=5")
    assert (record["outcome"], record["end_reason"], record["turns"]) == ("unsolved", "trial_budget", 5), result.out
    assert len(server.requests) == record["agent_usage"]["requests"] == 5
    assert record["agent_usage"]["input_tokens"] == server.usage().input_tokens == 500
    assert "requests to its model" in record["detail"]
    assert (result.code, result.counts()) == (1, (1, 1, 0))


def test_the_last_request_within_the_cap_may_still_answer(run: Callable[..., Any]) -> None:
    scenario = Scenario(LOOP, Answer("60840"))
    _, record, server = run(scenario, "--dataclaw-max-requests=2")
    assert (record["outcome"], record["end_reason"]) == ("solved", "answered")
    assert len(server.requests) == 2


def test_a_provider_that_recovers_costs_the_trial_nothing_but_time(run: Callable[..., Any]) -> None:
    result, record, server = run(Scenario(HttpError(500), HttpError(429), Answer("60840")), "--dataclaw-max-requests=1")
    assert (record["outcome"], record["end_reason"], record["turns"]) == ("solved", "answered", 1), result.out
    usage = record["agent_usage"]
    assert usage["requests"] == len(server.requests) == 3
    assert 0 < usage["waiting_seconds"] < usage["wall_seconds"]
    assert record["side_exchanges"] == 0
    assert result.code == 0


def test_a_key_that_is_refused_is_errored_at_once(run: Callable[..., Any]) -> None:
    result, record, server = run(Scenario(HttpError(401), repeat_last=True))
    assert (record["outcome"], record["end_reason"], record["scores"]) == ("errored", "provider_error", None)
    assert (len(server.requests), record["agent_usage"]["waiting_seconds"]) == (1, 0)
    assert result.counts() == (1, 0, 1)


def test_a_cap_that_is_no_number_is_a_usage_error(bench: Bench) -> None:
    bench.add()
    result = bench.run("--dataclaw-model=oracle", "--dataclaw-max-requests=none", "-p", "no:xdist")
    assert result.code == pytest.ExitCode.USAGE_ERROR
    assert "--dataclaw-max-requests: expected a whole number from 1 on" in result.out
