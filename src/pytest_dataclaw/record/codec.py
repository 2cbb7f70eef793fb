"""`record.json` to Record and back, strict and exact."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.errors import RecordError
from pytest_dataclaw.model.result import SCHEMA_VERSION, EndReason, Outcome, Record, Scores, Setup
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict, Ruling
from pytest_dataclaw.record.reader import ObjectReader, json_object, shown, string

if TYPE_CHECKING:
    from pytest_dataclaw.model.task import Json


def to_json(record: Record) -> dict[str, Any]:
    """Return the record as plain JSON data, its schema number first."""
    return {
        "schema": record.schema,
        "run_id": record.run_id,
        "node_id": record.node_id,
        "task_id": record.task_id,
        "repeat": record.repeat,
        "suite": record.suite,
        "category": record.category,
        "level": record.level,
        "setup": _flat(record.setup) | {"digests": dict(record.setup.digests)},
        "outcome": record.outcome.value,
        "end_reason": record.end_reason.value,
        "detail": record.detail,
        "answer": record.answer,
        "turns": record.turns,
        "gold_steps": record.gold_steps,
        "scores": None if record.scores is None else _flat(record.scores),
        "parts": [_part_to_json(part) for part in record.parts],
        "milestones": [_milestone_to_json(milestone) for milestone in record.milestones],
        "rules_parts": [_part_to_json(part) for part in record.rules_parts],
        "rules_milestones": [_milestone_to_json(milestone) for milestone in record.rules_milestones],
        "flags": list(record.flags),
        "agent_usage": _flat(record.agent_usage),
        "judge_usage": _flat(record.judge_usage),
        "started_at": record.started_at,
        "wall_seconds": record.wall_seconds,
        "side_exchanges": record.side_exchanges,
        "extra": dict(record.extra),
    }


def from_json(obj: Json) -> Record:
    """Read a record; RecordError names the field that is missing, unknown, of a wrong type, or contradictory."""
    reader = ObjectReader(obj)
    schema = reader.integer("schema")
    if schema != SCHEMA_VERSION:
        reader.fail("schema", f"version {schema} is not the {SCHEMA_VERSION} that this version of the plugin reads")
    record = Record(
        schema=schema,
        run_id=reader.text("run_id"),
        node_id=reader.text("node_id"),
        task_id=reader.text("task_id"),
        repeat=reader.integer("repeat", minimum=1),
        suite=reader.text("suite"),
        category=reader.text("category"),
        level=reader.text("level"),
        setup=reader.object("setup", _setup),
        outcome=reader.member("outcome", Outcome),
        end_reason=reader.member("end_reason", EndReason),
        detail=reader.text("detail"),
        answer=reader.text("answer"),
        turns=reader.integer("turns"),
        gold_steps=reader.integer("gold_steps"),
        scores=reader.optional_object("scores", _scores),
        parts=reader.items("parts", _part),
        milestones=reader.items("milestones", _milestone),
        rules_parts=reader.items("rules_parts", _part),
        rules_milestones=reader.items("rules_milestones", _milestone),
        flags=reader.items("flags", string),
        agent_usage=reader.object("agent_usage", _usage),
        judge_usage=reader.object("judge_usage", _usage),
        started_at=reader.text("started_at"),
        wall_seconds=reader.number("wall_seconds"),
        side_exchanges=reader.integer("side_exchanges"),
        extra=reader.object("extra", json_object),
    )
    reader.end()
    _check_consistent(record)
    return record


def _check_consistent(record: Record) -> None:
    """Refuse a record whose outcome its other fields deny."""
    errored = record.outcome is Outcome.ERRORED
    if record.end_reason.errored is not errored:
        raise RecordError(f"end_reason: {record.end_reason.value} cannot go with outcome {record.outcome.value}")
    if (record.scores is None) is not errored:
        raise RecordError(f"scores: must be null if, and only if, the outcome is errored; it is {record.outcome.value}")
    if record.scores is not None and (record.scores.acc == 1.0) is not (record.outcome is Outcome.SOLVED):
        raise RecordError(f"scores.acc: {record.scores.acc} cannot go with outcome {record.outcome.value}")


def _flat(data: Scores | Setup | Usage) -> dict[str, Any]:
    """Return the fields of a dataclass of plain values."""
    return {field.name: getattr(data, field.name) for field in fields(data)}


def _part_to_json(part: PartVerdict) -> dict[str, Any]:
    return {"key": part.key, "ruling": part.ruling.value, "reason": part.reason}


def _milestone_to_json(milestone: MilestoneVerdict) -> dict[str, Any]:
    return {
        "key": milestone.key,
        "ruling": milestone.ruling.value,
        "turn": milestone.turn,
        "evidence": milestone.evidence,
        "reason": milestone.reason,
    }


def _setup(obj: Json, where: str) -> Setup:
    reader = ObjectReader(obj, where)
    setup = Setup(
        model=reader.text("model"),
        agent=reader.text("agent"),
        profile=reader.text("profile"),
        sandbox=reader.text("sandbox"),
        judge=reader.text("judge"),
        plugin_version=reader.text("plugin_version"),
        timeout_seconds=reader.number("timeout_seconds"),
        process=reader.text("process"),
        max_requests=reader.integer("max_requests"),
        digests=reader.object("digests", _digests),
    )
    reader.end()
    return setup


def _digests(obj: Json, where: str) -> dict[str, str]:
    return {name: string(digest, f"{where}.{name}") for name, digest in json_object(obj, where).items()}


def _scores(obj: Json, where: str) -> Scores:
    reader = ObjectReader(obj, where)
    scores = Scores(
        acc=reader.number("acc", maximum=1),
        ee=reader.optional_number("ee"),
        gpr=reader.optional_number("gpr", maximum=1),
        tpe=reader.optional_number("tpe", maximum=1),
        tpe_achieved=reader.optional_number("tpe_achieved", maximum=1),
        tgpr=reader.optional_number("tgpr", maximum=1),
    )
    reader.end()
    return scores


def _part(obj: Json, where: str) -> PartVerdict:
    reader = ObjectReader(obj, where)
    part = PartVerdict(
        key=reader.text("key"),
        ruling=reader.member("ruling", Ruling),
        reason=reader.text("reason"),
    )
    reader.end()
    return part


def _milestone(obj: Json, where: str) -> MilestoneVerdict:
    reader = ObjectReader(obj, where)
    milestone = MilestoneVerdict(
        key=reader.text("key"),
        ruling=reader.member("ruling", Ruling),
        turn=reader.optional_integer("turn", minimum=1),
        evidence=reader.text("evidence"),
        reason=reader.text("reason"),
    )
    if (milestone.turn is not None) is not (milestone.ruling is Ruling.YES):
        reader.fail("turn", f"{shown(milestone.turn)} cannot go with ruling {milestone.ruling.value}")
    reader.end()
    return milestone


def _usage(obj: Json, where: str) -> Usage:
    reader = ObjectReader(obj, where)
    usage = Usage(
        requests=reader.integer("requests"),
        input_tokens=reader.integer("input_tokens"),
        output_tokens=reader.integer("output_tokens"),
        cache_read_tokens=reader.integer("cache_read_tokens"),
        cache_write_tokens=reader.integer("cache_write_tokens"),
        reasoning_tokens=reader.integer("reasoning_tokens"),
        cost_usd=reader.optional_number("cost_usd"),
        wall_seconds=reader.number("wall_seconds"),
        waiting_seconds=reader.number("waiting_seconds"),
    )
    reader.end()
    return usage
