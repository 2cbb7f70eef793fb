"""The `react` agent: a tool-calling loop on the host; only its commands run in the sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pytest_dataclaw.drive.base import AgentRun
from pytest_dataclaw.drive.chat import Chat, Ending, Message, Reply
from pytest_dataclaw.drive.tools import Command, exec_tool, read_call, render
from pytest_dataclaw.drive.transcript import Transcript
from pytest_dataclaw.model.result import EndReason

if TYPE_CHECKING:
    from pytest_dataclaw.model.run import Deadline, ModelEndpoint
    from pytest_dataclaw.model.task import Brief
    from pytest_dataclaw.model.trajectory import ToolCall
    from pytest_dataclaw.provision.base import Sandbox

_SYSTEM_PROMPT = """\
You are a data analyst. You work in a sandbox whose working directory holds the data files under ./database. \
Look at the files and compute with the exec tool (python3 is there); take every figure from the data, not from memory. \
When you are done, reply without a tool call, with the final answer only, in exactly the format that the task asks for.
"""
_COMMAND_EXCERPT_CHARS = 120


class ReactAgent:
    """Ask the model, run what it asks for, tell it the output, until it replies without a tool call.

    `exec_timeout` is the most seconds a command may take, `output_limit` the most characters of its output that the
    model is shown. `turn_limit` replies without an answer among them are an early stop.
    """

    name = "react"
    profile = "default"

    def __init__(self, turn_limit: int = 100, exec_timeout: float = 300.0, output_limit: int = 20_000) -> None:
        self._turn_limit = turn_limit
        self._exec_timeout = exec_timeout
        self._output_limit = output_limit

    def run(self, brief: Brief, sandbox: Sandbox, model: ModelEndpoint, deadline: Deadline) -> AgentRun:
        """Work on the brief until an answer, a stop, or the deadline."""
        transcript = Transcript()
        chat = Chat(model, [exec_tool(self._exec_timeout)])
        try:
            ending = self._converse(brief, sandbox, chat, deadline, transcript)
        finally:
            chat.close()
        transcript.note(f"end: {ending.reason.value} {ending.detail}".rstrip())
        return AgentRun(ending.reason, ending.detail, tuple(transcript.rows), transcript.log)

    def _converse(
        self, brief: Brief, sandbox: Sandbox, chat: Chat, deadline: Deadline, transcript: Transcript
    ) -> Ending:
        messages: list[Message] = [
            {"role": "system", "content": _SYSTEM_PROMPT},
            {"role": "user", "content": brief.prompt},
        ]
        transcript.user(brief.prompt)
        for turn in range(1, self._turn_limit + 1):
            started = time.monotonic()
            reply = chat.ask(messages, deadline)
            seconds = time.monotonic() - started
            if isinstance(reply, Ending):
                transcript.note(f"request {turn}: no reply after {seconds:.2f} s")
                return reply
            transcript.note(
                f"request {turn}: {seconds:.2f} s, finish reason {reply.finish_reason or 'not given'}, "
                f"{len(reply.calls)} tool calls, {len(reply.text)} characters of text"
            )
            transcript.assistant(reply)
            if not reply.calls:
                return _final(reply)
            if turn == self._turn_limit:
                break
            messages.append(reply.message)
            for call in reply.calls:
                if deadline.passed:
                    return Ending(EndReason.AGENT_TIMEOUT, f"time was up before all commands of turn {turn} had run")
                answer = self._answer(call, sandbox, deadline, transcript)
                messages.append({"role": "tool", "tool_call_id": call.call_id, "content": answer})
        return Ending(EndReason.EARLY_STOP, f"no answer within the limit of {self._turn_limit} turns")

    def _answer(self, call: ToolCall, sandbox: Sandbox, deadline: Deadline, transcript: Transcript) -> str:
        """Run what a tool call asks for and return what the model is told, mistakes of the call included."""
        command = read_call(call, self._exec_timeout)
        if isinstance(command, Command):
            timeout = deadline.allowance(command.timeout)
            started = time.monotonic()
            result = sandbox.exec(command.text, timeout=timeout)
            how = "timed out" if result.timed_out else f"exit code {result.exit_code}"
            transcript.note(
                f"{call.name}: {how} after {time.monotonic() - started:.2f} s, {len(result.output)} characters: "
                f"{command.text[:_COMMAND_EXCERPT_CHARS]}"
            )
            answer, failed = render(result, timeout, self._output_limit), result.exit_code != 0
        else:
            answer, failed = command, True
            transcript.note(f"{call.name[:_COMMAND_EXCERPT_CHARS]}: not run: {answer}")
        transcript.tool_result(call, answer, is_error=failed)
        return answer


def _final(reply: Reply) -> Ending:
    if reply.text.strip():
        return Ending(EndReason.ANSWERED)
    return Ending(
        EndReason.EARLY_STOP, f"the last reply has no text (finish reason {reply.finish_reason or 'not given'})"
    )
