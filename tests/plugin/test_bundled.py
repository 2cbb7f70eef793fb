"""The bundled benchmark, as a newcomer runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TASKS = 7


def _run(output: Path, *arguments: str) -> tuple[int, str, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "pytest", f"--dataclaw-output={output}", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    records = [json.loads(path.read_text("utf-8")) for path in output.glob("*/*/record.json")]
    return done.returncode, done.stdout, records


@pytest.mark.parametrize("judge", ["rules", "oracle"])
def test_the_oracle_solves_every_bundled_task_and_reaches_every_milestone(tmp_path: Path, judge: str) -> None:
    code, out, records = _run(
        tmp_path, "--dataclaw-model=oracle", f"--dataclaw-judge={judge}", "--dataclaw-process=all", "-n2"
    )
    assert code == 0, out
    assert len(records) == TASKS
    assert len({record["category"] for record in records}) == TASKS
    for record in records:
        steps = record["gold_steps"]
        assert record["turns"] == steps + 1
        assert record["scores"]["acc"] == 1.0
        assert record["scores"]["ee"] == pytest.approx(steps / (steps + 1))
        # Every milestone is shown on time by the step it belongs to.
        assert (record["scores"]["gpr"], record["scores"]["tpe"]) == (1.0, 1.0), record["task_id"]


def test_nop_is_wrong_on_every_bundled_task(tmp_path: Path) -> None:
    code, out, records = _run(tmp_path, "--dataclaw-model=nop", "-p", "no:xdist")
    assert code == 1, out
    assert [record["scores"]["acc"] for record in records] == [0.0] * TASKS
    assert {record["outcome"] for record in records} == {"unsolved"}


def test_the_bundled_files_are_what_build_makes() -> None:
    from pytest_dataclaw.collect.build import build

    report = build(ROOT, check=True)
    assert (report.written, report.removed) == ((), ())
