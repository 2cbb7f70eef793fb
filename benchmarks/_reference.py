"""The published benchmark's lifecycle of a task, from the eight steps that its README names, by Docker's command line.

In its favour: readiness is polled for, nothing sleeps; there is one judge's turn, that of a solved task; and as the
container has no network, no look-up of a name that is not to be had is waited for. The model is reached as in our
sandbox, by the same forwarder to a unix socket.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from _meter import Meter
from _scripted import ANSWER, MODEL, PROMPT, SESSION_SECONDS, check_requests, scenario
from pytest_dataclaw.provision.base import PROGRAMS
from pytest_dataclaw.provision.owner import OWNER_LABEL, this_process
from pytest_dataclaw.provision.recipe import recipe_folder
from pytest_dataclaw.testing.model_server import ModelServer

if TYPE_CHECKING:
    from docker import DockerClient

    from _meter import Costs

IMAGE = "dataclaw:local-plain"

_PORT, _GATEWAY = 18999, 3333
_PROVIDER = f"custom-127-0-0-1-{_PORT}"
"""How onboarding names the provider at this address."""
_JUDGE_PROMPT = f"Question: {PROMPT}\nGold answer: {ANSWER}\nAnswer: {ANSWER}\nScore it; reply with JSON alone."

_ONBOARD = f"""
set -e
ln -s /tmp_workspace ~/.openclaw/workspace
openclaw onboard --non-interactive --accept-risk --skip-health --workspace ~/.openclaw/workspace \\
    --gateway-bind loopback --gateway-port {_GATEWAY} --auth-choice custom-api-key \\
    --custom-base-url http://127.0.0.1:{_PORT}/v1 --custom-api-key none --custom-model-id {MODEL}
python3 - <<'END'
import json, pathlib
file = pathlib.Path.home() / ".openclaw/openclaw.json"
config = json.loads(file.read_text())
for model in config["models"]["providers"]["{_PROVIDER}"]["models"]:
    model.update(contextWindow=128000, maxTokens=16384, compat={{"supportsUsageInStreaming": True}})
file.write_text(json.dumps(config))
END
"""
_START_GATEWAY = f"""
setsid openclaw gateway run --bind loopback --port {_GATEWAY} >~/gateway.log 2>&1 </dev/null &
until (exec 3<>/dev/tcp/127.0.0.1/{_GATEWAY}) 2>/dev/null; do
    kill -0 $! || exit 1
    sleep 0.1
done
"""
_SOLVE = f"""
set -e
openclaw models set {_PROVIDER}/{MODEL}
openclaw agent --agent main --session-id chat --timeout {SESSION_SECONDS} --message {shlex.quote(PROMPT)}
"""
_JUDGE = f"""
set -e
openclaw agents add judge --non-interactive --workspace /tmp/judge --model {_PROVIDER}/{MODEL}
openclaw agent --agent judge --session-id judge --timeout {SESSION_SECONDS} --message {shlex.quote(_JUDGE_PROMPT)}
"""


def run_reference(client: DockerClient, data: Path) -> Costs:
    """Run the lifecycle once, on a folder of data; exit where a step fails."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short, as the path of a unix socket has to be
        place = Path(folder)
        place.chmod(0o711)
        with ModelServer(scenario(), unix_socket=place / "model.sock") as server:
            costs = _steps(Meter(client), place, data)
            check_requests(server)
        return costs


def _steps(meter: Meter, place: Path, data: Path) -> Costs:
    container = _docker(*_run_arguments(place)).strip()
    try:
        meter.watch(container)
        meter.book("container")
        _docker("cp", str(data), f"{container}:/tmp_workspace/database")
        meter.book("data in")
        _inside(container, _ONBOARD)
        meter.book("set-up")
        _inside(container, _START_GATEWAY)
        meter.book("gateway")
        _check(_inside(container, _SOLVE), ANSWER)
        meter.book("agent")
        _check(_inside(container, _JUDGE), '"match": 1')
        meter.book("judge")
        results = place / "results"
        results.mkdir()
        for path in (".openclaw/agents", "gateway.log"):
            _docker("cp", f"{container}:/home/agent/{path}", str(results))
        meter.book("results out", last_sample=True)
    finally:
        _docker("rm", "--force", container)
    meter.book("removal")
    _check_transcript(results)
    return meter.costs


def _check_transcript(results: Path) -> None:
    """Exit unless the agent's session was copied out; its file's name is of OpenClaw's own making."""
    (transcript,) = (results / "agents/main/sessions").glob("*.jsonl")
    rows = [json.loads(line) for line in transcript.read_text("utf-8").splitlines()]
    turns = sum(row.get("message", {}).get("role") == "assistant" for row in rows)
    if turns != 2:
        raise SystemExit(f"reference: the transcript that was copied out has {turns} turns, not 2")


def _run_arguments(place: Path) -> list[str]:
    mounts = {place: "/run/dataclaw", recipe_folder() / "docker": PROGRAMS}
    arguments = ["run", "--detach", "--network", "none", "--label", f"{OWNER_LABEL}={this_process()}"]
    for source, target in mounts.items():
        arguments += ["--volume", f"{source}:{target}:ro"]
    entry = ["--socket", "/run/dataclaw/model.sock", "--port", str(_PORT), "--seconds", str(2 * SESSION_SECONDS)]
    return [*arguments, IMAGE, "node", f"{PROGRAMS}/entry.mjs", *entry]


def _inside(container: str, script: str) -> str:
    """Run a script; return what it printed, complaints included."""
    return _docker("exec", "--workdir", "/tmp_workspace", container, "bash", "-c", f"exec 2>&1\n{script}")


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=SESSION_SECONDS)
    if done.returncode != 0:
        raise SystemExit(f"docker {shlex.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _check(output: str, expected: str) -> None:
    """Exit unless an agent's output is what is expected; it is not where the turn was taken without the gateway."""
    if expected not in output or "falling back" in output:
        raise SystemExit(f"reference: expected {expected!r} in what the agent printed, got:\n{output}")
