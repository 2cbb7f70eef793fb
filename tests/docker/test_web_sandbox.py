"""Containers of web tasks: one way out, through the egress proxy, on record; and none in those of other tasks."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
from pytest_dataclaw.drive.openclaw.config import WebSearch
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.run import Deadline, TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision.docker import DockerProvider
from pytest_dataclaw.proxy.base import Egress, LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.egress_policy import EgressPolicy
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.base import completion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from docker import DockerClient

    from pytest_dataclaw.drive.base import AgentRun
    from pytest_dataclaw.model.trajectory import Traffic
    from pytest_dataclaw.provision.base import Sandbox

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

KEY = TrialKey("run-of-the-web-tests", "tasks/w.md::w", "w")
SEARCH_KEY = "brave-canary-0123456789"
SEARCH_HOST = "api.search.brave.com"
SITE = "site.test"
"""A name that leads to this machine while a test runs."""
PAGE = "The population of Zean is 4711."


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"<html><body><p>{PAGE}</p></body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a web server on all addresses of this machine, which is the only site that has a name."""
    look_up = socket.getaddrinfo

    def fake(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host in (SITE, SEARCH_HOST):
            address = "127.0.0.1" if host == SITE else "10.0.0.1"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        return look_up(host, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", fake)
    with ThreadingHTTPServer(("0.0.0.0", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


class Scripted:
    """A model that calls its tools one by one and then answers."""

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> None:
        self._calls = calls
        self.results: list[str] = []

    async def aclose(self) -> None:
        pass

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        self.results = [json.dumps(message["content"]) for message in request["messages"] if message["role"] == "tool"]
        if len(self.results) == len(self._calls):
            return completion(request, {"content": "4711"})
        name, arguments = self._calls[len(self.results)]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call{len(self.results)}", "type": "function", "function": function}
        return completion(request, {"content": None, "tool_calls": [call]})


def brief_of(folder: Path, *, web: bool) -> Brief:
    source = folder / "a.csv"
    source.write_text("x\n1\n")
    files = (WorkspaceFile(source, PurePosixPath("database/a.csv")),)
    return Brief("w", "w", "c", "easy", "How many?", 300.0, files, web=web)


@contextmanager
def trial(provider: DockerProvider, folder: Path, port: int, model: Scripted, *, web: bool) -> Iterator[Any]:
    """Enter a sandbox whose lease is open; yields it, the endpoint, and a function that closes the lease."""
    policy = EgressPolicy(ports=frozenset({port, 80, 443}), allowed=("127.0.0.0/8",))
    with (
        ProxyServer({("agent", "scripted"): model}, Redactor({"BRAVE_API_KEY": SEARCH_KEY}), policy) as address,
        provider.provision(brief_of(folder, web=web), KEY) as sandbox,
    ):
        client = ProxyClient(address)
        egress = Egress(sandbox.egress_socket, folder / "egress.jsonl") if sandbox.egress_socket else None
        journal = folder / "exchanges.jsonl"
        lease = client.open_lease(LeaseRequest(KEY, "agent", "scripted", journal, socket=sandbox.socket, egress=egress))
        yield sandbox, lease.endpoint, lambda: client.close_lease(lease)


def run(sandbox: Sandbox, command: str) -> str:
    return sandbox.exec(command, timeout=20).output


def variables(sandbox: Sandbox) -> dict[str, str]:
    lines = [line.partition("=") for line in run(sandbox, "env").splitlines()]
    return {name: value for name, _, value in lines if name.lower().endswith("_proxy")}


def test_the_proxy_is_the_only_way_out_and_puts_it_on_record(
    provider: DockerProvider, client: DockerClient, tmp_path: Path, port: int
) -> None:
    gateway = str(ip_network(client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"])[1])
    socket.create_connection((gateway, port), timeout=9).close()
    with trial(provider, tmp_path, port, Scripted([]), web=True) as (sandbox, _, close):
        assert sandbox.sealed is False
        proxy, exempt = "http://127.0.0.1:18998", "127.0.0.1,localhost"
        expected = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": exempt}
        assert variables(sandbox) == expected | {name.lower(): value for name, value in expected.items()}
        url = f"http://{SITE}:{port}/"
        assert PAGE in run(sandbox, f"curl -sS -m 9 {url}")
        assert PAGE in run(sandbox, f"curl -sS -m 9 --proxytunnel {url}")
        fetch = f"import urllib.request; print(urllib.request.urlopen('{url}').read().decode())"
        assert PAGE in run(sandbox, f'python3 -c "{fetch}"')
        assert "is not a public address" in run(sandbox, "curl -sS -m 9 http://169.254.169.254/latest/")
        assert run(sandbox, "ls /sys/class/net; tail -n +2 /proc/net/route") == "lo\n"
        for address in (gateway, "127.0.0.1"):
            direct = sandbox.exec(f"curl -sS -m 9 --noproxy '*' http://{address}:{port}/", timeout=20)
            assert direct.exit_code == 7, direct.output
        traffic = close()
    assert (traffic.hosts, traffic.refused_hosts) == ({SITE: 3}, {"169.254.169.254": 1})
    rows = [json.loads(line) for line in (tmp_path / "egress.jsonl").read_text("utf-8").splitlines()]
    assert [(row["method"], row["host"], row["status"]) for row in rows] == [
        ("GET", SITE, 200),
        ("CONNECT", SITE, 200),
        ("GET", SITE, 200),
        ("GET", "169.254.169.254", 403),
    ]


def test_another_task_has_no_proxy_and_no_way_out(provider: DockerProvider, tmp_path: Path, port: int) -> None:
    with trial(provider, tmp_path, port, Scripted([]), web=False) as (sandbox, _, close):
        assert sandbox.sealed is True
        assert sandbox.egress_socket is None
        assert variables(sandbox) == {}
        assert run(sandbox, "ls /run/dataclaw/egress.sock; ls /sys/class/net").endswith("directory\nlo\n")
        assert sandbox.exec("curl -sS -m 9 -x http://127.0.0.1:18998 http://example.com", timeout=20).exit_code == 7
        assert close().hosts is None


def test_the_proxies_of_the_users_own_docker_stay_outside(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "docker" / "config.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"proxies": {"default": {"httpProxy": "http://me:secret@proxy.invalid:1"}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(settings.parent))
    fresh = DockerProvider(image, seconds_for=lambda brief: 60, packages=tmp_path / "packages")
    try:
        with fresh.provision(brief_of(tmp_path, web=False), KEY) as sandbox:
            assert variables(sandbox) == {}
    finally:
        fresh.close()


def drive(
    provider: DockerProvider, folder: Path, port: int, model: Scripted, *, web: bool
) -> tuple[AgentRun, Traffic, bool]:
    """Return OpenClaw's run, what went over the proxy, and whether the search key was in the container."""
    agent = OpenClawAgent("upstream", search=WebSearch(SEARCH_KEY))
    with trial(provider, folder, port, model, web=web) as (sandbox, endpoint, close):
        ended = agent.run(brief_of(folder, web=web), sandbox, endpoint, Deadline(150))
        found = run(sandbox, f"grep --recursive --files-with-matches {SEARCH_KEY} ~ /tmp /proc/[0-9]*/environ")
        return ended, close(), ".openclaw/openclaw.json" in found


def test_openclaws_own_web_tools_go_through_the_proxy(provider: DockerProvider, tmp_path: Path, port: int) -> None:
    """Even `web_fetch`, which looks names up and connects by itself wherever it can."""
    url = f"http://{SITE}:{port}/page"
    model = Scripted(
        [
            ("web_fetch", {"url": url}),
            ("web_search", {"query": "population of Zean"}),
            ("exec", {"command": f"curl -sS {url}; echo options=${{NODE_OPTIONS:-none}}"}),
            ("web_fetch", {"url": "http://169.254.169.254/latest/meta-data"}),
        ]
    )
    ended, traffic, has_key = drive(provider, tmp_path, port, model, web=True)
    assert ended.end_reason is EndReason.ANSWERED, ended.log
    fetched, searched, shell, metadata = model.results
    assert PAGE in fetched
    assert PAGE in shell
    assert "options=none" in shell
    assert PAGE not in searched + metadata
    assert traffic.hosts == {SITE: 2}
    assert traffic.refused_hosts == {SEARCH_HOST: 1}
    assert has_key
    assert SEARCH_KEY not in (tmp_path / "exchanges.jsonl").read_text("utf-8")


def test_the_search_key_does_not_enter_other_tasks(provider: DockerProvider, tmp_path: Path, port: int) -> None:
    ended, traffic, has_key = drive(provider, tmp_path, port, Scripted([]), web=False)
    assert ended.end_reason is EndReason.ANSWERED, ended.log
    assert not has_key
    assert traffic.hosts is None
