"""Web tasks from the settings' side: the search key, further proxies, and what the summary says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from record_samples import solved
from test_report_summary import facts

from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
from pytest_dataclaw.drive.openclaw.config import WebSearch
from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.plugin.assembly import make_agent, make_proxy, web_search_off
from pytest_dataclaw.report.summary import summarize
from pytest_dataclaw.report.text import render
from pytest_dataclaw.settings import Settings, Sources, resolve

OPENCLAW = {"model": "oracle", "agent": "openclaw"}


def settings(command_line: dict[str, Any] = OPENCLAW, /, **variables: str) -> Settings:
    sources = Sources(command_line=command_line, environ=variables)
    return resolve(sources, invocation_dir=Path("/here"), base_dir=Path("/base"))


def search_of(**variables: str) -> WebSearch | None:
    agent = make_agent(settings(**variables))
    assert isinstance(agent, OpenClawAgent)
    return agent._search


def test_search_takes_key_and_limits_from_the_variables() -> None:
    assert search_of() is None
    assert search_of(BRAVE_API_KEY="k") == WebSearch("k", 5, 30)
    limits = {"BRAVE_WEB_SEARCH_MAX_RESULTS": "7", "BRAVE_WEB_SEARCH_TIMEOUT_SECONDS": "9"}
    assert search_of(BRAVE_API_KEY="k", **limits) == WebSearch("k", 7, 9)
    assert settings(BRAVE_API_KEY="k", **limits).notes == ()


@pytest.mark.parametrize("value", ["0", "2.5", "many", "-1"])
@pytest.mark.parametrize("name", ["BRAVE_WEB_SEARCH_MAX_RESULTS", "BRAVE_WEB_SEARCH_TIMEOUT_SECONDS"])
def test_a_limit_that_is_none_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        search_of(**{name: value})


def test_why_search_is_off() -> None:
    assert web_search_off(settings()) == "BRAVE_API_KEY is not set"
    assert web_search_off(settings(BRAVE_API_KEY="k")) == ""
    assert web_search_off(settings({**OPENCLAW, "profile": "lean"}, BRAVE_API_KEY="k")) == "profile lean has none"
    assert web_search_off(settings({"model": "oracle"})) == ""


def test_further_proxies_go_to_the_egress_proxy_as_seen_from_here() -> None:
    given = {
        "HTTP_PROXY_INNER": "http://u:p@10.0.0.1:3128",
        "HTTPS_PROXY_INNER": "http://host.docker.internal:7890",
    }
    assert make_proxy(settings(**given))._egress.upstreams == {
        "http": "http://u:p@10.0.0.1:3128",
        "https": "http://127.0.0.1:7890",
    }
    assert make_proxy(settings())._egress.upstreams == {}


@pytest.mark.parametrize("value", ["proxy:3128", "https://proxy:3128", "socks5://proxy:1080", "http://", "http://p:x"])
def test_what_is_no_proxy_is_named_without_its_password(value: str) -> None:
    with pytest.raises(UsageError, match="HTTPS_PROXY_INNER: expected the URL of an HTTP proxy") as caught:
        make_proxy(settings(HTTPS_PROXY_INNER=value))
    assert value not in str(caught.value).replace("http://host:port", "")


def block(off: str, *extras: dict[str, Any]) -> list[str]:
    records = [solved(number, extra=extra) for number, extra in enumerate(extras)]
    told = facts(planned=len(records), total=len(records), web_search_off=off)
    return [line for line in render(summarize(records, told)) if "web" in line]


def test_the_summary_tells_of_the_web_where_there_were_web_tasks() -> None:
    one = {"hosts": {"a.org": 3, "b.org": 1}, "refused_hosts": {"10.0.0.1": 2}}
    two = {"hosts": {"a.org": 1}, "refused_hosts": {}}
    counts = "web          2 trials, 5 requests to 2 hosts, 2 refused"
    assert block("", one, {}, two) == [counts]
    assert block("no key", one, two) == [counts, "             web search off: no key"]
    assert block("no key", {}, {}) == []
