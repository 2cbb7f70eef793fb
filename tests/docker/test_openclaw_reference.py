"""Profile `upstream` and the benchmark's own lifecycle send the same first request, but for the differences below."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dataclaw.drive.openclaw.agent import OpenClawAgent
from pytest_dataclaw.model.run import Deadline, ModelEndpoint, TrialKey
from pytest_dataclaw.model.task import Brief
from pytest_dataclaw.proxy.wire import message_text
from pytest_dataclaw.testing.model_server import ModelServer
from pytest_dataclaw.testing.scenario import Answer, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_dataclaw.provision.base import Sandbox
    from pytest_dataclaw.provision.docker import DockerProvider

pytest_plugins = ("engine_fixture",)
pytestmark = pytest.mark.docker

PROMPT = "What is the revenue?"
TOKEN = "lease-token-0123456789"
SEALED_OFF = {"web_search", "web_fetch"}
"""Tools that only a web task has; the reference always has them."""

LIFECYCLE = f"""
set -e
cd
ln -s /tmp_workspace .openclaw/workspace
openclaw onboard --non-interactive --accept-risk --skip-health --workspace "$HOME/.openclaw/workspace" \\
    --gateway-bind loopback --gateway-port 3333 --auth-choice custom-api-key \\
    --custom-base-url BASE_URL --custom-api-key {TOKEN} --custom-model-id scripted
python3 - <<'END'
import json, pathlib
file = pathlib.Path.home() / ".openclaw/openclaw.json"
config = json.loads(file.read_text())
for provider in config["models"]["providers"].values():
    for model in provider["models"]:
        model.update(contextWindow=128000, maxTokens=16384, compat={{"supportsUsageInStreaming": True}})
file.write_text(json.dumps(config))
END
setsid openclaw gateway run --bind loopback --port 3333 >gateway.log 2>&1 </dev/null &
until (exec 3<>/dev/tcp/127.0.0.1/3333) 2>/dev/null; do sleep 0.2; done
cd /tmp_workspace
openclaw agent --agent main --session-id chat --timeout 200 --message {shlex.quote(PROMPT)}
"""


def first_request(provider: DockerProvider, work: Callable[[Sandbox, Brief, ModelEndpoint], None]) -> dict[str, Any]:
    brief = Brief("task", "task", "risk", "easy", PROMPT, 300, (), web=False)
    with (
        provider.provision(brief, TrialKey("run", "node", "task")) as sandbox,
        ModelServer(Scenario(Answer("0.92")), unix_socket=sandbox.socket) as server,
    ):
        work(sandbox, brief, ModelEndpoint(server.base_url, TOKEN, "scripted"))
    (request,) = server.requests
    return dict(request.body)


def by_reference(sandbox: Sandbox, brief: Brief, model: ModelEndpoint) -> None:
    base_url = sandbox.reach(model).base_url
    result = sandbox.exec(LIFECYCLE.replace("BASE_URL", base_url), timeout=240)
    assert result.exit_code == 0, result.output
    assert result.output.split()[-1] == "0.92"


def by_profile_upstream(sandbox: Sandbox, brief: Brief, model: ModelEndpoint) -> None:
    run = OpenClawAgent("upstream").run(brief, sandbox, model, Deadline(240))
    assert not run.detail, run.log


def normal(text: str) -> str:
    """Write alike what may differ: clock, container's name, the workspace's path, the provider's name in OpenClaw."""
    text = re.sub(r"^\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d UTC\]", "[now]", text)
    text = re.sub(r"\bhost=[0-9a-f]{12}\b", "host=", text)
    text = text.replace("/home/agent/.openclaw/workspace", "/tmp_workspace")
    return re.sub(r"(model=)(custom-127-0-0-1-18999|dataclaw)/", r"\1", text)


def normal_lines(message: Mapping[str, Any]) -> list[str]:
    """Return the lines of a message without those on tools that are sealed off."""
    lines = normal(message_text(message["content"])).splitlines()
    return [line for line in lines if not re.match(rf"- ({'|'.join(SEALED_OFF)})\b", line)]


def test_first_request_is_the_reference_lifecycles(provider: DockerProvider) -> None:
    reference = first_request(provider, by_reference)
    ours = first_request(provider, by_profile_upstream)
    assert [message["role"] for message in ours["messages"]] == ["system", "user"]
    assert list(map(normal_lines, ours.pop("messages"))) == list(map(normal_lines, reference.pop("messages")))
    tools = reference.pop("tools")
    assert {tool["function"]["name"] for tool in tools} >= SEALED_OFF
    assert ours.pop("tools") == [tool for tool in tools if tool["function"]["name"] not in SEALED_OFF]
    assert ours == reference
    assert ours["max_completion_tokens"] == 16_384
