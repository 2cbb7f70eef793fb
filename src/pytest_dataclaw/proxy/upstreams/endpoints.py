"""Which endpoint serves a model: OpenRouter by its prefix, the custom endpoints by their variables."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.proxy.upstreams.http import HttpUpstream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_dataclaw.proxy.base import Role

OPENROUTER_URL = "https://openrouter.ai/api/v1"
OPENROUTER_PREFIX = "openrouter/"
_HOST_FROM_CONTAINER = "host.docker.internal"


def resolve_upstream(
    model: str, role: Role, variables: Mapping[str, str], *, openrouter_url: str = OPENROUTER_URL
) -> HttpUpstream:
    """Return the upstream of a model; UsageError naming the variables where a URL or key is missing or wrong.

    A judge goes to JUDGE_CUSTOM_BASE_URL where that is set, whatever its name. Otherwise `openrouter/...` goes to
    OpenRouter and every other model to OPENCLAW_CUSTOM_BASE_URL, a judge with JUDGE_CUSTOM_API_KEY and _MODEL_ID where
    they are set. No other key is ever sent to the judge's own endpoint.
    """
    values = {name: value.strip() for name, value in variables.items()}
    if role == "judge" and values.get("JUDGE_CUSTOM_BASE_URL"):
        return _own_judge(model, values)
    if model.startswith(OPENROUTER_PREFIX):
        key = _need(values, "OPENROUTER_API_KEY", model, role)
        return HttpUpstream(openrouter_url, key, model_id=model.removeprefix(OPENROUTER_PREFIX))
    url = _base_url("OPENCLAW_CUSTOM_BASE_URL", _need(values, "OPENCLAW_CUSTOM_BASE_URL", model, role))
    # The agent's model id is not the judge's: a judge without an id of its own goes by its name.
    prefix = "JUDGE" if role == "judge" else "OPENCLAW"
    key = values.get(f"{prefix}_CUSTOM_API_KEY") or _need(values, "OPENCLAW_CUSTOM_API_KEY", model, role)
    return HttpUpstream(url, key, model_id=values.get(f"{prefix}_CUSTOM_MODEL_ID") or model)


def _own_judge(model: str, values: Mapping[str, str]) -> HttpUpstream:
    url = _base_url("JUDGE_CUSTOM_BASE_URL", values["JUDGE_CUSTOM_BASE_URL"])
    key = _need(values, "JUDGE_CUSTOM_API_KEY", model, "judge")
    model_id = values.get("JUDGE_CUSTOM_MODEL_ID", "")
    if not model_id and model.startswith(OPENROUTER_PREFIX):
        raise UsageError(
            f"judge {model!r}: JUDGE_CUSTOM_BASE_URL is set, so the judge is asked there and not at OpenRouter; "
            "name its model there in JUDGE_CUSTOM_MODEL_ID, or unset JUDGE_CUSTOM_BASE_URL"
        )
    return HttpUpstream(url, key, model_id=model_id or model)


def _need(values: Mapping[str, str], name: str, model: str, role: Role) -> str:
    if values.get(name):
        return values[name]
    who, ways_out = ("judge" if role == "judge" else "model"), ""
    if name == "OPENCLAW_CUSTOM_BASE_URL":
        own = "JUDGE_CUSTOM_BASE_URL for an endpoint of the judge's own, or " if role == "judge" else ""
        ways_out = f" to an OpenAI-compatible endpoint, or {own}name the {who} {OPENROUTER_PREFIX}..."
    raise UsageError(f"{who} {model!r}: set {name} in the environment or .env{ways_out}")


def _base_url(name: str, given: str) -> str:
    """Return a base URL without its trailing slash; the host as a container calls it becomes 127.0.0.1."""
    try:
        url = urlsplit(given)
        port, host = url.port, url.hostname
    except ValueError:
        raise _not_a_base_url(name) from None
    is_plain = not (url.username or url.password or url.query or url.fragment)
    is_base = not url.path.rstrip("/").endswith("/chat/completions")
    if url.scheme not in ("http", "https") or not host or not is_plain or not is_base:
        raise _not_a_base_url(name)
    if host == _HOST_FROM_CONTAINER:
        url = url._replace(netloc="127.0.0.1" if port is None else f"127.0.0.1:{port}")
    return urlunsplit(url).rstrip("/")


def _not_a_base_url(name: str) -> UsageError:
    # What was given is not repeated: in the wrong place it may hold a password.
    return UsageError(
        f"{name}: expected the http(s) URL that /chat/completions is appended to, usually ending in /v1 "
        "(https://api.example.com/v1), without user, query or fragment"
    )
