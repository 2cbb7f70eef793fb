"""The built-in `oracle`: plays a task's gold solution as tool calls, so that a broken mount, exec or step shows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.proxy.upstreams.base import UpstreamError, completion
from pytest_dataclaw.proxy.wire import message_text

if TYPE_CHECKING:
    from pytest_dataclaw.proxy.base import LeaseRequest

_CALL_ID = "oraclestep"
"""Tool-call ids are this and the step's number: letters and digits only, which no agent finds a reason to rewrite."""
_SHELL_TOOLS = ("exec", "bash", "shell", "run_command")
_COMMAND_ARGUMENTS = ("command", "cmd", "script")


class OracleUpstream:
    """Plays the lease's script, one step a turn, and answers with what the last one printed: T = N + 1.

    Where the script has no steps it answers with the script's answer in one turn. Keeps no state: how far it has come
    is read from the tool-call ids answered in the request, so repeated requests and shortened histories do no harm.
    """

    async def aclose(self) -> None:
        """Nothing is held."""

    async def complete(self, request: dict[str, Any], lease: LeaseRequest) -> dict[str, Any]:
        """Return the next step as a tool call, or the answer; UpstreamError 400 where no shell tool is offered."""
        script = lease.script
        if not script.steps:
            return completion(request, {"content": script.answer})
        results = [message for message in request["messages"] if message["role"] == "tool"]
        played = max((_step_of(result) for result in results), default=0)
        if played >= len(script.steps):
            return completion(request, {"content": message_text(results[-1].get("content")).strip()})
        tool, argument = _shell_tool(request)
        function = {"name": tool, "arguments": json.dumps({argument: heredoc(script.steps[played])})}
        call = {"id": f"{_CALL_ID}{played + 1}", "type": "function", "function": function}
        return completion(request, {"content": None, "tool_calls": [call]})


def heredoc(script: str) -> str:
    """Return a shell command that feeds a script to Python as it is, whatever its lines."""
    word = "DATACLAW_STEP"
    while word in script.splitlines():
        word += "_"
    return f"python3 - <<'{word}'\n{script}\n{word}"


def _step_of(result: dict[str, Any]) -> int:
    match = re.fullmatch(rf"{_CALL_ID}(\d+)", str(result.get("tool_call_id")))
    return int(match[1]) if match else 0


def _shell_tool(request: dict[str, Any]) -> tuple[str, str]:
    """Return the name of the first tool that runs shell commands, and of its argument that takes one."""
    for tool in request.get("tools") or ():
        function = tool["function"]
        properties = (function.get("parameters") or {}).get("properties") or {}
        for argument in _COMMAND_ARGUMENTS:
            if function["name"] in _SHELL_TOOLS and properties.get(argument, {}).get("type") == "string":
                return function["name"], argument
    wanted = f"none of the tools {', '.join(_SHELL_TOOLS)} with a string argument {' or '.join(_COMMAND_ARGUMENTS)}"
    raise UpstreamError(400, f"oracle cannot play its steps: {wanted} is offered", "no_shell_tool")
