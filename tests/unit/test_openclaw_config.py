"""OpenClaw's configuration: what each profile and each kind of task gets."""

from __future__ import annotations

import json
from dataclasses import replace

from pytest_dataclaw.drive.openclaw.config import (
    ModelCard,
    Plan,
    WebSearch,
    agent_settings,
    configuration,
    environment,
)
from pytest_dataclaw.model.run import ModelEndpoint

PLAN = Plan(
    profile="upstream",
    home="/home/agent",
    workspace="/tmp_workspace",
    endpoint=ModelEndpoint("http://127.0.0.1:18999/v1", "lease-token", "maker/model-1"),
    card=ModelCard(),
    port=3333,
    gateway_token="gateway-token",
)
LEAN = replace(PLAN, profile="lean")
SEARCH = WebSearch("brave-key", max_results=7, timeout_seconds=9)


def test_model_is_the_leased_one_and_described_as_told() -> None:
    card = ModelCard(
        context_window=64_000,
        max_tokens=8_000,
        reasoning=True,
        thinking="high",
        input_types=("text", "image"),
        cost_input=1.25,
        cost_output=10.0,
        cost_cache_read=0.1,
        cost_cache_write=2.0,
    )
    config = configuration(replace(PLAN, card=card))
    (provider,) = config["models"]["providers"].values()
    assert (provider["baseUrl"], provider["apiKey"]) == ("http://127.0.0.1:18999/v1", "lease-token")
    (entry,) = provider["models"]
    assert entry == {
        "id": "maker/model-1",
        "name": "maker/model-1 (Custom Provider)",
        "reasoning": True,
        "input": ["text", "image"],
        "cost": {"input": 1.25, "output": 10.0, "cacheRead": 0.1, "cacheWrite": 2.0},
        "contextWindow": 64_000,
        "maxTokens": 8_000,
        "compat": {"supportsUsageInStreaming": True},
    }
    defaults = config["agents"]["defaults"]
    assert defaults["model"] == {"primary": "dataclaw/maker/model-1"}
    assert defaults["thinkingDefault"] == "high"
    assert "thinkingDefault" not in configuration(PLAN)["agents"]["defaults"]


def test_benchmark_defaults_of_the_model() -> None:
    (entry,) = configuration(PLAN)["models"]["providers"]["dataclaw"]["models"]
    assert (entry["contextWindow"], entry["maxTokens"], entry["reasoning"]) == (128_000, 16_384, False)


def test_gateway_listens_on_loopback_only_and_wants_its_token() -> None:
    gateway = configuration(PLAN)["gateway"]
    assert (gateway["bind"], gateway["port"]) == ("loopback", 3333)
    assert gateway["auth"] == {"mode": "token", "token": "gateway-token"}


def test_upstream_keeps_onboarding_defaults() -> None:
    config = configuration(PLAN)
    assert config["tools"]["profile"] == "coding"
    assert not {"plugins", "skills"} & set(config)
    assert not {"skipBootstrap", "compaction"} & set(config["agents"]["defaults"])
    assert "OPENCLAW_BUNDLED_PLUGINS_DIR" not in environment(PLAN)


def test_lean_has_five_tools_and_nothing_else() -> None:
    config = configuration(LEAN)
    assert config["tools"] == {"allow": ["read", "write", "edit", "exec", "process"]}
    assert config["plugins"] == {"enabled": False}
    assert config["skills"] == {"allowBundled": ["none"]}
    assert config["agents"]["defaults"]["skipBootstrap"] is True
    assert environment(LEAN)["OPENCLAW_BUNDLED_PLUGINS_DIR"].startswith("/home/agent/")


def test_web_tools_by_task() -> None:
    assert configuration(PLAN)["tools"]["deny"] == ["web_search", "web_fetch"]
    assert configuration(replace(PLAN, web=True))["tools"] == {"profile": "coding", "deny": ["web_search"]}
    searching = configuration(replace(PLAN, web=True, search=SEARCH))
    assert searching["tools"] == {
        "profile": "coding",
        "web": {"search": {"provider": "brave", "maxResults": 7, "timeoutSeconds": 9}},
    }
    assert searching["plugins"]["entries"]["brave"]["config"] == {"webSearch": {"apiKey": "brave-key"}}
    assert "web_fetch" in configuration(replace(LEAN, web=True))["tools"]["allow"]


def test_search_key_enters_web_tasks_only() -> None:
    assert "brave-key" not in json.dumps(configuration(replace(PLAN, search=SEARCH)))
    assert "brave-key" not in repr(replace(PLAN, search=SEARCH))


def test_web_tools_are_led_to_the_proxy_in_web_tasks_only() -> None:
    assert environment(replace(PLAN, web=True))["NODE_OPTIONS"] == "--import=/opt/dataclaw/web.mjs"
    assert "NODE_OPTIONS" not in environment(PLAN)


def test_no_token_in_repr() -> None:
    assert "lease-token" not in repr(PLAN)
    assert "gateway-token" not in repr(PLAN)


def test_only_the_proxy_retries() -> None:
    assert agent_settings() == {"retry": {"enabled": False}}


def test_environment_has_the_home_and_no_key() -> None:
    variables = environment(PLAN)
    assert variables["HOME"] == "/home/agent"
    assert variables["OPENCLAW_NO_RESPAWN"] == "1"
    assert not any("token" in value for value in variables.values())
