"""The proxy's control interface as both of its ends see it: the address, and how requests and answers become JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pytest_dataclaw.model.run import TrialKey
from pytest_dataclaw.model.trajectory import ToolCall, Traffic, Trajectory, Turn, Usage
from pytest_dataclaw.proxy.base import Egress, LeaseRequest, Script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_dataclaw.proxy.base import Role

MODEL_NOT_SERVED = "model_not_served"
"""Error code of a lease that was asked for a model no upstream serves."""


@dataclass(frozen=True, slots=True)
class ControlAddress:
    """Where a running proxy is controlled, and the token that gives the right to; workers get it as JSON."""

    url: str
    token: str = field(repr=False)


def lease_request_to_json(request: LeaseRequest) -> dict[str, Any]:
    """Return a lease request as plain JSON data."""
    socket = str(request.socket) if request.socket is not None else None
    egress = request.egress and {"socket": str(request.egress.socket), "journal": str(request.egress.journal)}
    return {**asdict(request), "journal": str(request.journal), "socket": socket, "egress": egress}


def lease_request_from_json(data: dict[str, Any]) -> LeaseRequest:
    """Rebuild a lease request; KeyError or TypeError where it is malformed."""
    return LeaseRequest(
        key=TrialKey(**data["key"]),
        role=data["role"],
        model=data["model"],
        journal=Path(data["journal"]),
        script=Script(steps=tuple(data["script"]["steps"]), answer=data["script"]["answer"]),
        socket=Path(data["socket"]) if data["socket"] is not None else None,
        patience=data["patience"],
        max_requests=data["max_requests"],
        egress=_egress(data["egress"]) if data["egress"] is not None else None,
    )


def trial_to_query(key: TrialKey, role: Role) -> str:
    """Return a trial and a role as a URL's query."""
    return urlencode({**asdict(key), "role": role})


def trial_from_query(query: Mapping[str, str]) -> tuple[TrialKey, Role]:
    """Rebuild a trial and a role; KeyError or ValueError where they are malformed."""
    key = TrialKey(query["run_id"], query["node_id"], query["task_id"], int(query["repeat"]))
    return key, "judge" if query["role"] == "judge" else "agent"


def traffic_from_json(data: dict[str, Any]) -> Traffic:
    """Rebuild traffic from `dataclasses.asdict` of it; KeyError or TypeError where it is malformed."""
    trajectory = data["trajectory"]
    return Traffic(
        trajectory=Trajectory(tuple(_turn(turn) for turn in trajectory["turns"]), trajectory["side_exchanges"]),
        usage=Usage(**data["usage"]),
        last_error=data["last_error"],
        last_status=data["last_status"],
        limit=data["limit"],
        hosts=data["hosts"],
        refused_hosts=data["refused_hosts"],
    )


def _egress(data: dict[str, str]) -> Egress:
    return Egress(Path(data["socket"]), Path(data["journal"]))


def _turn(data: dict[str, Any]) -> Turn:
    calls = tuple(ToolCall(**call) for call in data["tool_calls"])
    return Turn(data["index"], data["text"], calls, tuple(data["results"]))
