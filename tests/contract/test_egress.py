"""The way to the web: what gets through the egress proxy, what does not, and that both are on record."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import stat
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import ProviderError
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.proxy.base import Egress, LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.control import lease_request_from_json, lease_request_to_json
from pytest_dataclaw.proxy.egress_policy import EgressError, EgressPolicy, parse_request
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.nop import NopUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.model.trajectory import Traffic

KEY = TrialKey("run", "tasks/t.md::t", "t")
LOOPBACK = ("127.0.0.0/8",)
SECRET = "canary-key-12345"
PAGE = b"<p>a page</p>"
FORBIDDEN = [
    "127.0.0.1",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.17.0.1",
    "192.168.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
]


class Origin(ThreadingHTTPServer):
    """A web server that notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.seen: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Origin)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((f"{self.command} {self.path}", headers, body))
        self.send_response(200 if self.path != "/missing" else 404)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        pass


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back whatever it gets."""

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, as that of a unix socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="dclw-"))
    yield folder
    shutil.rmtree(folder)


class Trial:
    """A trial's side of an egress proxy with some policy."""

    def __init__(self, folder: Path, policy: EgressPolicy | None = None) -> None:
        self.folder = folder
        self._server = ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({"BRAVE_API_KEY": SECRET}), policy)
        self.client = ProxyClient(self._server.start())
        self.request = LeaseRequest(KEY, "agent", "nop", folder / "exchanges.jsonl", egress=self.egress)
        self.lease = self.client.open_lease(self.request)

    @property
    def egress(self) -> Egress:
        return Egress(self.folder / "egress.sock", self.folder / "trial" / "egress.jsonl")

    def close(self) -> Traffic:
        return self.client.close_lease(self.lease)

    def stop(self) -> None:
        self._server.stop()

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(str(self.egress.socket))
        return connection

    def ask(self, head: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return status and all that follows the head of the answer."""
        with self.connect() as connection:
            connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
            answer = drain(connection)
        first, _, rest = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), rest

    def is_cut(self, head: str) -> bool:
        """Tell whether a request is not even answered."""
        with self.connect() as connection, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(head.encode() + b"\r\n\r\n")
            return drain(connection) == b""
        return True

    def tunnel(self, host: str, port: int) -> socket.socket:
        connection = self.connect()
        connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        return connection

    def rows(self) -> list[dict[str, Any]]:
        """Close the lease and return the journal."""
        self.close()
        if not self.egress.journal.exists():
            return []
        return [json.loads(line) for line in self.egress.journal.read_text("utf-8").splitlines()]


def drain(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.fixture
def trials(folder: Path) -> Iterator[list[Trial]]:
    trials: list[Trial] = []
    yield trials
    for trial in trials:
        trial.stop()


@pytest.fixture
def strict(folder: Path, trials: list[Trial]) -> Trial:
    """A trial under the policy that is the default."""
    trials.append(Trial(folder))
    return trials[-1]


def open_to(port: int, folder: Path, trials: list[Trial], **limits: Any) -> Trial:
    """Return a trial that may reach a port of this machine."""
    trials.append(Trial(folder, EgressPolicy(ports=frozenset({port}), allowed=LOOPBACK, **limits)))
    return trials[-1]


class TestPlainRequests:
    def test_reaches_the_server_as_a_request_of_its_own(
        self, origin: Origin, folder: Path, trials: list[Trial]
    ) -> None:
        trial = open_to(origin.port, folder, trials)
        url = f"http://me:pw@LOCALHOST:{origin.port}/a/b?c=1&d"
        head = f"GET {url} HTTP/1.1\nHost: other\nAccept: x\nProxy-Connection: keep-alive\nProxy-Authorization: Basic x"
        assert trial.ask(head) == (200, PAGE)
        ((line, headers, _),) = origin.seen
        assert line == "GET /a/b?c=1&d"
        assert headers == {"host": f"LOCALHOST:{origin.port}", "accept": "x", "connection": "close"}
        traffic = trial.close()
        assert (traffic.hosts, traffic.refused_hosts) == ({"localhost": 1}, {})

    def test_bodies_and_statuses_are_passed_on_and_counted(
        self, origin: Origin, folder: Path, trials: list[Trial]
    ) -> None:
        trial = open_to(origin.port, folder, trials)
        base = f"http://127.0.0.1:{origin.port}"
        assert trial.ask(f"POST {base}/form HTTP/1.1\nContent-Length: 5", b"a=b&c") == (200, PAGE)
        assert trial.ask(f"GET {base}/missing HTTP/1.1") == (404, PAGE)
        assert [(line, body) for line, _, body in origin.seen] == [("POST /form", b"a=b&c"), ("GET /missing", b"")]
        first, second = trial.rows()
        assert (first["method"], first["host"], first["port"]) == ("POST", "127.0.0.1", origin.port)
        assert (first["status"], second["status"], first["error"]) == (200, 404, "")
        assert (first["up"], second["up"]) == (5, 0)
        assert first["down"] > len(PAGE)
        assert first["time"].endswith("+00:00")
        assert first["seconds"] >= 0


class TestTunnels:
    def test_passes_bytes_both_ways(self, echo: int, folder: Path, trials: list[Trial]) -> None:
        trial = open_to(echo, folder, trials)
        data = bytes(range(256)) * 4096
        with trial.tunnel("127.0.0.1", echo) as connection:

            def send() -> None:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=send)
            thread.start()
            assert drain(connection) == data
            thread.join()
        (row,) = trial.rows()
        expected = {"method": "CONNECT", "host": "127.0.0.1", "port": echo, "status": 200, "error": ""}
        assert expected.items() <= row.items()
        assert (row["up"], row["down"]) == (len(data), len(data))
        assert trial.close().hosts == {"127.0.0.1": 1}

    def test_what_comes_at_once_with_the_request_is_not_lost(
        self, echo: int, folder: Path, trials: list[Trial]
    ) -> None:
        trial = open_to(echo, folder, trials)
        with trial.connect() as connection:
            connection.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\nhello".encode())
            connection.shutdown(socket.SHUT_WR)
            assert drain(connection).endswith(b"\r\n\r\nhello")

    def test_closing_the_lease_cuts_it_and_removes_the_socket(
        self, echo: int, folder: Path, trials: list[Trial]
    ) -> None:
        trial = open_to(echo, folder, trials)
        assert stat.S_IMODE(trial.egress.socket.stat().st_mode) == 0o666
        with trial.tunnel("127.0.0.1", echo) as connection:
            traffic = trial.close()
            with contextlib.suppress(ConnectionResetError):
                assert drain(connection) == b""
        assert traffic.hosts == {"127.0.0.1": 1}
        assert not trial.egress.socket.exists()
        (row,) = trial.rows()
        assert row["error"] == "the trial ended"


class TestRefused:
    @pytest.mark.parametrize("host", FORBIDDEN)
    def test_addresses_that_are_not_public(self, strict: Trial, host: str) -> None:
        assert strict.ask(f"CONNECT {host}:443 HTTP/1.1")[0] == 403
        assert strict.ask(f"GET http://{host}/ HTTP/1.1")[0] == 403
        traffic = strict.close()
        assert (traffic.hosts, traffic.refused_hosts) == ({}, {host.strip("[]"): 2})
        assert [row["status"] for row in strict.rows()] == [403, 403]

    def test_a_listener_on_this_machine_is_out_of_reach(
        self, origin: Origin, folder: Path, trials: list[Trial]
    ) -> None:
        """But for the address it would be reached, as the tests above show."""
        trials.append(Trial(folder, EgressPolicy(ports=frozenset({origin.port}))))
        assert trials[-1].ask(f"GET http://127.0.0.1:{origin.port}/ HTTP/1.1")[0] == 403
        assert origin.seen == []

    def test_an_address_of_this_machine_that_passes_for_public(
        self, origin: Origin, folder: Path, trials: list[Trial]
    ) -> None:
        class Believing(EgressPolicy):
            def check_address(self, address: str) -> None:
                pass

        trials.append(Trial(folder, Believing(ports=frozenset({origin.port}))))
        status, text = trials[-1].ask(f"GET http://127.0.0.1:{origin.port}/ HTTP/1.1")
        assert (status, text) == (403, b"dataclaw: 127.0.0.1 is this machine\n")
        assert origin.seen == []
        assert trials[-1].close().refused_hosts == {"127.0.0.1": 1}

    @pytest.mark.parametrize("port", [1, 22, 25, 8080])
    def test_ports_other_than_the_webs(self, strict: Trial, port: int) -> None:
        status, text = strict.ask(f"CONNECT 93.184.216.34:{port} HTTP/1.1")
        assert (status, text) == (403, f"dataclaw: port {port} is not allowed\n".encode())
        assert strict.close().refused_hosts == {"93.184.216.34": 1}

    @pytest.mark.parametrize(
        "head",
        [
            "GET /relative HTTP/1.1",
            "GET https://example.com/ HTTP/1.1",
            "GET ftp://example.com/ HTTP/1.1",
            "CONNECT example.com HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT example.com:99999 HTTP/1.1",
            "GET http://exa mple.com/ HTTP/1.1",
            "GET http://ex\u00e4mple.com/ HTTP/1.1",
            "get http://example.com/ HTTP/1.1",
            "GET http://example.com/ HTTP/2",
            "nonsense",
        ],
    )
    def test_what_is_no_request_to_a_proxy(self, strict: Trial, head: str) -> None:
        assert strict.ask(head)[0] == 400

    def test_a_head_without_end(self, strict: Trial) -> None:
        with strict.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(b"GET http://example.com/ HTTP/1.1\r\nX: " + b"x" * 200_000)
            with contextlib.suppress(ConnectionResetError):
                assert drain(connection).startswith(b"HTTP/1.1 431 ")
        (row,) = strict.rows()
        assert row["status"] == 431


class TestNames:
    def fake(self, monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[str]:
        """Let `rebind.test` lead to other addresses each time; return the list of its lookups."""
        real, asked = socket.getaddrinfo, []

        def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            if host != "rebind.test":
                return real(host, port, *args, **options)
            asked.append(host)
            family, kind = socket.AF_INET, socket.SOCK_STREAM
            return [(family, kind, 6, "", (address, port)) for address in answers[min(len(asked), len(answers)) - 1]]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        return asked

    def test_are_looked_up_once_and_the_address_that_was_checked_is_used(
        self, origin: Origin, folder: Path, trials: list[Trial], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        policy = EgressPolicy(ports=frozenset({origin.port}), allowed=("127.0.0.1/32",))
        trials.append(Trial(folder, policy))
        asked = self.fake(monkeypatch, [["127.0.0.1"], ["127.0.0.9"]])
        assert trials[-1].ask(f"GET http://rebind.test:{origin.port}/ HTTP/1.1") == (200, PAGE)
        assert asked == ["rebind.test"]
        assert trials[-1].ask(f"GET http://rebind.test:{origin.port}/ HTTP/1.1")[0] == 403
        traffic = trials[-1].close()
        assert (traffic.hosts, traffic.refused_hosts) == ({"rebind.test": 1}, {"rebind.test": 1})

    def test_with_one_address_that_is_not_public_are_refused(
        self, strict: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fake(monkeypatch, [["93.184.216.34", "10.0.0.1"]])
        status, text = strict.ask("CONNECT rebind.test:443 HTTP/1.1")
        assert (status, text) == (403, b"dataclaw: 10.0.0.1 is not a public address\n")

    def test_that_lead_nowhere_are_a_failure_and_no_refusal(self, strict: Trial) -> None:
        assert strict.ask("CONNECT no-such-host.invalid:443 HTTP/1.1")[0] == 502
        assert strict.ask("CONNECT a..b:443 HTTP/1.1")[0] in (400, 502)
        traffic = strict.close()
        assert traffic.hosts == {}
        assert "no-such-host.invalid" not in traffic.refused_hosts


class TestLimits:
    def test_connections_at_a_time(self, echo: int, folder: Path, trials: list[Trial]) -> None:
        trial = open_to(echo, folder, trials, max_connections=1)
        with trial.tunnel("127.0.0.1", echo):
            assert trial.is_cut(f"CONNECT 127.0.0.1:{echo} HTTP/1.1")
        end = time.monotonic() + 5
        while trial.is_cut("CONNECT 127.0.0.1:1 HTTP/1.1"):
            assert time.monotonic() < end, "the place was not given back"

    def test_requests(self, strict: Trial, folder: Path, trials: list[Trial]) -> None:
        strict.close()
        trial = open_to(80, folder, trials, max_requests=2)
        assert [trial.ask("CONNECT 127.0.0.1:22 HTTP/1.1")[0] for _ in range(2)] == [403, 403]
        assert trial.is_cut("CONNECT 127.0.0.1:22 HTTP/1.1")
        assert len(trial.rows()) == 2

    def test_bytes(self, echo: int, folder: Path, trials: list[Trial]) -> None:
        trial = open_to(echo, folder, trials, max_bytes=10_000)
        with trial.tunnel("127.0.0.1", echo) as connection, contextlib.suppress(ConnectionResetError):
            connection.sendall(b"x" * 6000)
            assert len(drain(connection)) <= 6000
        assert trial.ask(f"CONNECT 127.0.0.1:{echo} HTTP/1.1")[0] == 403
        first, second = trial.rows()
        assert first["up"] + first["down"] <= 10_000
        assert first["error"] == second["error"] == "the trial has used up its bytes"

    def test_silence(self, echo: int, folder: Path, trials: list[Trial]) -> None:
        trial = open_to(echo, folder, trials, idle_seconds=0.2)
        with trial.tunnel("127.0.0.1", echo) as connection:
            started = time.monotonic()
            assert drain(connection) == b""
        assert 0.1 < time.monotonic() - started < 5
        (row,) = trial.rows()
        assert row["error"] == "nothing was sent for 0.2 s"

    def test_a_request_that_does_not_come(self, folder: Path, trials: list[Trial]) -> None:
        trial = open_to(80, folder, trials, connect_seconds=0.2)
        with trial.connect() as connection:
            assert drain(connection).startswith(b"HTTP/1.1 408 ")


class TestFurtherProxy:
    @pytest.fixture
    def further(self) -> Iterator[tuple[int, list[bytes]]]:
        """A proxy that says yes to everything and then sends `inner`; its port and the heads it got."""
        heads: list[bytes] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    with connection:
                        heads.append(connection.recv(65536))
                        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\ninner")

        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=accept)
            thread.start()
            yield listener.getsockname()[1], heads
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()

    def test_is_gone_through(self, further: tuple[int, list[bytes]], folder: Path, trials: list[Trial]) -> None:
        port, heads = further
        proxy = f"http://us%40er:pass@127.0.0.1:{port}"
        trials.append(Trial(folder, EgressPolicy(upstreams={"http": proxy, "https": proxy})))
        trial = trials[-1]
        assert trial.ask("GET http://web.invalid/x?y HTTP/1.1\nAccept: z") == (200, b"inner")
        assert trial.ask("CONNECT web.invalid:443 HTTP/1.1") == (200, b"inner")
        credentials = b"Proxy-Authorization: Basic dXNAZXI6cGFzcw==\r\n"
        assert heads == [
            b"GET http://web.invalid:80/x?y HTTP/1.1\r\nHost: web.invalid\r\nAccept: z\r\nConnection: close\r\n"
            + credentials
            + b"\r\n",
            b"CONNECT web.invalid:443 HTTP/1.1\r\nHost: web.invalid:443\r\n" + credentials + b"\r\n",
        ]
        assert trial.close().hosts == {"web.invalid": 2}

    def test_is_not_asked_for_what_is_not_public(
        self, further: tuple[int, list[bytes]], folder: Path, trials: list[Trial]
    ) -> None:
        port, heads = further
        trials.append(Trial(folder, EgressPolicy(upstreams={"https": f"http://127.0.0.1:{port}"})))
        assert trials[-1].ask("CONNECT 169.254.169.254:443 HTTP/1.1")[0] == 403
        assert trials[-1].ask("CONNECT localhost:443 HTTP/1.1")[0] == 403
        assert heads == []


class TestRecord:
    def test_holds_no_secret(self, strict: Trial) -> None:
        assert strict.ask(f"CONNECT {SECRET}.localhost:22 HTTP/1.1")[0] == 403
        traffic = strict.close()
        assert traffic.refused_hosts == {"[redacted:BRAVE_API_KEY].localhost": 1}
        assert SECRET not in strict.egress.journal.read_text("utf-8")

    def test_is_there_only_where_a_way_out_was(self, strict: Trial) -> None:
        lease = strict.client.open_lease(LeaseRequest(KEY, "agent", "nop", strict.folder / "other.jsonl"))
        assert strict.client.close_lease(lease).hosts is None
        assert strict.close().hosts == {}

    def test_closing_twice_says_the_same(self, strict: Trial) -> None:
        strict.ask("CONNECT 10.0.0.1:443 HTTP/1.1")
        assert strict.close() == strict.close()

    def test_a_place_that_is_taken_is_refused_and_the_lease_with_it(self, strict: Trial) -> None:
        with pytest.raises(ProviderError, match=r"cannot listen at .*egress\.sock: .*already"):
            strict.client.open_lease(strict.request)
        assert strict.ask("CONNECT 10.0.0.1:443 HTTP/1.1")[0] == 403

    @pytest.mark.parametrize("egress", [None, Egress(Path("/tmp/x/egress.sock"), Path("/o/egress.jsonl"))])
    def test_the_request_survives_the_control_interface(self, egress: Egress | None) -> None:
        wanted = LeaseRequest(KEY, "agent", "nop", Path("/j"), egress=egress)
        assert lease_request_from_json(json.loads(json.dumps(lease_request_to_json(wanted)))) == wanted


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "64:ff9b::808:808"])
def test_public_addresses_pass(address: str) -> None:
    EgressPolicy().check_address(address)


def test_only_what_is_allowed_by_name_passes_besides() -> None:
    policy = EgressPolicy(allowed=("10.1.0.0/16", "fd00::/8"))
    policy.check_address("10.1.2.3")
    policy.check_address("fd00::1")
    for address in ("10.2.0.1", "127.0.0.1", "fe80::1"):
        with pytest.raises(EgressError):
            policy.check_address(address)


def test_a_request_for_an_address_of_ipv6() -> None:
    request = parse_request(b"CONNECT [2606:2800::1]:443 HTTP/1.1\r\n\r\n")
    assert (request.host, request.port, request.authority) == ("2606:2800::1", 443, "[2606:2800::1]:443")
