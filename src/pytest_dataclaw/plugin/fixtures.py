"""The public fixtures; a user's conftest may override each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.drive.react import ReactAgent
from pytest_dataclaw.judge.llm import LLMJudge
from pytest_dataclaw.judge.rules import RulesJudge
from pytest_dataclaw.plugin.activation import RUN
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.drive.base import Agent
    from pytest_dataclaw.judge.base import Judge
    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.proxy.base import Proxy
    from pytest_dataclaw.settings import Settings


@pytest.fixture(scope="session")
def dataclaw_settings(request: pytest.FixtureRequest) -> Settings:
    """The run's settings, resolved and checked."""
    return request.config.stash[RUN].settings


@pytest.fixture(scope="session")
def dataclaw_proxy(request: pytest.FixtureRequest) -> Proxy:
    """The way to the run's model proxy: leases and what went over them."""
    address = request.config.stash[RUN].address
    assert address is not None  # the controller starts the proxy before the first trial
    return ProxyClient(address)


@pytest.fixture
def dataclaw_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The trial's sandbox, provisioned; stopped and removed at the end."""
    with request.node.trial.provision(request.config.stash[RUN].provider) as sandbox:
        yield sandbox


@pytest.fixture
def dataclaw_agent() -> Agent:
    """The agent under test."""
    return ReactAgent()


@pytest.fixture
def dataclaw_judge(
    request: pytest.FixtureRequest, dataclaw_settings: Settings, dataclaw_proxy: Proxy
) -> Iterator[Judge]:
    """The judge whose word is the score; an LLM judge speaks through a lease of its own."""
    if dataclaw_settings.judge == "rules":
        yield RulesJudge()
        return
    trial = request.node.trial
    journal = trial.folder.path / "judge_exchanges.jsonl"
    lease = dataclaw_proxy.open_lease(LeaseRequest(trial.key, "judge", dataclaw_settings.judge, journal))
    try:
        yield LLMJudge(lease.endpoint, dataclaw_settings.judge)
    finally:
        dataclaw_proxy.close_lease(lease)
