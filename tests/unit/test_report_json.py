"""The summary file: the keys that users know, and ours."""

from __future__ import annotations

import json
from pathlib import Path

from record_samples import errored, full, solved, unsolved
from test_report_summary import facts

from pytest_dataclaw import __version__
from pytest_dataclaw.model.result import EndReason
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.report.json_summary import summary_path, to_json
from pytest_dataclaw.report.summary import summarize

KNOWN = [
    "model",
    "benchmark_version",
    "timestamp",
    "suite",
    "runs_per_task",
    "tasks",
    "overall_score",
    "total_score",
    "max_score",
    "error_count",
    "evaluated_count",
    "efficiency",
    "process_metrics",
]


def test_known_keys_come_first_with_their_meaning() -> None:
    records = [
        solved(1, ee=0.5, agent_usage=Usage(2, 10, 5, cost_usd=0.25)),
        errored(2, EndReason.PROVIDER_ERROR),
        full(),
    ]
    document = to_json(summarize(records, facts(), {"tasks/a.md::a[run2]": "died"}), timestamp=1.5)
    assert list(document)[: len(KNOWN)] == KNOWN
    assert document["model"] == "vendor/model-1"
    assert document["benchmark_version"] == __version__
    assert (document["timestamp"], document["suite"], document["runs_per_task"]) == (1.5, "all", 1)
    # (1 + 0.5) / 2; unrounded.
    assert (document["overall_score"], document["total_score"], document["max_score"]) == (0.75, 1.5, 2.0)
    assert (document["error_count"], document["evaluated_count"]) == (2, 2)
    # 15 tokens of task 1, 120 of task 7; 0.25 + 0.25 USD; 2 + 3 requests.
    assert document["efficiency"] == {"total_tokens": 135, "total_cost_usd": 0.5, "total_requests": 5}
    assert document["process_metrics"] == {
        "tasks_with_process": 2,
        "avg_efficiency": 0.5,
        "avg_gpr": 0.5,
        "avg_tgpr": 0.405,
        "avg_tpe": 0.81,
        "avg_tpe_achieved": 0.81,
    }


def test_one_row_a_trial() -> None:
    document = to_json(summarize([solved(1), errored(2), full()], facts(), {"tasks/a.md::a[run2]": "died"}))
    first, second, third, crashed = document["tasks"]
    assert first["task_id"] == "task_001"
    assert first["frontmatter"] == {"id": "task_001", "category": "risk_assessment"}
    assert first["grade"]["score"] == 1.0
    assert first["process_grade"]["efficiency"]["efficiency"] == 0.5
    assert (first["grading"], first["error"]) == ({"mean": 1.0}, None)
    assert (first["elapsed_time"], first["execution_time"]) == (12.5, 12.5)
    assert (second["grade"], second["process_grade"]) == (None, None)
    assert second["error"] == "provider_error: the provider said no"
    assert third["process_grade"]["gpr"]["milestones_achieved"] == 1
    assert third["usage"]["total_tokens"] == 120
    assert crashed["task_id"] == "a"
    assert (crashed["grade"], crashed["error"]) == (None, "crashed: died")


def test_ours() -> None:
    document = to_json(summarize([solved(1), unsolved(2, turns=1)], facts(selection="-k foo", planned=5)))
    assert document["run"]["selection"] == "-k foo"
    assert document["counts"] == {"solved": 1, "unsolved": 1, "errored": 0, "skipped": 3}
    assert document["metrics"]["acc"]["n"] == 2
    assert document["metrics"]["acc"]["interval"]["method"] == "Wilson"
    assert document["metrics"]["acc_all"]["value"] == 0.5
    assert [group["name"] for group in document["by_category"]] == ["risk_assessment"]
    assert document["by_category"][0]["acc_all"]["value"] == 0.5
    assert document["suspicions"] == [{"what": "unsolved within 2 turns", "node_ids": ("tasks/task_002.md::task_002",)}]
    assert document["usage"]["judge"]["cost_usd"] is None
    assert json.loads(json.dumps(document, allow_nan=False))["end_reasons"] == {"answered": 2}


def test_acc_all_of_groups_is_unknown_where_trials_crashed() -> None:
    document = to_json(summarize([solved(1)], facts(), {"tasks/a.md::a": "died"}))
    assert document["metrics"]["acc_all"]["value"] == 0.5
    assert document["by_category"][0]["acc_all"] is None
    assert document["by_level"][0]["acc_all"] is None


def test_no_judged_trial_has_no_overall_score() -> None:
    document = to_json(summarize([errored(1)], facts()))
    assert (document["overall_score"], document["total_score"], document["max_score"]) == (None, 0, 0.0)


def test_summary_paths() -> None:
    output = Path("output")
    assert summary_path(output, "oracle") == output / "summary_oracle.json"
    assert summary_path(output, "oracle", "1a2b") == output / "summary_oracle_1a2b.json"
    assert summary_path(output, "oracle", "a/b").parent == output
