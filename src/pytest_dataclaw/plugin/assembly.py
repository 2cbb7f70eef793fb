"""From settings to the parts of a run: the model proxy, what makes sandboxes, the agent.

The only place where stages meet: what one needs of another (the judge that the proxy plays) is put in here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError, UsageError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from pytest_dataclaw.drive.base import Agent
    from pytest_dataclaw.drive.openclaw.config import Profile, WebSearch
    from pytest_dataclaw.model.task import Brief
    from pytest_dataclaw.provision.base import SandboxProvider
    from pytest_dataclaw.proxy.base import Role
    from pytest_dataclaw.proxy.egress_policy import Scheme
    from pytest_dataclaw.proxy.server import ProxyServer
    from pytest_dataclaw.proxy.upstreams.base import Upstream
    from pytest_dataclaw.settings import Settings

_GRACE_SECONDS = 300.0
"""What a container lives on after its task's time: OpenClaw's start, and the transcript's way out."""


def make_proxy(settings: Settings) -> ProxyServer:
    """Make the model proxy: the built-in players, or the endpoints that serve the run's model and judge.

    The deterministic judge plays the LLM judge `oracle`. UsageError where a model has no endpoint.
    """
    from pytest_dataclaw.judge.played import PlayedJudge
    from pytest_dataclaw.judge.rules import RulesJudge
    from pytest_dataclaw.proxy.egress_policy import EgressPolicy
    from pytest_dataclaw.proxy.redaction import Redactor
    from pytest_dataclaw.proxy.server import ProxyServer
    from pytest_dataclaw.proxy.upstreams.endpoints import resolve_upstream
    from pytest_dataclaw.proxy.upstreams.nop import NopUpstream
    from pytest_dataclaw.proxy.upstreams.oracle import OracleUpstream
    from pytest_dataclaw.proxy.upstreams.played import PlayedUpstream

    upstreams: dict[tuple[Role, str], Upstream] = {
        ("agent", "oracle"): OracleUpstream(),
        ("agent", "nop"): NopUpstream(),
        ("judge", "oracle"): PlayedUpstream(PlayedJudge(RulesJudge()).reply),
    }
    if ("agent", settings.model) not in upstreams:
        upstreams["agent", settings.model] = resolve_upstream(settings.model, "agent", settings.variables)
    if settings.judge != "rules" and ("judge", settings.judge) not in upstreams:
        upstreams["judge", settings.judge] = resolve_upstream(settings.judge, "judge", settings.variables)
    policy, slots = EgressPolicy(upstreams=_proxies(settings)), _slots(upstreams, settings.max_concurrency)
    return ProxyServer(upstreams, Redactor(settings.secrets), policy, slots)


def _slots(
    upstreams: Mapping[tuple[Role, str], Upstream], limit: int | None
) -> dict[tuple[Role, str], asyncio.Semaphore]:
    """Return what lets so many requests at once through to each provider, agent's and judge's together."""
    from pytest_dataclaw.proxy.upstreams.http import HttpUpstream

    providers = {served: up.base_url for served, up in upstreams.items() if isinstance(up, HttpUpstream)}
    if limit is None or not providers:
        return {}
    import asyncio

    slots = {base_url: asyncio.Semaphore(limit) for base_url in providers.values()}
    return {served: slots[base_url] for served, base_url in providers.items()}


def make_provider(settings: Settings) -> SandboxProvider:
    """Make what provides this process's sandboxes; nothing is started yet."""
    if settings.sandbox == "local":
        from pytest_dataclaw.provision.local import LocalProvider

        return LocalProvider()
    from pytest_dataclaw.provision.docker import DockerProvider

    def seconds_for(brief: Brief) -> float:
        # Twice the time: what the proxy waits for a provider is added to the trial's own, at most once over.
        return 2 * brief.timeout_seconds * settings.timeout_multiplier + _GRACE_SECONDS

    return DockerProvider(_image(settings), seconds_for=seconds_for, packages=settings.output / ".packages")


def make_agent(settings: Settings) -> Agent:
    """Make the agent under test; UsageError where a variable that describes its model is wrong."""
    if settings.agent == "react":
        from pytest_dataclaw.drive.react import ReactAgent

        return ReactAgent()
    from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
    from pytest_dataclaw.drive.openclaw.config import ModelCard

    usual = ModelCard()
    card = ModelCard(
        context_window=int(_number(settings, "OPENCLAW_MODEL_CONTEXT_WINDOW", usual.context_window)),
        max_tokens=int(_number(settings, "OPENCLAW_MODEL_MAX_TOKENS", usual.max_tokens)),
        cost_input=_number(settings, "OPENCLAW_MODEL_COST_INPUT", 0.0),
        cost_output=_number(settings, "OPENCLAW_MODEL_COST_OUTPUT", 0.0),
        cost_cache_read=_number(settings, "OPENCLAW_MODEL_COST_CACHE_READ", 0.0),
        cost_cache_write=_number(settings, "OPENCLAW_MODEL_COST_CACHE_WRITE", 0.0),
    )
    profile: Profile = "lean" if settings.profile == "lean" else "upstream"
    return OpenClawAgent(profile, card=card, search=_search(settings))


def web_search_off(settings: Settings) -> str:
    """Say why there is no web search in web tasks; "" where there is, or where the agent has no tool for it."""
    if settings.agent != "openclaw":
        return ""
    if settings.profile == "lean":
        return "profile lean has none"
    return "" if "BRAVE_API_KEY" in settings.variables else "BRAVE_API_KEY is not set"


def check_machine(settings: Settings) -> None:
    """Raise UsageError where the sandboxes that are asked for cannot be had here; cheap, starts nothing.

    What dead runs left behind is removed on the way.
    """
    make_agent(settings)
    if settings.sandbox == "local":
        return
    from contextlib import closing

    from pytest_dataclaw.provision.engine import connect
    from pytest_dataclaw.provision.image import inspect
    from pytest_dataclaw.provision.sweep import sweep

    try:
        with closing(connect()) as client:
            inspect(client, _image(settings))
        sweep()
    except SandboxError as error:
        raise UsageError(f"--dataclaw-sandbox=docker: {error}") from error


def _search(settings: Settings) -> WebSearch | None:
    from pytest_dataclaw.drive.openclaw.config import WebSearch

    most = _whole(settings, "BRAVE_WEB_SEARCH_MAX_RESULTS", 5)
    seconds = _whole(settings, "BRAVE_WEB_SEARCH_TIMEOUT_SECONDS", 30)
    key = settings.variables.get("BRAVE_API_KEY")
    return None if key is None else WebSearch(key, most, seconds)


def _proxies(settings: Settings) -> dict[Scheme, str]:
    """Return the proxies that web tasks' traffic has to go through after ours, by scheme."""
    from urllib.parse import urlsplit

    names: dict[Scheme, str] = {"http": "HTTP_PROXY_INNER", "https": "HTTPS_PROXY_INNER"}
    proxies: dict[Scheme, str] = {}
    for scheme, name in names.items():
        if not (text := settings.variables.get(name)):
            continue
        try:
            url = urlsplit(text)
            usable = url.scheme == "http" and url.hostname is not None and url.port != 0
        except ValueError:
            usable = False
        if not usable:  # its value may hold a password
            raise UsageError(f"{name}: expected the URL of an HTTP proxy, http://host:port")
        # The published benchmark's variables tell where a container sees the proxy; ours is on this machine.
        proxies[scheme] = text.replace("host.docker.internal", "127.0.0.1", 1)
    return proxies


def _image(settings: Settings) -> str:
    from pytest_dataclaw.provision.image import LOCAL_IMAGE

    return settings.variables.get("DOCKER_IMAGE", LOCAL_IMAGE)


def _whole(settings: Settings, name: str, default: int) -> int:
    value = _number(settings, name, default)
    if value < 1 or value != int(value):
        raise UsageError(f"{name}: expected a whole number from 1 on, got {settings.variables[name]!r}")
    return int(value)


def _number(settings: Settings, name: str, default: float) -> float:
    text = settings.variables.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name}: expected a number from 0 on, got {text!r}")
    return value
