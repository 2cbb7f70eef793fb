"""What happens when a run is cut short: nothing finished is lost, nothing is scored twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from harness import MODES, SUM_STEPS

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Bench, Result

ORACLE = "--dataclaw-model=oracle"
NOP = "--dataclaw-model=nop"
RESUME = "--dataclaw-resume"

_KILL_WORKER_ONCE = """
import os, pathlib, signal
flag = pathlib.Path({flag!r})
if not flag.exists():
    flag.touch()
    pid = os.getpid()
    while True:
        stat = pathlib.Path(f'/proc/{{pid}}/stat').read_text()
        pid = int(stat.rsplit(')', 1)[1].split()[1])
        if 'python' in os.readlink(f'/proc/{{pid}}/exe'):
            break
    os.kill(pid, signal.SIGKILL)
"""
"""A step that kills the nearest Python process above it, the one that runs the trial, the first time it is played."""


def _slow(seconds: float) -> tuple[str, str]:
    return (f"import time\ntime.sleep({seconds})\n" + SUM_STEPS[0], SUM_STEPS[1])


def _start(bench: Bench, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        bench.command(*arguments),
        cwd=bench.root,
        env=bench.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _wait_for_records(output: Path, count: int) -> None:
    end = time.monotonic() + 60
    while len(list(output.glob("*/*/record.json"))) < count:
        assert time.monotonic() < end, "no record appeared"
        time.sleep(0.05)


def _judged_once(result: Result, nodes: list[str]) -> list[dict[str, Any]]:
    judged = [record for record in result.records() if record["outcome"] != "errored"]
    assert Counter(record["node_id"] for record in judged) == Counter(nodes)
    assert len({record["run_id"] for record in judged}) == 1
    return judged


def test_kill_of_the_controller_then_resume_scores_every_trial_once(bench: Bench) -> None:
    nodes = [bench.add(steps=_slow(0.5)) for _ in range(6)]
    process = _start(bench, ORACLE, "-n2")
    _wait_for_records(bench.output, 2)
    process.kill()
    process.communicate(timeout=60)
    time.sleep(2.5)  # the workers notice that their controller is gone; what they finish meanwhile counts too
    finished = {r["node_id"]: r["started_at"] for r in bench_records(bench) if r["outcome"] == "solved"}
    assert len(finished) >= 2
    result = bench.run(ORACLE, RESUME, "-n2")
    assert result.code == 0, result.out
    judged = _judged_once(result, nodes)
    assert all(r["started_at"] == finished[r["node_id"]] for r in judged if r["node_id"] in finished)
    assert result.summary()["evaluated_count"] == 6
    assert result.counts() == (6, 0, 0), "recorded trials report their outcome too"
    assert not list(bench.output.glob("progress_*.json"))


def test_kill_of_the_only_process_then_resume(bench: Bench) -> None:
    nodes = [bench.add(steps=_slow(0.3)) for _ in range(4)]
    process = _start(bench, ORACLE, "-p", "no:xdist")
    _wait_for_records(bench.output, 1)
    process.kill()
    process.communicate(timeout=60)
    result = bench.run(ORACLE, RESUME, "-p", "no:xdist")
    assert result.code == 0, result.out
    _judged_once(result, nodes)


def test_kill_of_a_worker_is_an_error_and_resume_runs_that_trial_again(bench: Bench) -> None:
    flag = str(bench.root / "killed")
    killer = bench.add(steps=(_KILL_WORKER_ONCE.format(flag=flag) + SUM_STEPS[0], SUM_STEPS[1]))
    nodes = [killer, *(bench.add() for _ in range(3))]
    result = bench.run(ORACLE, "-n2")
    assert result.code == 1
    _, failures, errors = result.counts()
    assert (failures, errors) == (0, 1), result.out
    summary = result.summary()
    assert (summary["error_count"], summary["evaluated_count"]) == (1, 3)
    again = bench.run(ORACLE, RESUME, "-n2")
    assert again.code == 0, again.out
    _judged_once(again, nodes)
    assert again.counts() == (4, 0, 0)


def test_ctrl_c_records_the_trial_as_interrupted_and_resume_goes_on(bench: Bench) -> None:
    nodes = [bench.add(), bench.add(steps=_slow(30)), bench.add()]
    process = _start(bench, ORACLE, "-p", "no:xdist")
    _wait_for_records(bench.output, 1)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2, out
    assert "dataclaw" in out
    outcomes = {r["node_id"]: (r["outcome"], r["end_reason"]) for r in bench_records(bench)}
    assert outcomes[nodes[1]] == ("errored", "interrupted")
    (bench.root / "assets/solutions/alpha/easy002/step_01.py").write_text(SUM_STEPS[0])
    result = bench.run(ORACLE, RESUME, "-p", "no:xdist")
    assert result.code == 0, result.out
    _judged_once(result, nodes)


def test_ctrl_c_with_workers_leaves_no_process_and_can_be_resumed(bench: Bench) -> None:
    nodes = [bench.add(), bench.add(steps=_slow(20)), bench.add(steps=_slow(20)), bench.add()]
    process = _start(bench, ORACLE, "-n2")
    _wait_for_records(bench.output, 1)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    for n in (2, 3):
        (bench.root / f"assets/solutions/alpha/easy00{n}/step_01.py").write_text(SUM_STEPS[0])
    result = bench.run(ORACLE, RESUME, "-n2")
    assert result.code == 0, result.out
    _judged_once(result, nodes)


def test_resume_reports_recorded_failures_and_runs_nothing_twice(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add()
    first = bench.run(NOP, "-x", *MODES["no-xdist"])
    assert len(first.records()) == 1
    started = first.records()[0]["started_at"]
    result = bench.run(NOP, RESUME, *mode)
    assert result.counts() == (2, 2, 0), result.out
    assert result.records()[0]["started_at"] == started
    assert result.summary()["evaluated_count"] == 2


def test_resume_refuses_other_parameters_by_name(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add()
    bench.run(NOP, "-x", *MODES["no-xdist"])
    result = bench.run(NOP, RESUME, "--dataclaw-timeout-multiplier=2", "--dataclaw-runs=2", *mode)
    assert result.code == 4
    assert "runs: was 1, now 2" in result.out
    assert "timeout_multiplier" in result.out


def test_resume_refuses_another_set_of_tasks(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add()
    bench.run(NOP, "-x", *MODES["no-xdist"])
    bench.add()
    result = bench.run(NOP, RESUME, *mode)
    assert result.code != 0
    assert "3 trials are selected now, 2 were planned" in result.out
    assert len(result.records()) == 1


def test_a_task_that_changed_since_is_run_again(bench: Bench) -> None:
    bench.add()
    bench.add()
    bench.run(NOP, "-x")
    path = bench.root / "tasks/task_001_alpha_easy_easy001.md"
    path.write_text(path.read_text("utf-8") + "\nTake care.\n", "utf-8")
    result = bench.run(NOP, RESUME)
    assert [r["node_id"].split("_")[1] for r in result.records()] == ["001", "001", "002"]
    assert result.summary()["evaluated_count"] == 2


def test_a_judge_error_is_judged_again_without_running_the_agent(bench: Bench, mode: list[str]) -> None:
    bench.add()
    broken = (
        "import pytest\n"
        "from pytest_dataclaw.errors import JudgeError\n"
        "@pytest.fixture\n"
        "def dataclaw_judge(dataclaw_judge):\n"
        "    class Down:\n"
        "        name = 'down'\n"
        "        def judge_outcome(self, case):\n"
        "            raise JudgeError('402: no credit', chat=({'kind': 'outcome', 'cause': 'runtime'},))\n"
        "    return Down()\n"
    )
    (bench.root / "conftest.py").write_text(broken)
    first = bench.run(ORACLE, *mode)
    assert first.counts() == (1, 0, 1)
    (record,) = first.records()
    assert (record["end_reason"], record["answer"], record["turns"]) == ("judge_error", "60840", 3)
    (bench.root / "conftest.py").unlink()
    (bench.root / "assets/solutions/alpha/easy001/step_01.py").write_text("raise SystemExit('run again')")
    result = bench.run(ORACLE, RESUME, *mode)
    assert result.code == 0, result.out
    (record,) = result.records()
    assert (record["outcome"], record["end_reason"], record["turns"]) == ("solved", "answered", 3)
    assert record["agent_usage"]["requests"] == 3


def test_a_new_run_puts_an_incomplete_one_aside(bench: Bench) -> None:
    bench.add()
    bench.add()
    bench.run(NOP, "-x")
    bench.run(NOP)
    assert len(list(bench.output.glob("progress_nop.*.json"))) == 1
    assert result_runs(bench) == {1, 2}


def test_last_failed_runs_the_failed_tasks_and_nothing_where_none_failed(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bad = bench.add(answer=1)
    assert bench.run(ORACLE, *mode).code == 1
    again = bench.run(ORACLE, "--lf", *mode)
    assert again.counts() == (1, 1, 0)
    assert "1 of 2" in again.out
    path = bench.root / "assets/qa_gold/alpha/easy002.json"
    path.write_text(path.read_text("utf-8").replace('"answer": 1', '"answer": 60840'), "utf-8")
    assert bench.run(ORACLE, "--lf", *mode).code == 0
    before = len(again.records())
    nothing = bench.run(ORACLE, "--lf", *mode)
    assert nothing.counts()[0] == 0, nothing.out
    assert len(nothing.records()) == before
    assert bad


def test_a_second_live_run_of_one_model_is_refused(bench: Bench, mode: list[str]) -> None:
    bench.add(steps=_slow(8))
    process = _start(bench, ORACLE)
    end = time.monotonic() + 30
    while not (bench.output / "progress_oracle.json").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    second = bench.run(ORACLE, *mode)
    process.communicate(timeout=60)
    assert second.code == 4, second.out
    assert str(process.pid) in second.out
    assert process.returncode == 0


def bench_records(bench: Bench) -> list[dict[str, Any]]:
    """All records of a root, whichever run wrote them."""
    import json

    return [json.loads(path.read_text("utf-8")) for path in bench.output.glob("*/*/record.json")]


def result_runs(bench: Bench) -> set[int]:
    """How many records each run of a root has."""
    return set(Counter(record["run_id"] for record in bench_records(bench)).values())
