"""The one tool of the `react` agent: what the model may ask of it, and what it is answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.drive.chat import plain_json

if TYPE_CHECKING:
    from pytest_dataclaw.model.trajectory import ToolCall
    from pytest_dataclaw.provision.base import ExecResult

TOOL_NAME = "exec"


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it will run; `timeout` in seconds."""

    text: str
    timeout: float


def exec_tool(longest: float) -> dict[str, Any]:
    """Return the tool's declaration; `longest` is the most seconds that a command may take."""
    return {
        "type": "function",
        "function": {
            "name": TOOL_NAME,
            "description": "Run a bash command in the working directory. Returns its output (stdout and stderr). "
            "Files stay from one command to the next; the directory and variables of the shell do not. "
            "A background process must send its output to a file.",
            "parameters": {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "the command"},
                    "timeout": {
                        "type": "number",
                        "description": f"seconds after which it is killed; at most {longest:g}, which is the default",
                    },
                },
                "required": ["command"],
            },
        },
    }


def read_call(call: ToolCall, longest: float) -> Command | str:
    """Return the command that a tool call asks for, or a sentence on what is wrong with the call."""
    if call.name != TOOL_NAME:
        return f"Error: there is no tool {call.name!r}; the only tool is {TOOL_NAME!r}."
    try:
        arguments = plain_json(call.arguments)
    except (ValueError, RecursionError) as error:
        return f"Error: the arguments are not valid JSON: {error}."
    if not isinstance(arguments, dict):
        return 'Error: the arguments must be a JSON object such as {"command": "ls"}.'
    command, timeout = arguments.get("command"), arguments.get("timeout")
    if not isinstance(command, str) or not command.strip():
        return "Error: 'command' is missing or is not a string with a command in it."
    if timeout is None:
        return Command(command, longest)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
        return f"Error: 'timeout' must be a number of seconds above 0, at most {longest:g}."
    return Command(command, float(min(timeout, longest)))


def render(result: ExecResult, timeout: float, limit: int) -> str:
    """Return what the model is told: the output, nothing added if all went well; `limit` in characters."""
    output = cut_middle(result.output, limit)
    if result.timed_out:
        note = f"[timed out after {timeout:.3g} s]"
    elif result.exit_code:
        note = f"[exit code {result.exit_code}]"
    else:
        return output
    return f"{output}{'' if output.endswith(chr(10)) or not output else chr(10)}{note}"


def cut_middle(text: str, limit: int) -> str:
    """Return a text with its middle taken out so that `limit` of its characters are left; a line marks the gap."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 2, limit // 2
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[len(text) - tail :]}"
