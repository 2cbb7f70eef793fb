"""What a sealed container cannot reach; each attempt succeeds from an unsealed one first, else it would prove nothing.

TCP over IPv4 to the host and to other containers is in test_docker_sandbox.py.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.task import Brief
from pytest_dataclaw.provision.image import LOCAL_IMAGE
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.nop import ANSWER, NopUpstream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docker import DockerClient
    from docker.models.containers import Container

    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.provision.docker import DockerProvider

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

BRIEF = Brief("t", "t", "c", "easy", "Question?", 120.0, (), web=False)
GREETING = b"hello from outside"
NAME = "canary.dataclaw.test"
NAMED = "192.0.2.77"

CONNECT = textwrap.dedent("""
    import json, socket, sys
    family, address = json.loads(sys.argv[1])
    with socket.socket(getattr(socket, family), socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(tuple(address) if isinstance(address, list) else address)
        print(client.recv(100).decode())
""")
DATAGRAM = textwrap.dedent("""
    import json, socket, sys
    family, address = json.loads(sys.argv[1])
    with socket.socket(getattr(socket, family), socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect(tuple(address))  # so that a refusal is told
        client.send(b"hello?")
        print(client.recv(100).decode())
""")
LOOK_UP = textwrap.dedent(f"""
    import socket, time
    started = time.monotonic()
    try:
        print(socket.gethostbyname({NAME!r}))
    except OSError as error:
        print("failed", time.monotonic() - started)
""")


@pytest.fixture(scope="module")
def sandbox(provider: DockerProvider) -> Iterator[Sandbox]:
    with provider.provision(BRIEF, TrialKey("run-of-the-seal", "tasks/s.md::s", "s")) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def on_host(client: DockerClient, image: str) -> Iterator[Container]:
    """A container in the host's own network."""
    with unsealed(client, network_mode="host") as container:
        yield container


@pytest.fixture(scope="module")
def on_bridge(client: DockerClient, image: str) -> Iterator[Container]:
    """A container in the engine's usual network."""
    with unsealed(client) as container:
        yield container


@contextmanager
def unsealed(
    client: DockerClient,
    *,
    network_mode: str | None = None,
    volumes: Mapping[str, dict[str, str]] | None = None,
    dns: list[str] | None = None,
) -> Iterator[Container]:
    """A container of the same image, with a network, in which programs can be run for some minutes."""
    container = client.containers.run(
        LOCAL_IMAGE,
        ["300"],
        entrypoint=["sleep"],
        detach=True,
        init=True,
        network_mode=network_mode,
        volumes=dict(volumes or {}),
        dns=dns,
        labels={"dataclaw.test": "seal"},
    )
    try:
        yield container
    finally:
        container.remove(force=True)


def from_unsealed(container: Container, script: str, *arguments: str) -> str:
    code, output = run_in(container, ["python3", "-c", script, *arguments])
    assert code == 0, output
    return output.strip()


def run_in(container: Container, command: list[str]) -> tuple[int | None, str]:
    code, output = container.exec_run(command, user="1000")
    assert isinstance(output, bytes)
    return code, output.decode()


def from_sealed(sandbox: Sandbox, script: str, *arguments: str) -> tuple[int | None, str]:
    result = sandbox.exec(shlex.join(["python3", "-c", script, *arguments]), timeout=20)
    return result.exit_code, result.output


def host_addresses() -> list[str]:
    """All addresses of this machine, loopback's too, both families; link-local ones need a scope and are left out."""
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` to list this machine's addresses")
    listed = json.loads(subprocess.run(["ip", "-json", "addr"], capture_output=True, check=True).stdout)
    found = [info["local"] for link in listed for info in link["addr_info"]]
    return [address for address in found if not ipaddress.ip_address(address).is_link_local]


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


@contextmanager
def greeting(listener: socket.socket) -> Iterator[None]:
    """Greet whoever connects, or sends a datagram, until the block ends."""
    stop = threading.Event()
    listener.settimeout(0.1)

    def serve() -> None:
        while not stop.is_set():
            try:
                if listener.type == socket.SOCK_DGRAM:
                    listener.sendto(GREETING, listener.recvfrom(100)[1])
                else:
                    with listener.accept()[0] as connection:
                        connection.sendall(GREETING)
            except OSError:  # nobody came; or whoever came left at once
                continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        listener.close()


@pytest.mark.parametrize(
    ("kind", "script"), [(socket.SOCK_STREAM, CONNECT), (socket.SOCK_DGRAM, DATAGRAM)], ids=["tcp", "udp"]
)
def test_ports_on_every_address_of_the_host(
    sandbox: Sandbox, on_host: Container, kind: socket.SocketKind, script: str
) -> None:
    targets = []
    with ExitStack() as stack:
        for address in host_addresses():
            listener = socket.socket(family_of(address), kind)
            listener.bind((address, 0))
            if kind == socket.SOCK_STREAM:
                listener.listen()
            targets.append([family_of(address).name, listener.getsockname()[:2]])
            stack.enter_context(greeting(listener))
        assert {"127.0.0.1"} < {address for _, (address, _) in targets}
        for target in map(json.dumps, targets):
            assert from_unsealed(on_host, script, target) == GREETING.decode(), target
            code, output = from_sealed(sandbox, script, target)
            assert code == 1, (target, output)
            assert any(reason in output for reason in ("unreachable", "refused", "Cannot assign")), (target, output)


def test_abstract_sockets_of_the_host(sandbox: Sandbox, on_host: Container) -> None:
    """They have no file, so no mount keeps them away: only the network namespace does."""
    name = f"\0dataclaw-seal-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen()
    with greeting(listener):
        target = json.dumps(["AF_UNIX", name])
        assert from_unsealed(on_host, CONNECT, target) == GREETING.decode()
        code, output = from_sealed(sandbox, CONNECT, target)
        assert (code, "Connection refused" in output) == (1, True), output


def test_datagrams_to_another_container(sandbox: Sandbox, client: DockerClient, on_bridge: Container) -> None:
    echo = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 7778))\n"
        "while True: s.sendto(b'neighbour', s.recvfrom(100)[1])"
    )
    with unsealed(client) as neighbour:
        neighbour.exec_run(["python3", "-c", echo], detach=True)
        neighbour.reload()
        address = neighbour.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
        target = json.dumps(["AF_INET", [address, 7778]])
        end = time.monotonic() + 20
        while run_in(on_bridge, ["python3", "-c", DATAGRAM, target]) != (0, "neighbour\n"):
            assert time.monotonic() < end, "the neighbour never answered"
        code, output = from_sealed(sandbox, DATAGRAM, target)
        assert (code, "Network is unreachable" in output) == (1, True), output


class NameServer:
    """Answers every question for an address with NAMED; `asked` counts the questions."""

    def __init__(self, address: str) -> None:
        self.asked = 0
        self._stop = threading.Event()
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.settimeout(0.1)
        self._socket.bind((address, 53))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                query, client = self._socket.recvfrom(512)
            except TimeoutError:
                continue
            self.asked += 1
            end = query.index(b"\0", 12) + 5  # the name, its type and its class
            is_ipv4 = query[end - 4 : end - 2] == b"\0\1"
            header = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(is_ipv4), 0, 0)
            answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(NAMED) if is_ipv4 else b""
            self._socket.sendto(header + query[12:end] + answer, client)


def test_names(sandbox: Sandbox, client: DockerClient, on_bridge: Container) -> None:
    on_bridge.reload()
    gateway = on_bridge.attrs["NetworkSettings"]["Networks"]["bridge"]["Gateway"]
    try:
        server = NameServer(gateway)
    except OSError as error:
        pytest.skip(f"no name server can be started at {gateway}:53: {error}")
    with closing(server), unsealed(client, dns=[gateway]) as asking:
        assert from_unsealed(asking, LOOK_UP) == NAMED
        asked = server.asked
        assert asked > 0
        _, output = from_sealed(sandbox, LOOK_UP)
        word, seconds = output.split()
        assert word == "failed"
        assert float(seconds) < 1.0
        # Nor by a resolver of its own that asks the server by its address.
        code, output = from_sealed(sandbox, DATAGRAM, json.dumps(["AF_INET", [gateway, 53]]))
        assert (code, "Network is unreachable" in output) == (1, True), output
        assert server.asked == asked


def test_another_trials_model(sandbox: Sandbox, provider: DockerProvider, client: DockerClient, tmp_path: Path) -> None:
    """Neither its socket nor its token is of use; both are where they can be had."""
    mine, other = (TrialKey("run-of-the-seal", f"tasks/{name}.md::{name}", name) for name in "so")
    with (
        provider.provision(BRIEF, other) as neighbour,
        ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address,
    ):
        assert sandbox.socket is not None
        assert neighbour.socket is not None
        proxy = ProxyClient(address)
        leases = [
            proxy.open_lease(LeaseRequest(key, "agent", "nop", tmp_path / key.task_id, socket=place.socket))
            for key, place in ((mine, sandbox), (other, neighbour))
        ]
        my_token, other_token = (lease.endpoint.token for lease in leases)
        base_url = sandbox.reach(leases[0].endpoint).base_url

        def ask(token: str, options: str) -> str:
            return f"curl -sS -m 5 {options} -H 'Authorization: Bearer {token}' {base_url}/models"

        def listed(output: str) -> bool:
            return '"nop"' in output

        folder = neighbour.socket.parent
        theirs = f"--unix-socket {folder / neighbour.socket.name}"
        with unsealed(client, volumes={str(folder): {"bind": str(folder), "mode": "ro"}}) as reaching:
            _, output = run_in(reaching, ["bash", "-c", ask(other_token, theirs)])
            assert listed(output), output
        assert listed(neighbour.exec(ask(other_token, ""), timeout=10).output)
        assert listed(sandbox.exec(ask(my_token, ""), timeout=10).output)
        refused = sandbox.exec(ask(other_token, ""), timeout=10).output
        assert "invalid_api_key" in refused
        assert not listed(refused)
        unreachable = sandbox.exec(ask(other_token, theirs), timeout=10)
        assert (unreachable.exit_code, listed(unreachable.output)) == (7, False), unreachable
        assert "Permission denied" in sandbox.exec("ls /run/dataclaw", timeout=10).output
        for lease in leases:
            proxy.close_lease(lease)


SMOKE = textwrap.dedent("""
    import encodings.idna, json, os, sys
    import aiohttp.web, docker.types, docker.utils.socket, requests  # now, as the other user may not read them
    from pathlib import Path, PurePosixPath
    from pytest_dataclaw.model.run import TrialKey
    from pytest_dataclaw.model.task import Brief, WorkspaceFile
    from pytest_dataclaw.provision.docker import DockerProvider
    from pytest_dataclaw.proxy.base import LeaseRequest
    from pytest_dataclaw.proxy.client import ProxyClient
    from pytest_dataclaw.proxy.redaction import Redactor
    from pytest_dataclaw.proxy.server import ProxyServer
    from pytest_dataclaw.proxy.upstreams.nop import NopUpstream

    image, folder, user, group = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    os.setgroups([group])
    os.setgid(user)
    os.setuid(user)
    os.environ["HOME"] = str(folder)
    (folder / "a.csv").write_text("x\\n1\\n")
    files = (WorkspaceFile(folder / "a.csv", PurePosixPath("database/a.csv")),)
    brief, key = Brief("t", "t", "c", "easy", "q", 60.0, files, False), TrialKey("of another user", "n", "t")
    provider = DockerProvider(image, seconds_for=lambda brief: 60, packages=folder / "packages", base=folder)
    with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
        proxy = ProxyClient(address)
        with provider.provision(brief, key) as sandbox:
            lease = proxy.open_lease(LeaseRequest(key, "agent", "nop", folder / "journal", socket=sandbox.socket))
            inside = sandbox.reach(lease.endpoint)
            body = json.dumps({"model": "nop", "messages": [{"role": "user", "content": "q"}]})
            sandbox.write_file("/tmp/body", body.encode())
            ask = f"curl -sS -m 10 -H 'Authorization: Bearer {inside.token}' -d @/tmp/body {inside.base_url}"
            said = {
                "host": [os.getuid(), os.getgid()],
                "inside": sandbox.exec("id -u; cat database/a.csv; ls /sys/class/net", timeout=20).output,
                "reply": json.loads(sandbox.exec(f"{ask}/chat/completions", timeout=20).output),
                "body": sandbox.read_file("/tmp/body", limit=1000).decode() == body,
            }
            sandbox.stop()
            said["answer"] = proxy.close_lease(lease).trajectory.answer
            sandbox.verify()
    provider.close()
    said["left"] = sorted(path.name for path in folder.iterdir())
    print(json.dumps(said))
""")


def test_a_host_user_who_is_not_root(image: str) -> None:
    """Access to the engine's socket, through its group, is all that is needed."""
    engine = Path("/var/run/docker.sock")
    if os.geteuid() != 0:
        pytest.skip("only root can run a process as another user")
    if not engine.is_socket() or "DOCKER_HOST" in os.environ:
        pytest.skip(f"the engine does not listen at {engine}")
    user = 12345
    folder = Path(tempfile.mkdtemp(prefix="dclw-user-"))
    try:
        os.chown(folder, user, user)
        done = subprocess.run(
            [sys.executable, "-c", SMOKE, image, str(folder), str(user), str(engine.stat().st_gid)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["host"] == [user, user]
    assert said["inside"] == "1000\nx\n1\nlo\n"
    assert said["reply"]["choices"][0]["message"]["content"] == ANSWER
    assert (said["answer"], said["body"], said["left"]) == (ANSWER, True, ["a.csv", "journal"])
