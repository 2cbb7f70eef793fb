"""A lease on a unix socket: served there as on loopback, and nothing but this one lease."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import stat
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import ProviderError, UsageError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.control import lease_request_from_json, lease_request_to_json
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.base import completion
from pytest_dataclaw.proxy.upstreams.nop import ANSWER, NopUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.proxy.control import ControlAddress

KEY = TrialKey("run", "tasks/t.md::t", "t")
QUESTION = {"model": "nop", "messages": [{"role": "user", "content": "q"}]}


class Slow:
    """Tells that it has been asked, then takes a minute."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def aclose(self) -> None:
        pass

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        import asyncio

        self.asked.set()
        await asyncio.sleep(60)
        return completion(request, {"content": "late"})


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def address(slow: Slow) -> Iterator[ControlAddress]:
    with ProxyServer({("agent", "nop"): NopUpstream(), ("agent", "slow"): slow}, Redactor({})) as address:
        yield address


@pytest.fixture
def proxy(address: ControlAddress) -> ProxyClient:
    return ProxyClient(address)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, as that of a socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="dclw-"))
    yield folder
    shutil.rmtree(folder)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(
    path: Path, token: str, route: str = "/v1/chat/completions", method: str = "POST", body: Any = QUESTION
) -> tuple[int, Any]:
    connection = UnixConnection(path)
    try:
        connection.request(method, route, json.dumps(body), {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def request(folder: Path, name: str = "a", model: str = "nop") -> LeaseRequest:
    return LeaseRequest(KEY, "agent", model, folder / f"{name}.jsonl", socket=folder / name)


def test_the_lease_is_served_on_its_socket_and_on_loopback(proxy: ProxyClient, folder: Path) -> None:
    lease = proxy.open_lease(request(folder))
    status, answer = ask(folder / "a", lease.endpoint.token)
    assert (status, answer["choices"][0]["message"]["content"]) == (200, ANSWER)
    assert ask(folder / "a", lease.endpoint.token, "/v1/models", "GET")[1]["data"][0]["id"] == "nop"
    host = lease.endpoint.base_url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request(
        "POST", "/v1/chat/completions", json.dumps(QUESTION), {"Authorization": f"Bearer {lease.endpoint.token}"}
    )
    assert connection.getresponse().status == 200
    connection.close()
    traffic = proxy.close_lease(lease)
    assert traffic.usage.requests == 2
    assert traffic.trajectory.answer == ANSWER


def test_anybody_may_connect_who_finds_the_socket(proxy: ProxyClient, folder: Path) -> None:
    lease = proxy.open_lease(request(folder))
    mode = (folder / "a").stat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o666)
    proxy.close_lease(lease)


def test_the_socket_is_gone_with_the_lease(proxy: ProxyClient, folder: Path) -> None:
    lease = proxy.open_lease(request(folder))
    idle = UnixConnection(folder / "a")
    idle.connect()
    first = proxy.close_lease(lease)
    assert not (folder / "a").exists()
    assert idle.sock.recv(1) == b""
    idle.close()
    assert proxy.close_lease(lease) == first
    assert proxy.is_healthy()


def test_a_socket_serves_no_other_lease(proxy: ProxyClient, folder: Path) -> None:
    one, two = proxy.open_lease(request(folder, "a")), proxy.open_lease(request(folder, "b"))
    plain = proxy.open_lease(replace(request(folder), socket=None))
    for path, token in [("a", two.endpoint.token), ("b", one.endpoint.token), ("a", plain.endpoint.token), ("a", "")]:
        status, answer = ask(folder / path, token)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
    assert ask(folder / "a", one.endpoint.token)[0] == ask(folder / "b", two.endpoint.token)[0] == 200
    assert [proxy.close_lease(lease).usage.requests for lease in (one, two, plain)] == [1, 1, 0]


def test_control_routes_do_not_exist_on_it(proxy: ProxyClient, folder: Path, address: ControlAddress) -> None:
    lease = proxy.open_lease(request(folder))
    routes = [
        ("/control/health", "GET"),
        ("/control/leases", "POST"),
        ("/control/ledger", "GET"),
        (f"/control/leases/{lease.lease_id}", "DELETE"),
    ]
    for route, method in routes:
        assert ask(folder / "a", lease.endpoint.token, route, method)[0] == 404
        assert ask(folder / "a", address.token, route, method)[0] == 401
    assert ask(folder / "a", lease.endpoint.token)[0] == 200
    proxy.close_lease(lease)


def test_closing_cuts_what_is_in_flight_on_the_socket(proxy: ProxyClient, folder: Path, slow: Slow) -> None:
    lease = proxy.open_lease(request(folder, model="slow"))
    cut = threading.Event()

    def wait() -> None:
        try:
            ask(folder / "a", lease.endpoint.token, body={**QUESTION, "model": "slow"})
        except (http.client.HTTPException, OSError):
            cut.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert slow.asked.wait(5)
    started = time.monotonic()
    traffic = proxy.close_lease(lease)
    thread.join()
    assert cut.is_set()
    assert time.monotonic() - started < 2
    assert (traffic.last_error, traffic.usage.requests) == ("", 1)


def test_the_proxys_end_removes_the_sockets_of_open_leases(folder: Path) -> None:
    with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
        ProxyClient(address).open_lease(request(folder))
        assert (folder / "a").exists()
    assert not (folder / "a").exists()


def test_a_path_that_is_too_long_is_refused(proxy: ProxyClient, folder: Path) -> None:
    fits = folder / ("x" * (103 - len(f"{folder}/")))
    proxy.close_lease(proxy.open_lease(replace(request(folder), socket=fits)))
    with pytest.raises(ProviderError, match="at most 103 bytes"):
        proxy.open_lease(replace(request(folder), socket=Path(f"{fits}x")))


def test_a_place_that_is_taken_or_missing_is_refused(proxy: ProxyClient, folder: Path) -> None:
    lease = proxy.open_lease(request(folder))
    with pytest.raises(ProviderError, match="already"):
        proxy.open_lease(request(folder))
    assert ask(folder / "a", lease.endpoint.token)[0] == 200
    with pytest.raises(ProviderError, match=r"cannot listen at .*missing/socket"):
        proxy.open_lease(replace(request(folder), socket=folder / "missing" / "socket"))
    proxy.close_lease(lease)
    proxy.close_lease(proxy.open_lease(request(folder)))


def test_no_socket_for_a_model_that_is_not_served(proxy: ProxyClient, folder: Path) -> None:
    with pytest.raises(UsageError):
        proxy.open_lease(request(folder, model="gpt"))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("path", [None, Path("/tmp/x/model.sock")])
def test_the_request_survives_the_control_interface(path: Path | None) -> None:
    wanted = LeaseRequest(KEY, "agent", "nop", Path("/j"), socket=path)
    assert lease_request_from_json(json.loads(json.dumps(lease_request_to_json(wanted)))) == wanted
