"""Which endpoint a model resolves to, from a mapping of variables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.proxy.upstreams.endpoints import resolve_upstream

if TYPE_CHECKING:
    from pytest_dataclaw.proxy.base import Role

CUSTOM = {"OPENCLAW_CUSTOM_BASE_URL": "https://api.example.com/v1/", "OPENCLAW_CUSTOM_API_KEY": "custom-key"}
JUDGE = {"JUDGE_CUSTOM_BASE_URL": "https://judge.example.com/v1", "JUDGE_CUSTOM_API_KEY": "judge-key"}
ROUTER = {"OPENROUTER_API_KEY": "router-key"}


@pytest.mark.parametrize(
    ("variables", "role", "model", "expected"),
    [
        # Custom model, judge at OpenRouter.
        (CUSTOM | ROUTER, "agent", "vendor/big/m", ("https://api.example.com/v1", "custom-key", "vendor/big/m")),
        (CUSTOM | ROUTER, "judge", "openrouter/a/j", ("https://openrouter.ai/api/v1", "router-key", "a/j")),
        # OpenRouter for both.
        (ROUTER, "agent", "openrouter/a/m:free", ("https://openrouter.ai/api/v1", "router-key", "a/m:free")),
        (ROUTER, "judge", "openrouter/a/j", ("https://openrouter.ai/api/v1", "router-key", "a/j")),
        # Custom model, custom judge.
        (CUSTOM | JUDGE, "agent", "m", ("https://api.example.com/v1", "custom-key", "m")),
        (CUSTOM | JUDGE, "judge", "j", ("https://judge.example.com/v1", "judge-key", "j")),
        # Ids on the wire; the agent's is never the judge's.
        (
            CUSTOM | {"OPENCLAW_CUSTOM_MODEL_ID": "a/b"},
            "agent",
            "m",
            ("https://api.example.com/v1", "custom-key", "a/b"),
        ),
        (CUSTOM | {"OPENCLAW_CUSTOM_MODEL_ID": "a/b"}, "judge", "j", ("https://api.example.com/v1", "custom-key", "j")),
        (CUSTOM | {"JUDGE_CUSTOM_MODEL_ID": "c"}, "judge", "j", ("https://api.example.com/v1", "custom-key", "c")),
        (CUSTOM | {"JUDGE_CUSTOM_API_KEY": "k2"}, "judge", "j", ("https://api.example.com/v1", "k2", "j")),
        (
            JUDGE | {"JUDGE_CUSTOM_MODEL_ID": "c"},
            "judge",
            "openrouter/a/j",
            ("https://judge.example.com/v1", "judge-key", "c"),
        ),
        (CUSTOM | JUDGE | ROUTER, "agent", "openrouter/a/m", ("https://openrouter.ai/api/v1", "router-key", "a/m")),
        # The host as a container names it, spaces around, an empty variable.
        (
            CUSTOM | {"OPENCLAW_CUSTOM_BASE_URL": " http://host.docker.internal:8000/v1 ", "JUDGE_CUSTOM_BASE_URL": ""},
            "agent",
            "m",
            ("http://127.0.0.1:8000/v1", "custom-key", "m"),
        ),
        (
            CUSTOM | {"OPENCLAW_CUSTOM_BASE_URL": "http://host.docker.internal"},
            "judge",
            "j",
            ("http://127.0.0.1", "custom-key", "j"),
        ),
        (
            CUSTOM | {"OPENCLAW_CUSTOM_BASE_URL": "http://[::1]:8000"},
            "agent",
            "m",
            ("http://[::1]:8000", "custom-key", "m"),
        ),
    ],
)
def test_a_model_is_resolved_from_the_variables_alone(
    variables: dict[str, str], role: Role, model: str, expected: tuple[str, str, str]
) -> None:
    upstream = resolve_upstream(model, role, variables)
    assert (upstream.base_url, upstream._api_key, upstream.model_id) == expected


@pytest.mark.parametrize(
    ("variables", "role", "model", "message"),
    [
        (CUSTOM, "agent", "openrouter/a/m", "model 'openrouter/a/m': set OPENROUTER_API_KEY"),
        (ROUTER, "agent", "m", "model 'm': set OPENCLAW_CUSTOM_BASE_URL .* or name the model openrouter/"),
        (ROUTER, "judge", "j", "judge 'j': set OPENCLAW_CUSTOM_BASE_URL .* or JUDGE_CUSTOM_BASE_URL"),
        ({"OPENCLAW_CUSTOM_BASE_URL": "http://x/v1"}, "agent", "m", "set OPENCLAW_CUSTOM_API_KEY"),
        (CUSTOM | {"OPENCLAW_CUSTOM_API_KEY": " "}, "agent", "m", "set OPENCLAW_CUSTOM_API_KEY"),
        # The agent's key must not go to the judge's endpoint.
        (CUSTOM | {"JUDGE_CUSTOM_BASE_URL": "http://x/v1"}, "judge", "j", "set JUDGE_CUSTOM_API_KEY"),
        (JUDGE | ROUTER, "judge", "openrouter/a/j", "JUDGE_CUSTOM_MODEL_ID, or unset JUDGE_CUSTOM_BASE_URL"),
    ],
)
def test_what_is_missing_is_named(variables: dict[str, str], role: Role, model: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_upstream(model, role, variables)


@pytest.mark.parametrize(
    "url",
    [
        "api.example.com/v1",
        "ftp://api.example.com/v1",
        "https:///v1",
        "https://api.example.com:port/v1",
        "https://api.example.com:99999/v1",
        "https://[bad/v1",
        "https://user:hunter2@api.example.com/v1",
        "https://api.example.com/v1?key=hunter2",
        "https://api.example.com/v1/chat/completions/",
    ],
)
def test_a_wrong_base_url_is_named_and_what_is_expected_but_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=r"OPENCLAW_CUSTOM_BASE_URL: expected .*/v1") as wrong:
        resolve_upstream("m", "agent", CUSTOM | {"OPENCLAW_CUSTOM_BASE_URL": url})
    assert "hunter2" not in str(wrong.value)
