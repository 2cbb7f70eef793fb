"""The Docker sandbox: its seal, its limits, its end in whatever way, and what is left of it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.task import Brief, WorkspaceFile
from pytest_dataclaw.provision.base import Fate
from pytest_dataclaw.provision.docker import DockerProvider
from pytest_dataclaw.provision.image import LOCAL_IMAGE, image_digest
from pytest_dataclaw.provision.owner import OWNER_LABEL, RUN_LABEL, Owner, this_process
from pytest_dataclaw.provision.sweep import sweep
from pytest_dataclaw.proxy.base import LeaseRequest
from pytest_dataclaw.proxy.client import ProxyClient
from pytest_dataclaw.proxy.redaction import Redactor
from pytest_dataclaw.proxy.server import ProxyServer
from pytest_dataclaw.proxy.upstreams.nop import ANSWER, NopUpstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import DockerClient
    from docker.models.containers import Container

    from pytest_dataclaw.provision.base import Sandbox

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

KEY = TrialKey("run-of-the-tests", "tasks/t.md::t[run2]", "t", 2)
NAP = 0.05


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a short path, as that of a unix socket is limited."""
    base = Path(tempfile.mkdtemp(prefix="dclw-test-"))
    yield base
    shutil.rmtree(base)


@pytest.fixture
def brief(tmp_path: Path) -> Brief:
    source = tmp_path / "assets" / "a.csv"
    source.parent.mkdir(mode=0o700)
    source.write_text("x\n1\n")
    source.chmod(0o600)
    files = (WorkspaceFile(source, PurePosixPath("database/a.csv")), WorkspaceFile(source, PurePosixPath("top.csv")))
    return Brief("t", "t", "c", "easy", "Question?", 60.0, files, web=False)


@pytest.fixture
def make(image: str, base: Path, tmp_path: Path) -> Iterator[Callable[..., DockerProvider]]:
    providers = []

    def make(name: str = image, seconds: float = 120, **options: Any) -> DockerProvider:
        packages = tmp_path / "packages"
        provider = DockerProvider(name, seconds_for=lambda brief: seconds, packages=packages, base=base, **options)
        providers.append(provider)
        return provider

    yield make
    for provider in providers:
        provider.close()


@pytest.fixture
def sandbox(make: Callable[..., DockerProvider], brief: Brief) -> Iterator[Sandbox]:
    with make().provision(brief, KEY) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, command: str, timeout: float = 20.0) -> str:
    return sandbox.exec(command, timeout=timeout).output


def ours(client: DockerClient) -> list[Container]:
    """Return the containers of this process's providers, whatever their state."""
    return client.containers.list(all=True, filters={"label": f"{OWNER_LABEL}={this_process()}"}, ignore_removed=True)


def wait_until(condition: Callable[[], bool], within: float = 10.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(NAP)


def main_process(sandbox: Sandbox) -> str:
    return run(sandbox, "pgrep -f '^node /opt/dataclaw/entry.mjs'").strip()


class TestSeal:
    def test_the_model_is_reached_through_the_socket_alone(
        self, sandbox: Sandbox, tmp_path: Path, client: DockerClient
    ) -> None:
        with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
            proxy = ProxyClient(address)
            lease = proxy.open_lease(
                LeaseRequest(KEY, "agent", "nop", tmp_path / "journal.jsonl", socket=sandbox.socket)
            )
            inside = sandbox.reach(lease.endpoint)
            assert (inside.token, inside.model) == (lease.endpoint.token, "nop")
            body = json.dumps({"model": "nop", "messages": [{"role": "user", "content": "q"}]})
            curl = f"curl -sS -m 5 -H 'Authorization: Bearer {inside.token}' -d '{body}'"
            answer = run(sandbox, f"{curl} {inside.base_url}/chat/completions")
            assert json.loads(answer)["choices"][0]["message"]["content"] == ANSWER
            assert "Failed to connect" in run(sandbox, f"{curl} {lease.endpoint.base_url}/chat/completions")
            assert "invalid_api_key" in run(
                sandbox, f"curl -sS -m 5 -H 'Authorization: Bearer x' {inside.base_url}/models"
            )
            assert "http_error" in run(
                sandbox, f"{curl.replace(' -d', ' -o- -d')} {inside.base_url[:-3]}/control/leases"
            )
            assert proxy.close_lease(lease).trajectory.answer == ANSWER

    def test_there_is_no_route_and_no_name(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "ls /sys/class/net; tail -n +2 /proc/net/route") == "lo\n"
        started = time.monotonic()
        assert sandbox.exec("getent hosts example.com", timeout=10).exit_code == 2
        assert time.monotonic() - started < 1
        nameservers = [
            line for line in run(sandbox, "cat /etc/resolv.conf").splitlines() if line.startswith("nameserver")
        ]
        assert nameservers == ["nameserver 127.0.0.1"]

    def test_listeners_on_the_host_and_in_other_containers_are_out_of_reach(
        self, sandbox: Sandbox, client: DockerClient
    ) -> None:
        """Each attempt succeeds from a container with a network first: else a refusal would prove nothing."""
        serve = "import socket; s = socket.create_server(('', 7777))\nwhile True: s.accept()[0].send(b'hello')"
        with (
            socket.create_server(("0.0.0.0", 0)) as listener,
            unsealed(client, ["python3", "-c", serve]) as server,
            unsealed(client, ["sleep", "1000"]) as other,
        ):
            port = listener.getsockname()[1]
            server.reload()
            neighbour = server.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
            targets = [(address, port) for address in host_addresses()] + [(neighbour, 7777)]
            assert len(targets) >= 2
            for address, number in targets:
                attempt = ["timeout", "3", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{number}"]
                wait_until(lambda attempt=attempt: other.exec_run(attempt).exit_code == 0)  # type: ignore[misc]
                refused = sandbox.exec(shlex.join(attempt), timeout=10)
                assert refused.exit_code == 1
                assert "Network is unreachable" in refused.output

    def test_user_and_privileges(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "id -u; id -g; id -un") == "1000\n1000\nagent\n"
        status = run(sandbox, "grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs)' /proc/self/status").split()
        assert status[1::2] == ["0" * 16, "0" * 16, "0" * 16, "1"]
        assert run(sandbox, "cat /proc/1/comm") == "docker-init\n"

    def test_our_programs_cannot_be_changed(self, sandbox: Sandbox) -> None:
        assert (
            run(sandbox, "stat -c '%U %a' /opt/dataclaw /opt/dataclaw/turn.mjs .") == "root 755\nroot 444\nagent 755\n"
        )
        for command in ("rm -f /opt/dataclaw/turn.mjs", "echo >> /opt/dataclaw/entry.mjs", "touch /opt/dataclaw/new"):
            assert "Permission denied" in run(sandbox, command)


class TestFiles:
    def test_the_briefs_files_are_read_only_for_everybody_but_readable(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "cat database/a.csv top.csv") == "x\n1\nx\n1\n"
        for command in ("echo >> database/a.csv", "rm database/a.csv", "touch database/new", "chmod 777 top.csv"):
            result = sandbox.exec(command, timeout=10)
            assert result.exit_code != 0, command
        assert "Device or resource busy" in run(sandbox, "rm -r database top.csv; mv database d")
        assert run(sandbox, "touch new; mkdir folder; ls") == "database\nfolder\nnew\ntop.csv\n"

    def test_mounts_are_all_read_only_and_hold_no_assets(
        self, sandbox: Sandbox, client: DockerClient, base: Path
    ) -> None:
        (container,) = ours(client)
        mounts = {mount["Destination"]: (mount["Source"], mount["RW"]) for mount in container.attrs["Mounts"]}
        assert set(mounts) == {"/run/dataclaw", "/tmp_workspace/database", "/tmp_workspace/top.csv"}
        assert not any(writable for _, writable in mounts.values())
        assert all(source.startswith(f"{base}/") for source, _ in mounts.values())

    def test_one_copy_for_all_trials_with_the_same_files(
        self, make: Callable[..., DockerProvider], brief: Brief, base: Path
    ) -> None:
        provider = make()
        with provider.provision(brief, KEY), provider.provision(brief, KEY):
            assert len(list(base.rglob("a.csv"))) == 1
        with provider.provision(brief, KEY):
            assert len(list(base.rglob("a.csv"))) == 1

    def test_a_copy_that_was_changed_is_noticed(self, sandbox: Sandbox, base: Path) -> None:
        sandbox.verify()
        (copy,) = base.rglob("a.csv")
        copy.chmod(0o644)
        copy.write_text("x\n2\n")
        with pytest.raises(SandboxError, match=r"database/a\.csv"):
            sandbox.verify()

    @pytest.mark.parametrize("path", ["/home/agent/.config/x/y.json", "/tmp/a b/'c'"])
    def test_write_and_read(self, sandbox: Sandbox, path: str) -> None:
        data = bytes(range(256)) * 4000
        sandbox.write_file(path, b"before")
        sandbox.write_file(path, data)
        assert sandbox.read_file(path, limit=10**7) == data
        assert sandbox.read_file(path, limit=1000) == data[:1000]
        assert sandbox.read_file(path, limit=0) == b""
        assert run(sandbox, f'stat -c "%a %U" "{path}"') == "600 agent\n"

    def test_write_does_not_follow_a_link(self, sandbox: Sandbox) -> None:
        run(sandbox, "echo kept > target; ln -s target link")
        sandbox.write_file("/tmp_workspace/link", b"new")
        assert run(sandbox, "cat target link") == "kept\nnew"

    def test_only_regular_files_are_read(self, sandbox: Sandbox) -> None:
        run(sandbox, "echo > file; ln -s file link; mkfifo pipe; mkdir folder; touch locked; chmod 0 locked")
        for name in ("link", "pipe", "folder", "locked", "missing", "file/x"):
            assert sandbox.read_file(f"/tmp_workspace/{name}", limit=10) is None
        assert sandbox.read_file("/etc/shadow", limit=10) is None
        assert sandbox.read_file("/tmp_workspace/file", limit=10) == b"\n"

    def test_a_place_that_cannot_be_written_is_an_error(self, sandbox: Sandbox) -> None:
        with pytest.raises(SandboxError, match="/etc/passwd"):
            sandbox.write_file("/etc/passwd", b"")

    def test_a_workspace_that_the_agent_made_unusable_is_the_commands_failure(self, sandbox: Sandbox) -> None:
        run(sandbox, "chmod 0 .")
        result = sandbox.exec("true", timeout=10)
        assert result.exit_code == 126
        assert "Permission denied" in result.output
        assert sandbox.fate() is None


class TestLimits:
    def test_memory_of_a_command_is_its_failure(self, make: Callable[..., DockerProvider], brief: Brief) -> None:
        with make(memory="256m").provision(brief, KEY) as sandbox:
            assert sandbox.exec("python3 -c 'x = bytearray(400 << 20)'", timeout=30).exit_code == -9
            assert run(sandbox, "echo lives") == "lives\n"
            assert sandbox.fate() is None

    def test_memory_of_the_main_process_is_the_sandboxs_end(
        self, make: Callable[..., DockerProvider], brief: Brief
    ) -> None:
        with make(memory="256m").provision(brief, KEY) as sandbox:
            run(sandbox, f"echo 1000 > /proc/{main_process(sandbox)}/oom_score_adj")
            result = sandbox.exec("python3 -c 'x = bytearray(400 << 20)'; sleep 5", timeout=30)
            assert result.exit_code == -9
            assert "memory ran out" in result.output
            assert sandbox.fate() == Fate(EndReason.OOM, "the container ended as memory ran out")
            sandbox.stop()
            fate = sandbox.fate()
            assert fate is not None
            assert fate.end_reason is EndReason.OOM

    def test_processes(self, make: Callable[..., DockerProvider], brief: Brief) -> None:
        with make(pids=64).provision(brief, KEY) as sandbox:
            bomb = "for i in $(seq 200); do sleep 100 & done; wait"
            result = sandbox.exec(bomb, timeout=2)
            assert result.timed_out
            assert "Resource temporarily unavailable" in result.output
            assert run(sandbox, "pgrep -c sleep; echo lives") == "0\nlives\n"
            assert sandbox.fate() is None

    def test_temporary_folder(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "cp /bin/true /tmp/t && /tmp/t && df --output=fstype,size -m /tmp | tail -1").split() == [
            "tmpfs",
            "1024",
        ]

    def test_as_the_engine_was_told(self, sandbox: Sandbox, client: DockerClient) -> None:
        (container,) = ours(client)
        host = container.attrs["HostConfig"]
        assert host["Memory"] == host["MemorySwap"] == 4 << 30
        assert (host["NanoCpus"], host["PidsLimit"], host["AutoRemove"]) == (2_000_000_000, 512, True)
        assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "5m", "max-file": "1"}}
        labels = container.labels
        assert labels[RUN_LABEL] == KEY.run_id
        assert labels["dataclaw.trial"] == KEY.node_id


class TestEnd:
    @pytest.mark.parametrize(
        ("how", "code"), [("kill -KILL {main}", 137), ("kill -TERM 1", 143), ("kill -KILL -- -1", 137)]
    )
    def test_an_agent_that_ends_its_own_runtime(self, sandbox: Sandbox, how: str, code: int) -> None:
        result = sandbox.exec(f"echo before; {how.format(main=main_process(sandbox))}; sleep 5", timeout=20)
        assert result.exit_code == -9
        assert "the sandbox has ended" in result.output
        expected = Fate(EndReason.AGENT_CRASH, f"the container's main process ended with exit code {code}")
        assert sandbox.fate() == expected
        assert sandbox.exec("true", timeout=5).exit_code == -9
        assert sandbox.read_file("/tmp_workspace/top.csv", limit=1) is None
        sandbox.write_file("/tmp/x", b"")
        sandbox.stop()
        assert sandbox.fate() == expected

    def test_none_while_it_lives_and_after_it_was_stopped(self, sandbox: Sandbox) -> None:
        assert sandbox.exec("kill -KILL $$", timeout=5).exit_code == -9
        assert sandbox.fate() is None
        sandbox.stop()
        assert sandbox.fate() is None

    @pytest.mark.parametrize("how", ["kill", "remove"])
    def test_an_end_from_outside_is_no_fate(self, sandbox: Sandbox, client: DockerClient, how: str) -> None:
        (container,) = ours(client)
        if how == "kill":
            container.kill()
        else:
            container.remove(force=True)
        with pytest.raises(SandboxError, match="outside"):
            run(sandbox, "true")
        with pytest.raises(SandboxError, match="outside"):
            sandbox.fate()

    def test_it_ends_by_itself_once_its_time_is_up(
        self, make: Callable[..., DockerProvider], brief: Brief, client: DockerClient
    ) -> None:
        with make(seconds=1.5).provision(brief, KEY) as sandbox:
            assert run(sandbox, "echo lives") == "lives\n"
            wait_until(lambda: not ours(client))
            with pytest.raises(SandboxError, match=r"nobody had stopped it after 1\.5 s"):
                sandbox.fate()

    def test_it_ends_by_itself_once_the_proxy_is_gone(
        self, make: Callable[..., DockerProvider], brief: Brief, client: DockerClient, tmp_path: Path
    ) -> None:
        with make(grace=1.0).provision(brief, KEY) as sandbox:
            with ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address:
                ProxyClient(address).open_lease(
                    LeaseRequest(KEY, "agent", "nop", tmp_path / "j", socket=sandbox.socket)
                )
                time.sleep(2)
                assert run(sandbox, "echo lives") == "lives\n"
            wait_until(lambda: not ours(client))
            with pytest.raises(SandboxError, match="the model proxy did not listen"):
                sandbox.fate()

    def test_a_main_process_that_only_says_the_proxy_is_gone(
        self, make: Callable[..., DockerProvider], brief: Brief, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever is root in its container can make it say so; what the host does not see as well excuses nobody."""
        (tmp_path / "docker").mkdir()
        (tmp_path / "docker/entry.mjs").write_text(EXIT_121)
        monkeypatch.setattr("pytest_dataclaw.provision.outfit.recipe_folder", lambda: tmp_path)
        with (
            make().provision(brief, KEY) as sandbox,
            ProxyServer({("agent", "nop"): NopUpstream()}, Redactor({})) as address,
        ):
            ProxyClient(address).open_lease(LeaseRequest(KEY, "agent", "nop", tmp_path / "j", socket=sandbox.socket))
            assert "has ended" in run(sandbox, "touch /tmp/exit; sleep 5")
            assert sandbox.fate() == Fate(
                EndReason.AGENT_CRASH, "the container's main process ended with exit code 121"
            )

    def test_the_main_process_cannot_be_debugged(self, sandbox: Sandbox) -> None:
        attach = f"kill -USR1 {main_process(sandbox)}; sleep 1; exec 3<>/dev/tcp/127.0.0.1/9229"
        assert "Connection refused" in run(sandbox, attach)
        assert sandbox.fate() is None

    def test_nothing_is_left(self, make: Callable[..., DockerProvider], brief: Brief, client: DockerClient) -> None:
        provider = make()
        with provider.provision(brief, KEY), provider.provision(brief, KEY):
            assert len(ours(client)) == 2
        provider.close()
        assert ours(client) == []
        provider.close()
        with provider.provision(brief, KEY) as sandbox:
            assert run(sandbox, "echo again") == "again\n"


class TestSweep:
    WORKER = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from pytest_dataclaw.model.run import TrialKey
        from pytest_dataclaw.model.task import Brief
        from pytest_dataclaw.provision.docker import DockerProvider
        provider = DockerProvider(
            sys.argv[1], seconds_for=lambda brief: 300, packages=Path("unused"), grace=float(sys.argv[2]),
            base=Path(sys.argv[3]),
        )
        with provider.provision(Brief("t", "t", "c", "easy", "q", 60.0, (), False), TrialKey("killed", "n", "t")) as s:
            print(s.exec("echo up", timeout=10).output, flush=True)
            time.sleep(1000)
    """)

    def killed_worker(self, grace: float, base: Path) -> Owner:
        with subprocess.Popen(
            [sys.executable, "-c", self.WORKER, LOCAL_IMAGE, str(grace), str(base)], stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "up\n"
            started = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()[19]
            worker.send_signal(signal.SIGKILL)
        return Owner(this_process().machine, worker.pid, int(started))

    def of(self, owner: Owner, client: DockerClient) -> list[Container]:
        return client.containers.list(all=True, filters={"label": f"{OWNER_LABEL}={owner}"}, ignore_removed=True)

    def test_a_killed_workers_container_ends_by_itself(self, client: DockerClient, base: Path) -> None:
        owner = self.killed_worker(1.0, base)
        wait_until(lambda: not self.of(owner, client))
        (folder,) = base.iterdir()
        assert sweep("killed", base=base) == [str(folder)]
        assert list(base.iterdir()) == []

    def test_a_sweep_need_not_wait_for_that_and_spares_the_living(
        self, client: DockerClient, base: Path, sandbox: Sandbox
    ) -> None:
        owner = self.killed_worker(300.0, base)
        (container,) = self.of(owner, client)
        assert sweep("another run", base=base) != []  # its folder: folders do not tell their run
        assert len(self.of(owner, client)) == 1
        assert container.id in sweep(base=base)
        wait_until(lambda: not self.of(owner, client))
        assert run(sandbox, "echo lives") == "lives\n"

    def test_a_container_that_never_started(self, client: DockerClient, base: Path) -> None:
        with subprocess.Popen(["true"]) as process:
            pass
        dead = Owner(this_process().machine, process.pid, 1)
        foreign = Owner("0" * 8, process.pid, 1)
        made = {
            owner: client.containers.create(LOCAL_IMAGE, labels={OWNER_LABEL: str(owner), RUN_LABEL: "never"})
            for owner in (dead, foreign)
        }
        try:
            assert sweep("never", base=base) == [made[dead].id]
            assert len(self.of(foreign, client)) == 1
        finally:
            made[foreign].remove()

    def test_a_container_that_only_lists_packages(self, client: DockerClient, base: Path) -> None:
        """It belongs to no trial, so to no run."""
        with subprocess.Popen(["true"]) as process:
            pass
        dead = Owner(this_process().machine, process.pid, 1)
        container = client.containers.create(LOCAL_IMAGE, labels={OWNER_LABEL: str(dead)})
        assert sweep("a run", base=base) == []
        assert container.id in sweep(base=base)

    def test_this_process_is_alive_and_its_successor_is_another(self) -> None:
        me = this_process()
        assert (me.pid, me.is_gone) == (os.getpid(), False)
        assert Owner(me.machine, me.pid, me.started - 1).is_gone


class TestMissing:
    def test_an_image(self, make: Callable[..., DockerProvider], brief: Brief) -> None:
        with (
            pytest.raises(SandboxError, match=r"dataclaw:none.*`dataclaw image build`"),
            make("dataclaw:none").provision(brief, KEY),
        ):
            pytest.fail("provided")

    def test_an_engine(
        self, make: Callable[..., DockerProvider], brief: Brief, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
        with pytest.raises(SandboxError, match=r"no Docker engine answers at unix.*none\.sock"):
            make().provision(brief, KEY).__enter__()
        monkeypatch.setenv("DOCKER_HOST", "tcp://engine.example:2375")
        with pytest.raises(SandboxError, match=r"engine\.example.*own kernel"):
            make().provision(brief, KEY).__enter__()

    def test_what_the_engine_refuses(
        self, make: Callable[..., DockerProvider], brief: Brief, client: DockerClient
    ) -> None:
        provider = make(memory="1m")  # less than the engine gives
        with pytest.raises(SandboxError, match="cannot make the container"), provider.provision(brief, KEY):
            pytest.fail("provided")
        assert ours(client) == []


def test_digests(sandbox: Sandbox, client: DockerClient) -> None:
    digests = sandbox.digests()
    assert set(digests) == {"data", "image", "packages"}
    assert digests["image"] == image_digest(client, LOCAL_IMAGE)
    assert digests == sandbox.digests()


EXIT_121 = """
import fs from 'node:fs';
import net from 'node:net';
net.createServer().listen(18999, '127.0.0.1');
setInterval(() => { if (fs.existsSync('/tmp/exit')) process.exit(121); }, 50);
"""


def host_addresses() -> list[str]:
    output = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout
    return [address for address in output.split() if "." in address]


@contextmanager
def unsealed(client: DockerClient, command: list[str]) -> Iterator[Container]:
    """A container on the default network."""
    container = client.containers.run(LOCAL_IMAGE, command, detach=True, init=True, labels={"dataclaw.test": "1"})
    try:
        yield container
    finally:
        container.remove(force=True)
