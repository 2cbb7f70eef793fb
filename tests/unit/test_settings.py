"""Precedence, conversion and defaults of the option table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.options import OPTIONS, VARIABLES
from pytest_dataclaw.settings import Settings, Sources, check_runnable, resolve

HERE, BASE = Path("/here"), Path("/base")


def _resolve(**sources: Any) -> Settings:
    return resolve(Sources(**sources), invocation_dir=HERE, base_dir=BASE)


def test_command_line_beats_environment_beats_dotenv_beats_ini_beats_default() -> None:
    layers: dict[str, Any] = {
        "ini": {"dataclaw_runs": "2"},
        "dotenv": {"BENCHMARK_RUNS": "3"},
        "environ": {"BENCHMARK_RUNS": "4"},
        "command_line": {"runs": "5"},
    }
    given: dict[str, Any] = {}
    assert _resolve().runs == 1
    for expected, (name, values) in enumerate(layers.items(), start=2):
        given[name] = values
        assert _resolve(**given).runs == expected
    assert _resolve(**given).sources["runs"] == "command line"


def test_empty_variables_count_as_unset() -> None:
    assert _resolve(environ={"BENCHMARK_RUNS": ""}, dotenv={"BENCHMARK_RUNS": "3"}).runs == 3
    assert _resolve(dotenv={"DEFAULT_MODEL": None}).model == ""


@pytest.mark.parametrize(
    ("sources", "named"),
    [
        ({"command_line": {"runs": "0"}}, "--dataclaw-runs: expected a whole number"),
        ({"environ": {"BENCHMARK_RUNS": "many"}}, "environment variable BENCHMARK_RUNS: expected"),
        (
            {"dotenv": {"BENCHMARK_TIMEOUT_MULTIPLIER": "nan"}},
            "BENCHMARK_TIMEOUT_MULTIPLIER in .env: expected a number",
        ),
        ({"command_line": {"timeout_multiplier": "inf"}}, "above 0"),
        ({"command_line": {"timeout_multiplier": "-1"}}, "above 0"),
        ({"ini": {"dataclaw_process": "some"}}, "dataclaw_process in the ini file: expected one of unsolved, all, off"),
        ({"environ": {"DATACLAW_RESUME": "perhaps"}}, "DATACLAW_RESUME: expected a boolean"),
        ({"command_line": {"agent": "robot"}}, "--dataclaw-agent: expected one of react, openclaw"),
    ],
)
def test_a_bad_value_names_where_it_stands_and_what_was_expected(sources: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        _resolve(**sources)
    assert named in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("true", True), ("Yes", True), ("1", True), ("off", False), ("0", False)])
def test_switches_read_the_usual_words(text: str, value: bool) -> None:
    assert _resolve(environ={"DATACLAW_SHOW_GOLD": text}).show_gold is value
    assert _resolve(environ={"DATACLAW_SHOW_GOLD": "false"}, command_line={"show_gold": True}).show_gold is True


def test_output_is_relative_to_where_it_was_said() -> None:
    assert _resolve().output == BASE / "output"
    assert _resolve(environ={"OUTPUT_SUBDIR": "results"}).output == BASE / "results"
    assert _resolve(command_line={"output": "results"}).output == HERE / "results"
    assert _resolve(command_line={"output": "/abs"}).output == Path("/abs")


@pytest.mark.parametrize(
    ("given", "agent", "sandbox"),
    [
        ({"model": "oracle"}, "react", "local"),
        ({"model": "oracle", "agent": "openclaw"}, "openclaw", "docker"),
        ({"model": "oracle", "sandbox": "docker"}, "react", "docker"),
        ({"model": "openrouter/x/y"}, "openclaw", "docker"),
        ({"model": "openrouter/x/y", "agent": "react"}, "react", "docker"),
        ({"model": "openrouter/x/y", "agent": "react", "sandbox": "local"}, "react", "local"),
        ({}, "react", "local"),
    ],
)
def test_agent_and_sandbox_follow_the_model(given: dict[str, str], agent: str, sandbox: str) -> None:
    settings = _resolve(command_line=given)
    assert (settings.agent, settings.sandbox) == (agent, sandbox)


def test_a_dotenv_never_makes_a_built_in_model_cost_money() -> None:
    settings = _resolve(command_line={"model": "oracle"}, dotenv={"JUDGE_MODEL": "openrouter/costly"})
    assert settings.judge == "rules"
    assert any("openrouter/costly" in note for note in settings.notes)
    assert _resolve(command_line={"model": "oracle", "judge": "oracle"}).judge == "oracle"
    assert (
        _resolve(command_line={"model": "m"}, dotenv={"JUDGE_MODEL": "openrouter/costly"}).judge == "openrouter/costly"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "DEFAULT_MODEL"),
        ({"model": "openrouter/x"}, "JUDGE_MODEL"),
        ({"model": "oracle", "agent": "openclaw", "sandbox": "local"}, "needs a container"),
    ],
)
def test_what_cannot_be_run_says_the_ways_out(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_runnable(_resolve(command_line=given))


def test_secrets_are_known_by_name_and_never_shown() -> None:
    settings = _resolve(environ={"OPENROUTER_API_KEY": "sk-secret"}, dotenv={"JUDGE_CUSTOM_API_KEY": "sk-other"})
    assert settings.secrets == {"OPENROUTER_API_KEY": "sk-secret", "JUDGE_CUSTOM_API_KEY": "sk-other"}
    assert "sk-" not in repr(settings)
    assert not any(option.env.endswith("_KEY") for option in OPTIONS), "a secret is never an option"


def test_variables_that_are_not_used_are_named() -> None:
    notes = _resolve(environ={"GATEWAY_PORT": "18789"}).notes
    assert notes == ("GATEWAY_PORT is set (environment variable GATEWAY_PORT) but not used by this version",)
    assert len({v.name for v in VARIABLES}) == len(VARIABLES)
