"""The JSON documents that DataClaw's users already read, with their keys; ours are added, none is renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.verdict import Ruling
from pytest_dataclaw.score.process import GAMMA

if TYPE_CHECKING:
    from pytest_dataclaw.model.result import Record, Scores
    from pytest_dataclaw.model.trajectory import Usage
    from pytest_dataclaw.model.verdict import MilestoneVerdict


def score_json(record: Record) -> dict[str, Any]:
    """Return `score.json`; the score is in [0, 1], null where the trial is errored."""
    acc = None if record.scores is None else record.scores.acc
    breakdown: dict[str, float | None] = {part.key: float(part.ruling is Ruling.YES) for part in record.parts}
    return {
        "task_id": record.task_id,
        "score": acc,
        "max_score": 1.0,
        "grading_type": "rules" if record.setup.judge == "rules" else "llm_judge",
        "breakdown": breakdown | {"total": acc},
        "notes": record.detail,
        "outcome": record.outcome.value,
        "end_reason": record.end_reason.value,
        "judge": record.setup.judge,
    }


def process_json(record: Record) -> dict[str, Any]:
    """Return `process_score.json`: `efficiency` of a solved trial, `gpr` and `tgpr` where milestones were judged."""
    scores = record.scores
    document: dict[str, Any] = {}
    if scores is None:
        return document
    if scores.acc == 1.0:
        document["efficiency"] = {
            "s_agent": record.turns,
            "s_gold": record.gold_steps,
            "efficiency": scores.ee,
        }
    if scores.gpr is not None:
        document["gpr"] = _gpr_json(record, scores)
        document["tgpr"] = _tgpr_json(record, scores)
    return document


def usage_json(record: Record) -> dict[str, Any]:
    """Return `usage.json`: the agent's usage, and the judge's under `judge`; cost is null where no price is known."""
    return _usage(record.agent_usage) | {
        "elapsed_time": record.wall_seconds,
        "judge": _usage(record.judge_usage),
    }


def _gpr_json(record: Record, scores: Scores) -> dict[str, Any]:
    missed = [index for index, milestone in enumerate(record.milestones) if milestone.ruling is not Ruling.YES]
    return {
        "gpr": scores.gpr,
        "milestones_total": len(record.milestones),
        "milestones_achieved": len(record.milestones) - len(missed),
        # 0-based, as users' scripts expect.
        "break_point": missed[0] if missed else None,
        "chain_summary": _chain_summary(record.milestones, missed),
        "details": [
            {
                "key": milestone.key,
                "achieved": milestone.ruling is Ruling.YES,
                "evidence_type": milestone.evidence,
                "first_step": milestone.turn,
                "reason": milestone.reason,
            }
            for milestone in record.milestones
        ],
    }


def _tgpr_json(record: Record, scores: Scores) -> dict[str, Any]:
    return {
        "tgpr": scores.tgpr,
        "tpe": scores.tpe,
        "tpe_achieved": scores.tpe_achieved,
        "gpr": scores.gpr,
        "gamma": GAMMA,
        "s_gold": record.gold_steps,
        "milestones_total": len(record.milestones),
        "milestones_achieved": sum(milestone.ruling is Ruling.YES for milestone in record.milestones),
        "details": [_delay(milestone, record.gold_steps) for milestone in record.milestones],
    }


def _delay(milestone: MilestoneVerdict, gold_steps: int) -> dict[str, Any]:
    delay = None if milestone.turn is None else max(milestone.turn - gold_steps, 0)
    return {
        "key": milestone.key,
        "achieved": milestone.ruling is Ruling.YES,
        "t_agent": milestone.turn,
        "s_gold": gold_steps,
        "delay": delay,
        "decay": None if delay is None else GAMMA**delay,
    }


def _chain_summary(milestones: tuple[MilestoneVerdict, ...], missed: list[int]) -> str:
    if not missed:
        return "every milestone was reached"
    first = milestones[missed[0]]
    return f"first milestone not reached: {first.key}" + (f" ({first.reason})" if first.reason else "")


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_tokens": usage.total_tokens,
        "cost_usd": usage.cost_usd,
        "request_count": usage.requests,
        "model_seconds": usage.wall_seconds,
        "waiting_seconds": usage.waiting_seconds,
    }
