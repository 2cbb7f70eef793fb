"""The sandbox image: what is in it, a sealed turn of the real OpenClaw, and a main process that ends by itself."""

from __future__ import annotations

import io
import json
import shutil
import socketserver
import tarfile
import tempfile
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.errors import UsageError
from pytest_dataclaw.provision.base import PROGRAMS
from pytest_dataclaw.provision.image import (
    build,
    context_digest,
    image_digest,
    inspect,
    load,
    package_hash,
    save,
)
from pytest_dataclaw.provision.outfit import AgentUser, agent_user, outfit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient
    from docker.models.containers import Container

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
GATEWAY_PORT = 3333
MODEL_PORT = 18999
TOKEN = "gateway-token"
AGENT = AgentUser("agent", 1000, 1000, "/home/agent")
CSV = "name,revenue\nZean Jin,42\n"

UPSTREAM: dict[str, Any] = {}
LEAN: dict[str, Any] = {"plugins": {"enabled": False}, "tools": {"allow": ["read", "write", "edit", "exec", "process"]}}


class Model(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A model on a unix socket: has one command run, then answers with what the command printed."""

    daemon_threads = True
    command = "exec 2>&1; cat database/firms.csv; touch database/new; id -u; ls /sys/class/net"

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / "model.sock"), ModelHandler)
        (folder / "model.sock").chmod(0o666)
        self.requests: list[dict[str, Any]] = []


class ModelHandler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
        if results:
            self._stream(request["model"], {"role": "assistant", "content": _text(results[-1])}, "stop")
            return
        function = {"name": "exec", "arguments": json.dumps({"command": self.server.command})}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        self._stream(request["model"], {"role": "assistant", "tool_calls": [call]}, "tool_calls")

    def _stream(self, model: str, delta: dict[str, Any], finish_reason: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for choice in (
            {"index": 0, "delta": delta, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": finish_reason},
        ):
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        pass


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for the socket: short, as its path must fit into 108 bytes, and open to the container's user."""
    folder = Path(tempfile.mkdtemp(prefix="dataclaw-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def serving(model: Model) -> Iterator[Model]:
    thread = threading.Thread(target=model.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield model
    finally:
        model.shutdown()
        model.server_close()
        thread.join()


@contextmanager
def running(
    client: DockerClient,
    image: str,
    folder: Path,
    entry: list[str],
    files: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[Container]:
    """Start a sealed container with the entry program as its main process, `files` in the user's home."""
    volumes = {str(folder): {"bind": "/run/dataclaw", "mode": "ro"}, **options.pop("volumes", {})}
    container = client.containers.create(
        image,
        ["--socket", "/run/dataclaw/model.sock", "--port", str(MODEL_PORT), *entry],
        entrypoint=["node", f"{PROGRAMS}/entry.mjs"],
        network_mode="none",
        init=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": "exec"},
        volumes=volumes,
        **options,
    )
    try:
        container.put_archive("/", outfit(AGENT, "/tmp_workspace"))
        container.put_archive(AGENT.home, _tar(files or {}))
        container.start()
        yield container
    finally:
        container.remove(force=True, v=True)


def run(client: DockerClient, image: str, *command: str) -> str:
    output: bytes = client.containers.run(image, list(command), remove=True, network_mode="none")
    return output.decode()


def exit_of(container: Container, within: float) -> tuple[int, float]:
    """Return the container's exit code and the seconds it took to end."""
    start = time.monotonic()
    return int(container.wait(timeout=within)["StatusCode"]), time.monotonic() - start


def gateway_config(more: dict[str, Any]) -> str:
    model = {"id": "m", "name": "m", "contextWindow": 128000, "maxTokens": 4096}
    provider = {"baseUrl": f"http://127.0.0.1:{MODEL_PORT}/v1", "apiKey": "none", "api": "openai-completions"}
    config = {
        "models": {"mode": "merge", "providers": {"llm": {**provider, "models": [model]}}},
        "agents": {
            "defaults": {
                "model": {"primary": "llm/m"},
                "workspace": "/tmp_workspace",
                "skipBootstrap": True,
                "heartbeat": {"every": "0m"},
            }
        },
        "gateway": {
            "port": GATEWAY_PORT,
            "mode": "local",
            "bind": "loopback",
            "auth": {"mode": "token", "token": TOKEN},
            "controlUi": {"enabled": False},
        },
    }
    return json.dumps({**config, **more})


def job(wait: float, token: str = TOKEN) -> str:
    params = {"message": "What is the revenue?", "sessionId": "chat", "timeout": 60}
    return json.dumps({"port": GATEWAY_PORT, "token": token, "wait": wait, "params": params})


def turn(container: Container, path: str = "/home/agent/job.json") -> dict[str, Any]:
    code, output = container.exec_run(["node", f"{PROGRAMS}/turn.mjs", path])
    assert code == 0, output
    assert isinstance(output, bytes)
    result: dict[str, Any] = json.loads(output)
    return result


def _text(content: str | list[dict[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            entry.uid = entry.gid = 1000
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def test_python_has_the_pinned_packages(client: DockerClient, image: str) -> None:
    pins = [line for line in (ROOT / "docker/requirements.txt").read_text().splitlines() if not line.startswith("#")]
    names = [pin.partition("==")[0] for pin in pins]
    program = f"import importlib.metadata as m; print(*(f'{{n}}=={{m.version(n)}}' for n in {names}), sep='\\n')"
    assert run(client, image, "python3", "-c", program).split() == pins
    assert {"pandas", "numpy", "scipy", "duckdb"} <= set(names)
    sums = "import pandas, numpy, scipy.stats, duckdb; print(duckdb.sql('select 40 + 2').fetchone()[0])"
    assert run(client, image, "python3", "-c", sums).strip() == "42"


def test_node_and_openclaw_are_the_pinned_ones(client: DockerClient, image: str) -> None:
    assert run(client, image, "node", "--version").strip() == "v22.23.3"
    assert "2026.3.24" in run(client, image, "openclaw", "--version")


def test_tools_and_user(client: DockerClient, image: str) -> None:
    script = "id -u; id -un; echo $HOME; pwd; test -w . && echo writable; which sqlite3 curl git tini"
    assert run(client, image, "sh", "-c", script).split() == [
        "1000",
        "agent",
        "/home/agent",
        "/tmp_workspace",
        "writable",
        *("/usr/bin/sqlite3", "/usr/bin/curl", "/usr/bin/git", "/usr/bin/tini"),
    ]


@pytest.mark.parametrize("profile", [UPSTREAM, LEAN], ids=["upstream", "lean"])
def test_sealed_turn(client: DockerClient, image: str, folder: Path, tmp_path: Path, profile: dict[str, Any]) -> None:
    (tmp_path / "firms.csv").write_text(CSV)
    tmp_path.chmod(0o755)
    files = {".openclaw/openclaw.json": gateway_config(profile), "job.json": job(60)}
    with (
        serving(Model(folder)) as model,
        running(
            client,
            image,
            folder,
            ["--seconds", "120", "--", "openclaw", "gateway", "run"],
            files,
            volumes={str(tmp_path): {"bind": "/tmp_workspace/database", "mode": "ro"}},
            environment={"OPENCLAW_NO_RESPAWN": "1"},
        ) as container,
    ):
        result = turn(container)
    assert result["status"] == "final", result
    assert 0 < result["ready"] < 60
    answer = result["payload"]["result"]["payloads"][-1]["text"]
    assert answer.startswith(CSV)
    assert "Read-only file system" in answer
    assert answer.split()[-2:] == ["1000", "lo"]
    assert not (tmp_path / "new").exists()
    assert len(model.requests) == 2
    tools = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert tools == {"read", "write", "edit", "exec", "process"} if profile else {"exec", "web_fetch", "cron"} <= tools


def test_turn_says_what_kept_it_from_the_gateway(client: DockerClient, image: str, folder: Path) -> None:
    files = {
        ".openclaw/openclaw.json": gateway_config(LEAN),
        "early.json": job(0.2),
        "wrong.json": job(60, token="another"),
    }
    entry = ["--seconds", "120", "--", "openclaw", "gateway", "run"]
    with serving(Model(folder)) as model, running(client, image, folder, entry, files) as container:
        assert turn(container, "/home/agent/early.json")["status"] == "unreachable"
        refused = turn(container, "/home/agent/wrong.json")
    assert refused["status"] == "refused"
    assert "token" in refused["error"]["message"]
    assert model.requests == []


@pytest.mark.parametrize("leaves_its_file", [True, False])
def test_container_ends_when_the_proxy_is_gone(
    client: DockerClient, image: str, folder: Path, leaves_its_file: bool
) -> None:
    with running(client, image, folder, ["--seconds", "60", "--grace", "2"]) as container:
        with serving(Model(folder)):
            time.sleep(4)
            container.reload()
            assert container.status == "running"
        if not leaves_its_file:
            (folder / "model.sock").unlink()
        code, seconds = exit_of(container, within=20)
        assert code == 121, container.logs()
        assert 1 < seconds < 6
        assert b"the model proxy has been gone for 2 s" in container.logs()


def test_container_ends_when_its_time_is_up(client: DockerClient, image: str, folder: Path) -> None:
    entry = ["--seconds", "2", "--", "sleep", "60"]
    with serving(Model(folder)), running(client, image, folder, entry) as container:
        assert exit_of(container, within=20)[0] == 124
        assert b"time is up after 2 s" in container.logs()


@pytest.mark.parametrize(
    ("entry", "code", "line"),
    [
        (
            ["--seconds", "60", "--", "sh", "-c", "echo working; exit 3"],
            120,
            b"working\ndataclaw: sh ended with status 3\n",
        ),
        (["--seconds", "60", "--", "no-such-program"], 119, b"dataclaw: cannot start no-such-program: "),
        (["--seconds", "soon"], 119, b"dataclaw: --seconds: expected a number above 0, got soon\n"),
    ],
)
def test_container_ends_with_its_command(
    client: DockerClient, image: str, folder: Path, entry: list[str], code: int, line: bytes
) -> None:
    with serving(Model(folder)), running(client, image, folder, entry) as container:
        assert exit_of(container, within=20)[0] == code
        assert line in container.logs()


def test_container_stops_at_once(client: DockerClient, image: str, folder: Path) -> None:
    with serving(Model(folder)), running(client, image, folder, ["--seconds", "60", "--", "sleep", "60"]) as container:
        time.sleep(1)
        start = time.monotonic()
        container.stop(timeout=10)
        assert time.monotonic() - start < 5
        assert exit_of(container, within=5)[0] == 143


def test_image_is_built_from_these_files(client: DockerClient, image: str) -> None:
    assert inspect(client, image).context == context_digest(ROOT), "docker/build-image makes it anew"
    assert build(client).id == build(client, ROOT).id == image_digest(client, image)


def test_the_images_user_is_looked_up(client: DockerClient, image: str, tiny: str) -> None:
    labels = {"dataclaw.test": "user"}
    assert agent_user(client, image, labels) == AGENT
    assert agent_user(client, tiny, labels) == AgentUser("root", 0, 0, "/root")
    assert client.containers.list(all=True, filters={"label": "dataclaw.test=user"}) == []


def test_package_hash_is_taken_once_and_names_all_three_kinds(client: DockerClient, image: str, tmp_path: Path) -> None:
    first = package_hash(client, image, tmp_path)
    (listed,) = tmp_path.iterdir()
    assert listed.name == f"{image_digest(client, image).removeprefix('sha256:')}.txt"
    lines = listed.read_text().splitlines()
    assert lines == sorted(lines)
    assert "pandas==2.3.3" in lines
    assert any(line.startswith("sqlite3 3.") for line in lines)
    assert any("openclaw@2026.3.24" in line for line in lines)
    listed.write_text("kept\n")
    assert package_hash(client, image, tmp_path) != first  # from the kept list: no second container


@pytest.fixture
def tiny(client: DockerClient) -> Iterator[str]:
    """An image with one file in it."""
    client.api.import_image_from_data(_tar({"hello": "world"}), repository="dataclaw-test", tag="tiny")
    yield "dataclaw-test:tiny"
    client.images.remove("dataclaw-test:tiny", force=True)


def test_saved_image_loads_as_the_same_one(client: DockerClient, tiny: str, tmp_path: Path) -> None:
    before = inspect(client, tiny)
    assert before.tags == (tiny,)
    assert before.context is None
    save(client, tiny, tmp_path / "tiny.tar.gz")
    client.images.remove(tiny)
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.tar.gz"]
    (after,) = load(client, tmp_path / "tiny.tar.gz")
    assert (after.id, after.tags) == (before.id, (tiny,))


def test_unknown_images_and_files_are_named(client: DockerClient, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot inspect no-such:image: no such image\. `dataclaw image build`"):
        inspect(client, "no-such:image")
    with pytest.raises(UsageError, match=r"no such image"):
        save(client, "no-such:image", tmp_path / "image.tar.gz")
    with pytest.raises(UsageError, match=r"cannot load .*absent\.tar"):
        load(client, tmp_path / "absent.tar")
    (tmp_path / "junk.tar").write_bytes(b"junk")
    with pytest.raises(UsageError, match=r"cannot load .*junk\.tar"):
        load(client, tmp_path / "junk.tar")
    with pytest.raises(UsageError, match=r"holds no Dockerfile"):
        build(client, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["junk.tar"]
