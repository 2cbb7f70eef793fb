"""OpenClaw's configuration for one trial, in the schema of 2026.3.24, which refuses unknown keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_dataclaw.provision.base import PROGRAMS

if TYPE_CHECKING:
    from pytest_dataclaw.model.run import ModelEndpoint

Profile: TypeAlias = Literal["upstream", "lean"]

PROVIDER = "dataclaw"
LEAN_TOOLS = ("read", "write", "edit", "exec", "process")
OWN_TIMEOUT_SECONDS = 7 * 24 * 3600
"""OpenClaw's own limit for a turn: far above any trial's, as only the trial's deadline is to end one."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What OpenClaw is told of the model. `cost_*`: USD per million tokens.

    `thinking` is one of OpenClaw's levels (`off`, `low`, `medium`, `high`, ...), "" for its default; a level reaches
    the wire only where `reasoning` is set.
    """

    context_window: int = 128_000
    max_tokens: int = 16_384
    reasoning: bool = False
    thinking: str = ""
    input_types: tuple[str, ...] = ("text",)
    cost_input: float = 0.0
    cost_output: float = 0.0
    cost_cache_read: float = 0.0
    cost_cache_write: float = 0.0


@dataclass(frozen=True, slots=True)
class WebSearch:
    """Access to Brave's search API, the one key that may enter a sandbox, and only that of a web task."""

    api_key: str = field(repr=False)
    max_results: int = 5
    timeout_seconds: int = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """The OpenClaw of one trial. `home` and `workspace` are folders in the sandbox; `port` is the gateway's there.

    `web` says whether the task may use the web; `search` is used for such a task only, and without it there is no
    web search.
    """

    profile: Profile
    home: str
    workspace: str
    endpoint: ModelEndpoint
    card: ModelCard
    port: int
    gateway_token: str = field(repr=False)
    web: bool = False
    search: WebSearch | None = None


def configuration(plan: Plan) -> dict[str, Any]:
    """Return the content of `openclaw.json`.

    Profile `upstream` is what OpenClaw's own onboarding leaves behind, with the benchmark's changes to the model's
    entry, and less what a trial has no use for and no request shows (update check, mDNS, heartbeat, control UI).
    Profile `lean` is five tools, no plugins, no skills, and no files of OpenClaw's in the workspace.
    """
    model = f"{PROVIDER}/{plan.endpoint.model}"
    defaults: dict[str, Any] = {
        "model": {"primary": model},
        "models": {model: {}},
        "workspace": plan.workspace,
        "timeoutSeconds": OWN_TIMEOUT_SECONDS,
        "heartbeat": {"every": "0m"},
    }
    if plan.card.thinking:
        defaults["thinkingDefault"] = plan.card.thinking
    config: dict[str, Any] = {
        "models": {"mode": "merge", "providers": {PROVIDER: _provider(plan)}},
        "agents": {"defaults": defaults},
        "tools": _tools(plan),
        "browser": {"enabled": False},
        "canvasHost": {"enabled": False},
        "discovery": {"mdns": {"mode": "off"}},
        "update": {"checkOnStart": False},
        "gateway": {
            "port": plan.port,
            "mode": "local",
            "bind": "loopback",
            "auth": {"mode": "token", "token": plan.gateway_token},
            "controlUi": {"enabled": False},
        },
    }
    if plan.profile == "lean":
        defaults["skipBootstrap"] = True
        config["plugins"] = {"enabled": False}
        config["skills"] = {"allowBundled": ["none"]}
    elif plan.web and plan.search is not None:
        brave = {"enabled": True, "config": {"webSearch": {"apiKey": plan.search.api_key}}}
        config["plugins"] = {"entries": {"brave": brave}}
    return config


def agent_settings() -> dict[str, Any]:
    """Return the content of the agent's `settings.json`: only the model proxy repeats a request."""
    return {"retry": {"enabled": False}}


def environment(plan: Plan) -> dict[str, str]:
    """Return what the gateway needs in its environment, on top of the sandbox's own."""
    skipped = ("CHANNELS", "CRON", "CANVAS_HOST", "BROWSER_CONTROL_SERVER", "GMAIL_WATCHER")
    variables = {
        "HOME": plan.home,
        "OPENCLAW_NO_RESPAWN": "1",
        "OPENCLAW_DISABLE_BONJOUR": "1",
        **{f"OPENCLAW_SKIP_{name}": "1" for name in skipped},
    }
    if plan.web:
        variables["NODE_OPTIONS"] = f"--import={PROGRAMS}/web.mjs"
    if plan.profile == "lean":
        variables["OPENCLAW_BUNDLED_PLUGINS_DIR"] = no_plugins_folder(plan)
    return variables


def no_plugins_folder(plan: Plan) -> str:
    """Return the empty folder in which profile `lean` has OpenClaw look for its bundled plugins."""
    return f"{plan.home}/.openclaw/no-plugins"


def _provider(plan: Plan) -> dict[str, Any]:
    card, name = plan.card, plan.endpoint.model
    return {
        "baseUrl": plan.endpoint.base_url,
        "apiKey": plan.endpoint.token,
        "api": "openai-completions",
        "models": [
            {
                "id": name,
                "name": f"{name} (Custom Provider)",
                "reasoning": card.reasoning,
                "input": list(card.input_types),
                "cost": {
                    "input": card.cost_input,
                    "output": card.cost_output,
                    "cacheRead": card.cost_cache_read,
                    "cacheWrite": card.cost_cache_write,
                },
                "contextWindow": card.context_window,
                "maxTokens": card.max_tokens,
                "compat": {"supportsUsageInStreaming": True},
            }
        ],
    }


def _tools(plan: Plan) -> dict[str, Any]:
    if plan.profile == "lean":
        return {"allow": [*LEAN_TOOLS, *(["web_fetch"] if plan.web else [])]}
    tools: dict[str, Any] = {"profile": "coding"}
    if not plan.web:
        tools["deny"] = ["web_search", "web_fetch"]
    elif plan.search is None:
        tools["deny"] = ["web_search"]
    else:
        search = {"maxResults": plan.search.max_results, "timeoutSeconds": plan.search.timeout_seconds}
        tools["web"] = {"search": {"provider": "brave", **search}}
    return tools
