"""The public fixtures; a user's conftest may override each.

Registered with the entry point, since pytest lets only what is registered later override a fixture. Loaded in every
project, hence imports what is heavy where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.drive.base import Agent
    from pytest_dataclaw.judge.base import Judge
    from pytest_dataclaw.plugin.activation import Run
    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.proxy.base import Proxy
    from pytest_dataclaw.settings import Settings

_JUDGE_PATIENCE_SECONDS = 300.0
_JUDGE_TIMEOUT_SECONDS = 600.0
"""For one request, waits for the provider included."""


def _run(request: pytest.FixtureRequest) -> Run:
    from pytest_dataclaw.plugin.activation import RUN

    run = request.config.stash.get(RUN, None)
    if run is None:
        pytest.fail("the dataclaw fixtures exist in a run with benchmark tasks only", pytrace=False)
    return run


@pytest.fixture(scope="session")
def dataclaw_settings(request: pytest.FixtureRequest) -> Settings:
    """The run's settings, resolved and checked."""
    return _run(request).settings


@pytest.fixture(scope="session")
def dataclaw_proxy(request: pytest.FixtureRequest) -> Proxy:
    """The way to the run's model proxy: leases and what went over them."""
    from pytest_dataclaw.proxy.client import ProxyClient

    address = _run(request).address
    assert address is not None  # the controller starts the proxy before the first trial
    return ProxyClient(address)


@pytest.fixture
def dataclaw_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The trial's sandbox, provisioned; stopped and removed at the end."""
    with request.node.trial.provision(_run(request).provider) as sandbox:
        yield sandbox


@pytest.fixture
def dataclaw_agent(dataclaw_settings: Settings) -> Agent:
    """The agent under test."""
    from pytest_dataclaw.plugin.assembly import make_agent

    return make_agent(dataclaw_settings)


@pytest.fixture
def dataclaw_judge(
    request: pytest.FixtureRequest, dataclaw_settings: Settings, dataclaw_proxy: Proxy
) -> Iterator[Judge]:
    """The judge whose word is the score; an LLM judge speaks through a lease of its own."""
    from pytest_dataclaw.judge.llm import LLMJudge
    from pytest_dataclaw.judge.rules import RulesJudge
    from pytest_dataclaw.proxy.base import LeaseRequest

    if dataclaw_settings.judge == "rules":
        yield RulesJudge()
        return
    trial = request.node.trial
    journal = trial.folder.path / "judge_exchanges.jsonl"
    request_of = LeaseRequest(trial.key, "judge", dataclaw_settings.judge, journal, patience=_JUDGE_PATIENCE_SECONDS)
    lease = dataclaw_proxy.open_lease(request_of)
    try:
        yield LLMJudge(lease.endpoint, dataclaw_settings.judge, timeout=_JUDGE_TIMEOUT_SECONDS)
    finally:
        dataclaw_proxy.close_lease(lease)
