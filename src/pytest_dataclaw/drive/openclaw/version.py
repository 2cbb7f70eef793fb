"""What differs between OpenClaw's versions, and the one that is driven: 2026.3.24, over its gateway's WebSocket."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_dataclaw.drive.openclaw.config import agent_settings, configuration, environment, no_plugins_folder
from pytest_dataclaw.drive.openclaw.transcript import read_rows
from pytest_dataclaw.drive.openclaw.turn import SESSION, TurnReport, job, read_report
from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.base import PROGRAMS

if TYPE_CHECKING:
    from pytest_dataclaw.drive.openclaw.config import Plan
    from pytest_dataclaw.model.run import Deadline
    from pytest_dataclaw.provision.base import Sandbox

_REPORT_LIMIT = 16 * 1024 * 1024
_TRANSCRIPT_LIMIT = 64 * 1024 * 1024
_LOG_LIMIT = 1024 * 1024
_LOG_TAIL_CHARS = 1000
_KILLED = -9
_POST_MORTEM_SECONDS = 20.0


class Version(Protocol):
    """One version of OpenClaw in a sandbox. The methods are called in this order; all may raise SandboxError."""

    @property
    def number(self) -> str:
        """The version as OpenClaw spells it."""

    def configure(self, sandbox: Sandbox, plan: Plan, message: str) -> None:
        """Write the files that OpenClaw and the turn need."""

    def start(self, sandbox: Sandbox, plan: Plan, *, patience: float) -> None:
        """Start what has to run before the turn and wait until it is up, `patience` seconds at most."""

    def take_turn(self, sandbox: Sandbox, plan: Plan, deadline: Deadline) -> TurnReport:
        """Have the agent work on the message until it stops or the deadline, which may move meanwhile."""

    def read_transcript(self, sandbox: Sandbox, plan: Plan) -> tuple[dict[str, Any], ...] | None:
        """Return the transcript's rows; None where OpenClaw has written none."""

    def read_log(self, sandbox: Sandbox, plan: Plan) -> str:
        """Return the start of OpenClaw's own log."""


class Gateway20260324:
    """OpenClaw 2026.3.24. Its command line is never used for a turn: it takes 5 s to start, and may repeat the turn."""

    number = "2026.3.24"

    def configure(self, sandbox: Sandbox, plan: Plan, message: str) -> None:
        """Write configuration, agent settings and the turn's job."""
        files = {
            f"{_state(plan)}/openclaw.json": configuration(plan),
            f"{_state(plan)}/agents/main/agent/settings.json": agent_settings(),
            _job(plan): job(plan, message),
        }
        for path, content in files.items():
            sandbox.write_file(path, json.dumps(content).encode("utf-8", "replace"))

    def start(self, sandbox: Sandbox, plan: Plan, *, patience: float) -> None:
        """Start the gateway in a session of its own; SandboxError with its last words where it is not up in time."""
        result = sandbox.exec(_start_command(plan), timeout=patience)
        if result.exit_code == 0:
            return
        what = f"was not up after {patience:.0f} s" if result.timed_out else "ended before it was up"
        said = f"{result.output}\n{self.read_log(sandbox, plan)}".strip()[-_LOG_TAIL_CHARS:]
        raise SandboxError(f"OpenClaw's gateway {what}: {said or 'it printed nothing'}")

    def take_turn(self, sandbox: Sandbox, plan: Plan, deadline: Deadline) -> TurnReport:
        """Run the client beside the wait for it, so that the wait can be prolonged.

        Its report goes to a file, as the output of a command is cut.
        """
        began = time.monotonic()
        result = sandbox.exec(_client_command(plan), timeout=deadline.remaining())
        if result.exit_code == 0:
            result = sandbox.exec(_wait_command(plan), timeout=deadline.remaining())
            while result.timed_out and not deadline.passed:
                result = sandbox.exec(_wait_command(plan), timeout=deadline.remaining())
        if result.timed_out:
            return TurnReport("timed_out", took=time.monotonic() - began)
        if result.exit_code != 0:
            last_words = result.output.strip()[-_LOG_TAIL_CHARS:]
            report = TurnReport("lost", error=f"the turn's client ended with {result.exit_code}: {last_words}")
        else:
            report = read_report(sandbox.read_file(_report(plan), limit=_REPORT_LIMIT))
        if report.status in ("closed", "lost"):
            command = _post_mortem(plan, client_was_killed=result.exit_code == _KILLED)
            memory_ran_out = sandbox.exec(command, timeout=_POST_MORTEM_SECONDS).exit_code == 0
            report = replace(report, memory_ran_out=memory_ran_out)
        return report

    def read_transcript(self, sandbox: Sandbox, plan: Plan) -> tuple[dict[str, Any], ...] | None:
        """Read the session's file, which OpenClaw makes when the model has answered for the first time."""
        data = sandbox.read_file(f"{_state(plan)}/agents/main/sessions/{SESSION}.jsonl", limit=_TRANSCRIPT_LIMIT)
        return None if data is None else read_rows(data)

    def read_log(self, sandbox: Sandbox, plan: Plan) -> str:
        """Return the start of what the gateway printed."""
        return (sandbox.read_file(_log(plan), limit=_LOG_LIMIT) or b"").decode("utf-8", "replace")


def _state(plan: Plan) -> str:
    return f"{plan.home}/.openclaw"


def _job(plan: Plan) -> str:
    return f"{_state(plan)}/dataclaw-job.json"


def _report(plan: Plan) -> str:
    return f"{_state(plan)}/dataclaw-report.json"


def _log(plan: Plan) -> str:
    return f"{_state(plan)}/dataclaw-gateway.log"


def _client(plan: Plan, part: str) -> str:
    """Return the file of the client's exit code (`status`) or its complaints (`error`), or the `pipe` it ends with."""
    return f"{_state(plan)}/dataclaw-client.{part}"


def _gateway_status(plan: Plan) -> str:
    return f"{_state(plan)}/dataclaw-gateway.status"


def _start_command(plan: Plan) -> str:
    """Return a command that ends when the gateway listens (0) or has ended (1)."""
    gateway = f"openclaw gateway run; echo $? >{shlex.quote(_gateway_status(plan))}"
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment(plan).items())
    script = f"""
mkdir -p {shlex.quote(no_plugins_folder(plan))}
export {exports}
setsid bash -c {shlex.quote(gateway)} >{shlex.quote(_log(plan))} 2>&1 </dev/null &
until (exec 3<>/dev/tcp/127.0.0.1/{plan.port}) 2>/dev/null; do
    kill -0 $! 2>/dev/null || exit 1
    sleep 0.1
done
"""
    return f"exec bash -c {shlex.quote(script)}"


def _client_command(plan: Plan) -> str:
    """Return a command that starts the client in a session of its own."""
    pipe, error, status = (shlex.quote(_client(plan, part)) for part in ("pipe", "error", "status"))
    client = f"node {PROGRAMS}/turn.mjs {shlex.quote(_job(plan))} >{shlex.quote(_report(plan))} 2>{error}"
    script = f"{client}; echo $? >{status}; echo >{pipe}"
    return f"mkfifo {pipe} && {{ setsid bash -c {shlex.quote(script)} </dev/null >/dev/null 2>&1 & }}"


def _wait_command(plan: Plan) -> str:
    """Return a command that ends when the client has ended, with its exit code; it may be killed and run again."""
    pipe, error, status = (shlex.quote(_client(plan, part)) for part in ("pipe", "error", "status"))
    return f"[[ -s {status} ]] || read -r <{pipe}; cat {error}; exit $(<{status})"


def _post_mortem(plan: Plan, *, client_was_killed: bool) -> str:
    """Return a command that succeeds if the kernel has killed for want of memory, and client or gateway was killed.

    The kernel's count, of version 2 or 1 of its control groups, does not tell whom it killed.
    """
    status = shlex.quote(_gateway_status(plan))
    was_killed = "true"
    if not client_was_killed:  # its connection ended, a moment before the gateway's status is written
        was_killed = f"for i in {{1..20}}; do [[ -s {status} ]] && break; sleep 0.1; done; [[ $(<{status}) == 137 ]]"
    counts = "/sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control"
    return f"{{ {was_killed}; }} && grep --quiet --no-messages '^oom_kill [1-9]' {counts}"
