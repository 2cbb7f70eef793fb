"""The `openclaw` agent: configure OpenClaw, start it, have it take one turn, and tell how that ended."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from pytest_dataclaw.drive.base import AgentRun
from pytest_dataclaw.drive.openclaw.classify import classify
from pytest_dataclaw.drive.openclaw.config import ModelCard, Plan
from pytest_dataclaw.drive.openclaw.version import Gateway20260324
from pytest_dataclaw.drive.transcript import Transcript

if TYPE_CHECKING:
    from pytest_dataclaw.drive.openclaw.config import Profile, WebSearch
    from pytest_dataclaw.drive.openclaw.version import Version
    from pytest_dataclaw.model.run import Deadline, ModelEndpoint
    from pytest_dataclaw.model.task import Brief
    from pytest_dataclaw.provision.base import Sandbox

_START_SECONDS = 120.0


class OpenClawAgent:
    """Drives OpenClaw in the sandbox by one message, the brief's prompt.

    `port` is its gateway's in the sandbox; `search` is used for web tasks.
    """

    name = "openclaw"

    def __init__(
        self,
        profile: Profile = "upstream",
        *,
        card: ModelCard | None = None,
        search: WebSearch | None = None,
        port: int = 3333,
        version: Version | None = None,
    ) -> None:
        self.profile: Profile = profile
        self._card = card or ModelCard()
        self._search = search
        self._port = port
        self._version = version or Gateway20260324()

    def run(self, brief: Brief, sandbox: Sandbox, model: ModelEndpoint, deadline: Deadline) -> AgentRun:
        """Work on the brief until an answer, a stop, or the deadline."""
        version, plan = self._version, self._plan(brief, sandbox, model)
        journal = Transcript()
        journal.note(f"OpenClaw {version.number}, profile {plan.profile}, model {plan.endpoint.model}")
        began = time.monotonic()
        version.configure(sandbox, plan, brief.prompt)
        version.start(sandbox, plan, patience=min(_START_SECONDS, deadline.remaining()))
        journal.note(f"gateway up after {time.monotonic() - began:.2f} s")
        turn = version.take_turn(sandbox, plan, deadline)
        journal.note(
            f"turn {turn.status} after {turn.took:.2f} s, stop reason {turn.stop_reason or 'not given'}"
            f"{', aborted' if turn.aborted else ''}{f': {turn.error}' if turn.error else ''}"
        )
        rows = version.read_transcript(sandbox, plan)
        journal.note("no transcript" if rows is None else f"transcript of {len(rows)} rows")
        ending = classify(turn, rows, time_is_up=deadline.passed)
        journal.note(f"end: {ending.reason.value} {ending.detail}".rstrip())
        return AgentRun(ending.reason, ending.detail, rows or (), journal.log, version.read_log(sandbox, plan))

    def _plan(self, brief: Brief, sandbox: Sandbox, model: ModelEndpoint) -> Plan:
        return Plan(
            profile=self.profile,
            home=sandbox.home,
            workspace=sandbox.workspace,
            endpoint=sandbox.reach(model),
            card=self._card,
            port=self._port,
            gateway_token=secrets.token_hex(16),
            web=brief.web,
            search=self._search,
        )
