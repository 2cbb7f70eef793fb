"""What the other stages may rely on: the Proxy protocol over the wire, and imports that stay light."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openai import OpenAI

from pytest_dataclaw.errors import ProviderError, UsageError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.trajectory import ToolCall, Traffic, Trajectory, Turn, Usage
from pytest_dataclaw.proxy.base import LeaseRequest, Script
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.control import (
    ControlAddress,
    lease_request_from_json,
    lease_request_to_json,
    traffic_from_json,
)
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.nop import NopUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.proxy.base import Proxy

KEY = TrialKey("run", "tasks/t.md::t[run2]", "t", 2)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
        yield ProxyClient(ControlAddress(**json.loads(json.dumps(asdict(address)))))


def request(tmp_path: Path, model: str = "nop") -> LeaseRequest:
    return LeaseRequest(KEY, "agent", model, tmp_path / "journal.jsonl")


def test_a_lease_grants_an_endpoint_on_loopback_for_its_model(proxy: Proxy, tmp_path: Path) -> None:
    one, two = proxy.open_lease(request(tmp_path)), proxy.open_lease(request(tmp_path))
    assert one.endpoint.base_url.startswith("http://127.0.0.1:")
    assert one.endpoint.base_url.endswith("/v1")
    assert one.endpoint.model == "nop"
    assert one.lease_id != two.lease_id
    assert one.endpoint.token != two.endpoint.token
    assert len(one.endpoint.token) >= 32


def test_an_unused_lease_has_no_traffic_and_no_journal(proxy: Proxy, tmp_path: Path) -> None:
    lease = proxy.open_lease(request(tmp_path))
    assert proxy.close_lease(lease) == proxy.close_lease(lease) == Traffic()
    assert not (tmp_path / "journal.jsonl").exists()


def test_the_usage_of_a_trial_covers_all_its_leases_in_a_role_and_no_others(proxy: Proxy, tmp_path: Path) -> None:
    traffics = []
    for _ in range(2):
        lease = proxy.open_lease(request(tmp_path))
        with OpenAI(base_url=lease.endpoint.base_url, api_key=lease.endpoint.token) as sdk:
            sdk.chat.completions.create(model="nop", messages=[{"role": "user", "content": "q"}])
        traffics.append(proxy.close_lease(lease))
    assert proxy.usage(KEY, "agent") == traffics[0].usage + traffics[1].usage
    assert proxy.usage(KEY, "agent").requests == 2
    assert proxy.usage(KEY, "judge") == proxy.usage(replace(KEY, repeat=1), "agent") == Usage()


def test_an_unserved_model_is_a_usage_error_that_names_the_served(proxy: Proxy, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'gpt' for the agent; served: nop"):
        proxy.open_lease(request(tmp_path, "gpt"))


def test_a_wrong_control_token_is_refused(proxy: Proxy, tmp_path: Path) -> None:
    lease = proxy.open_lease(request(tmp_path))
    url = lease.endpoint.base_url.removesuffix("/v1")
    for token in (lease.endpoint.token, "", "é"):
        stranger = ProxyClient(ControlAddress(url, token))
        assert not stranger.is_healthy()
        with pytest.raises(ProviderError):
            stranger.close_lease(lease)
    assert proxy.is_healthy()


def test_a_proxy_that_is_gone_is_a_provider_error(tmp_path: Path) -> None:
    with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
        client = ProxyClient(address)
        lease = client.open_lease(request(tmp_path))
    assert not client.is_healthy()
    for call in (lambda: client.open_lease(request(tmp_path)), lambda: client.close_lease(lease)):
        with pytest.raises(ProviderError, match="cannot be reached"):
            call()


def test_tokens_do_not_show_in_representations(proxy: Proxy, tmp_path: Path) -> None:
    lease = proxy.open_lease(request(tmp_path))
    assert lease.endpoint.token not in repr(lease)
    assert "hush" not in repr(ControlAddress("http://127.0.0.1:1", "hush"))


def test_requests_and_traffic_survive_the_control_interface() -> None:
    wanted = LeaseRequest(
        KEY, "judge", "m", Path("/x/密.jsonl"), Script(("print(1)\n", "print('é')"), "[1]"), None, 60.5, 7
    )
    assert lease_request_from_json(json.loads(json.dumps(lease_request_to_json(wanted)))) == wanted
    turns = Turn(1, "a", (ToolCall("c", "exec", "{"),), ("out",)), Turn(2, "b")
    traffic = Traffic(Trajectory(turns, 3), Usage(5, 1, 2, 3, 4, 5, 0.1, 1.5, 0.5), "why", 429, "no more")
    assert traffic_from_json(json.loads(json.dumps(asdict(traffic)))) == traffic


@pytest.mark.parametrize("module", ["base", "client", "control", "exchange", "trajectory", "upstreams.oracle"])
def test_what_workers_and_readers_import_brings_no_http_library(module: str) -> None:
    code = (
        f"import sys, pytest_dataclaw.proxy.{module}; print(sorted({{'aiohttp', 'openai', 'yaml'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
