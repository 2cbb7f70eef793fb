"""The summary as JSON: the keys that DataClaw's users know, then ours."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pytest_dataclaw import __version__
from pytest_dataclaw.record.known_files import process_json, score_json, usage_json
from pytest_dataclaw.record.store import slug
from pytest_dataclaw.report.summary import task_node

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_dataclaw.model.result import Record
    from pytest_dataclaw.report.summary import Group, Metrics, Summary, UsageTotal


def summary_path(output: Path, model_slug: str, selection: str = "") -> Path:
    """Return `output/summary_<model>.json`, with the selection in its name where only some trials were to run."""
    return output / (f"summary_{model_slug}_{slug(selection)}.json" if selection else f"summary_{model_slug}.json")


def to_json(summary: Summary, *, timestamp: float | None = None) -> dict[str, Any]:
    """Return the document; `timestamp` is in seconds since the epoch, now by default.

    `overall_score` is Acc over judged trials (null where there are none), tasks weighing the same; nothing is rounded.
    """
    judged = [record.scores.acc for record in summary.records if record.scores is not None]
    return {
        "model": summary.facts.model,
        "benchmark_version": __version__,
        "timestamp": time.time() if timestamp is None else timestamp,
        "suite": summary.facts.suite,
        "runs_per_task": summary.facts.runs,
        "tasks": [_trial(record) for record in summary.records]
        + [_crashed_trial(node_id, message) for node_id, message in summary.crashed],
        "overall_score": summary.overall.acc.value,
        "total_score": sum(judged),
        "max_score": float(len(judged)),
        "error_count": summary.overall.errored,
        "evaluated_count": len(judged),
        "efficiency": {
            "total_tokens": summary.agent_usage.usage.total_tokens,
            "total_cost_usd": summary.agent_usage.usage.cost_usd,
            "total_requests": summary.agent_usage.usage.requests,
        },
        "process_metrics": _process_metrics(summary),
        **_ours(summary),
    }


def _process_metrics(summary: Summary) -> dict[str, Any]:
    overall = summary.overall
    return {
        "tasks_with_process": overall.ee.n + overall.gpr.n,
        "avg_efficiency": overall.ee.value,
        "avg_gpr": overall.gpr.value,
        "avg_tgpr": overall.tgpr.value,
        "avg_tpe": overall.tpe.value,
        "avg_tpe_achieved": overall.tpe_achieved.value,
    }


def _ours(summary: Summary) -> dict[str, Any]:
    facts = summary.facts
    place_groups = not summary.crashed
    return {
        "run": {
            "run_id": facts.run_id,
            "judge": facts.judge,
            "agent": facts.agent,
            "profile": facts.profile,
            "sandbox": facts.sandbox,
            "isolated": facts.isolated,
            "process": facts.process,
            "selection": facts.selection,
            "web_search_off": facts.web_search_off,
            "planned": facts.planned,
            "total": facts.total,
            "wall_seconds": facts.wall_seconds,
        },
        "counts": {
            "solved": summary.overall.solved,
            "unsolved": summary.overall.unsolved,
            "errored": summary.overall.errored,
            "skipped": summary.skipped,
        },
        "metrics": _metrics(summary.overall, all_known=True),
        "by_category": [_group(group, place_groups) for group in summary.categories],
        "by_level": [_group(group, place_groups) for group in summary.levels],
        "errors_by_reason": dict(summary.errors),
        "end_reasons": dict(summary.end_reasons),
        "usage": {"agent": _usage(summary.agent_usage), "judge": _usage(summary.judge_usage)},
        "judge_check": asdict(summary.judge_check),
        "suspicions": [asdict(suspicion) for suspicion in summary.suspicions],
        "task_spreads": [asdict(spread) for spread in summary.spreads],
    }


def _metrics(metrics: Metrics, *, all_known: bool) -> dict[str, Any]:
    """Return the metrics; Acc(all) is null where crashed trials might belong to it and nobody knows."""
    document = asdict(metrics)
    return document if all_known else document | {"acc_all": None}


def _group(group: Group, all_known: bool) -> dict[str, Any]:
    return {"name": group.name, **_metrics(group.metrics, all_known=all_known)}


def _usage(total: UsageTotal) -> dict[str, Any]:
    return asdict(total.usage) | {"total_tokens": total.usage.total_tokens, "unpriced_trials": total.unpriced}


def _trial(record: Record) -> dict[str, Any]:
    grade = None if record.scores is None else score_json(record)
    return {
        "task_id": record.task_id,
        "frontmatter": {"id": record.task_id, "category": record.category},
        "grade": grade,
        "process_grade": process_json(record) or None,
        "grading": {"mean": None if record.scores is None else record.scores.acc},
        "usage": usage_json(record),
        "error": None if record.scores is not None else f"{record.end_reason.value}: {record.detail}",
        "elapsed_time": record.wall_seconds,
        "execution_time": record.wall_seconds,
        "node_id": record.node_id,
        "repeat": record.repeat,
        "level": record.level,
        "outcome": record.outcome.value,
        "end_reason": record.end_reason.value,
        "turns": record.turns,
    }


def _crashed_trial(node_id: str, message: str) -> dict[str, Any]:
    task_id = task_node(node_id).rpartition("::")[2]
    return {
        "task_id": task_id,
        "frontmatter": {"id": task_id},
        "grade": None,
        "process_grade": None,
        "grading": {"mean": None},
        "usage": {},
        "error": f"crashed: {message}",
        "node_id": node_id,
        "outcome": "errored",
        "end_reason": "crashed",
    }
