"""The benchmark's own setting, end to end: the real OpenClaw in a sealed container, played by the built-in models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from harness import SUM_STEPS

if TYPE_CHECKING:
    from harness import Bench

ROOT = Path(__file__).parents[2]
ORACLE = "--dataclaw-model=oracle"
OPENCLAW = "--dataclaw-agent=openclaw"

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def docker_image() -> None:
    """Skip, saying what is missing, where no engine answers or the image is absent."""
    from contextlib import closing

    from pytest_dataclaw.errors import DataclawError
    from pytest_dataclaw.provision.engine import connect
    from pytest_dataclaw.provision.image import LOCAL_IMAGE, inspect

    try:
        with closing(connect()) as client:
            inspect(client, LOCAL_IMAGE)
    except DataclawError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("profile", ["upstream", "lean"])
def test_openclaw_is_played_by_the_oracle_to_the_end(bench: Bench, profile: str) -> None:
    """Two workers, so that two containers live at a time."""
    nodes = [bench.add(timeout=120), bench.add(timeout=120)]
    result = bench.run(ORACLE, OPENCLAW, f"--dataclaw-profile={profile}", "--dataclaw-process=all", "-n2")
    assert result.code == 0, result.out
    records = result.records()
    assert [record["node_id"] for record in records] == nodes
    for record in records:
        setup = record["setup"]
        assert (setup["agent"], setup["profile"], setup["sandbox"]) == ("openclaw", profile, "docker")
        # Two steps and the answer, on the wire of the real agent: T = 3, EE = 2/3.
        assert (record["turns"], record["answer"], record["scores"]["acc"]) == (3, "60840", 1.0)
        assert record["scores"]["ee"] == pytest.approx(2 / 3)
        assert record["scores"]["gpr"] == 1.0
        assert {"task", "gold", "data", "image", "packages"} <= set(setup["digests"])
    for folder in (path.parent for path in bench.output.glob("*/*/record.json")):
        assert (folder / "gateway.log").stat().st_size > 0
        rows = [json.loads(line) for line in (folder / "chat.jsonl").read_text("utf-8").splitlines()]
        assert sum(row.get("message", {}).get("role") == "assistant" for row in rows) == 3


@pytest.mark.parametrize(("model", "acc"), [("oracle", 1.0), ("nop", 0.0)])
def test_the_bundled_tasks_run_through_the_real_openclaw(tmp_path: Path, model: str, acc: float) -> None:
    arguments = [
        f"--dataclaw-model={model}",
        OPENCLAW,
        "-n2",
        f"--dataclaw-output={tmp_path}",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    records = [json.loads(path.read_text("utf-8")) for path in tmp_path.glob("*/*/record.json")]
    assert [record["scores"] and record["scores"]["acc"] for record in records] == [acc] * 7, done.stdout
    for record in records:
        steps = record["gold_steps"]
        assert record["scores"]["ee"] == (pytest.approx(steps / (steps + 1)) if acc else None)


def test_a_step_that_fails_in_the_container_turns_the_oracle_red(bench: Bench) -> None:
    """What the step looks for is not there: gold, solutions, other tasks, keys, a network."""
    search = (
        "import os, socket, subprocess\n"
        'found = subprocess.run(\'find / -name "*gold*" -path "*qa_*" -o -name step_01.py 2>/dev/null\','
        " shell=True, capture_output=True, text=True).stdout\n"
        "assert not found, found\n"
        "assert not any('KEY' in name for name in os.environ), os.environ\n"
        "try:\n"
        "    socket.create_connection(('1.1.1.1', 443), timeout=2)\n"
        "except OSError:\n"
        "    raise SystemExit('sealed')\n"
    )
    bench.env["OPENROUTER_API_KEY"] = "sk-very-secret-value-123456"
    bench.add(steps=(search, SUM_STEPS[1]), timeout=120)
    result = bench.run(ORACLE, OPENCLAW, "--dataclaw-profile=lean", "-p", "no:xdist")
    assert result.code == 1
    assert result.counts() == (1, 1, 0)
    (journal,) = bench.output.glob("*/*/exchanges.jsonl")
    text = journal.read_text("utf-8")
    assert "sealed" in text
    assert "AssertionError" not in text


def test_an_agent_that_kills_its_own_gateway_is_judged(bench: Bench) -> None:
    """It stays in the denominator, and what it left behind is kept."""
    kill = "import os, time\nos.system('pkill -KILL -f ^openclaw')\ntime.sleep(10)\n"
    bench.add(steps=(SUM_STEPS[0], kill), timeout=120)
    result = bench.run(ORACLE, OPENCLAW, "--dataclaw-profile=lean", "-p", "no:xdist")
    assert result.code == 1, result.out
    assert result.counts() == (1, 1, 0)
    (record,) = result.records()
    assert (record["outcome"], record["end_reason"], record["turns"]) == ("unsolved", "agent_crash", 2)
    (folder,) = (path.parent for path in bench.output.glob("*/*/record.json"))
    assert "Killed" in (folder / "gateway.log").read_text("utf-8")
    assert (folder / "chat.jsonl").stat().st_size > 0


def test_react_runs_its_commands_in_the_container(bench: Bench) -> None:
    bench.add(steps=("import os\nassert os.getuid() == 1000\n" + SUM_STEPS[0], SUM_STEPS[1]))
    result = bench.run(ORACLE, "--dataclaw-sandbox=docker", "-p", "no:xdist")
    assert result.code == 0, result.out
    assert result.records()[0]["setup"]["sandbox"] == "docker"


def test_an_absent_image_is_a_usage_error_before_anything_starts(bench: Bench) -> None:
    bench.add()
    bench.env["DOCKER_IMAGE"] = "dataclaw:no-such-image"
    result = bench.run(ORACLE, OPENCLAW)
    assert result.code == 4, result.out
    assert "dataclaw:no-such-image" in result.out
    assert result.records() == []
