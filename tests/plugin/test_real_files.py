"""Real DataClaw files: a root made from raw files, and the published task and gold files as they are.

Skipped where they are absent, as on a user's machine.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from harness import Bench

from pytest_dataclaw.cli import main

UPSTREAM = Path(__file__).parents[3] / "shared/upstream/dataclaw"
ORACLE = "--dataclaw-model=oracle"

pytestmark = pytest.mark.skipif(not UPSTREAM.is_dir(), reason="no real DataClaw files beside the project")


def _stub_database(root: Path) -> None:
    """Stand-ins under the 19 published names; no task of the set computes from them here."""
    published = Path(__file__).parents[2] / "assets/database"
    for path in published.rglob("*"):
        if path.is_file():
            stub = root / "assets/database" / path.relative_to(published)
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text("{}\n" if path.suffix == ".json" else "id,value\n1,2\n", "utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path / "checkout")
    (bench.root / "assets/database/numbers.csv").unlink()
    _stub_database(bench.root)
    return bench


def test_a_root_built_from_the_raw_files_runs_with_the_oracle(checkout: Bench, mode: list[str]) -> None:
    shutil.copytree(UPSTREAM / "assets/qa_raw", checkout.root / "assets/qa_raw")
    assert main(["build", str(checkout.root)]) == 0
    result = checkout.run(ORACLE, *mode)
    assert result.code == 0, result.out
    assert result.counts() == (28, 0, 0)
    # No step scripts: the oracle answers with the gold, in one turn, so EE = N / 1.
    for record in result.records():
        assert record["turns"] == 1
        assert record["scores"]["ee"] == record["gold_steps"]


def test_the_published_task_and_gold_files_collect_and_run_as_they_are(checkout: Bench, mode: list[str]) -> None:
    shutil.copytree(UPSTREAM / "assets/qa_gold", checkout.root / "assets/qa_gold")
    shutil.copytree(UPSTREAM / "tasks", checkout.root / "tasks", dirs_exist_ok=True)
    result = checkout.run(ORACLE, "--dataclaw-judge=oracle", *mode)
    assert result.code == 0, result.out
    assert result.counts() == (6, 0, 0)
    levels = {record["level"] for record in result.records()}
    assert levels == {"easy", "medium", "hard"}
