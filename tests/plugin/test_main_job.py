"""The main job in every mode: tasks are collected, run, judged, recorded and summed up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness import MODES, SUM_STEPS

if TYPE_CHECKING:
    from harness import Bench

ORACLE = "--dataclaw-model=oracle"
NOP = "--dataclaw-model=nop"


def test_oracle_solves_every_task_in_one_turn_more_than_steps(bench: Bench, mode: list[str]) -> None:
    nodes = [bench.add(), bench.add(category="beta", level="hard")]
    result = bench.run(ORACLE, *mode)
    assert result.code == 0, result.out
    assert result.counts() == (2, 0, 0)
    records = result.records()
    assert [r["node_id"] for r in records] == nodes
    for record in records:
        assert (record["outcome"], record["end_reason"], record["answer"]) == ("solved", "answered", "60840")
        # Two steps and the answer: T = 3, EE = N / T = 2 / 3.
        assert (record["turns"], record["scores"]["acc"]) == (3, 1.0)
        assert record["scores"]["ee"] == pytest.approx(2 / 3)
        assert record["scores"]["gpr"] is None
    summary = result.summary()
    assert (summary["overall_score"], summary["error_count"], summary["evaluated_count"]) == (1.0, 0, 2)
    assert "Acc" in result.out
    assert "0.667" in result.out
    assert not list(bench.output.glob("progress_*.json")), "a complete run leaves no progress file"


def test_nop_is_wrong_on_every_task_and_gets_process_scores(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add(answer="Yes", guidelines='Answer "Yes" or "No".')
    result = bench.run(NOP, *mode)
    assert result.code == 1
    assert result.counts() == (2, 2, 0)
    for record in result.records():
        assert (record["outcome"], record["turns"]) == ("unsolved", 1)
        # No milestone was reached: GPR 0, TPE 0 by the leaderboard, none by the paper.
        scores = record["scores"]
        assert (scores["acc"], scores["ee"], scores["gpr"], scores["tpe"], scores["tpe_achieved"]) == (
            0,
            None,
            0,
            0,
            None,
        )
    assert result.summary()["overall_score"] == 0


def test_the_llm_judges_protocol_gives_the_same_scores(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add(answer=[60840, "beta"], guidelines="Answer in order: the number and the name.")
    result = bench.run(ORACLE, "--dataclaw-judge=oracle", "--dataclaw-process=all", *mode)
    solved, partial = result.records()
    assert solved["setup"]["judge"] == "oracle"
    assert solved["scores"]["acc"] == 1.0
    assert solved["parts"][0]["ruling"] == solved["rules_parts"][0]["ruling"] == "yes"
    # The answer has one part where two were asked for: every part is wrong.
    assert [p["ruling"] for p in partial["parts"]] == ["no", "no"]
    # The milestone was printed by the first step, turn 1 of 3, before N = 2: GPR 1, TPE 0.9^0.
    assert (partial["scores"]["gpr"], partial["scores"]["tpe"]) == (1.0, 1.0)
    assert solved["milestones"][0]["turn"] == 1
    assert solved["judge_usage"]["requests"] == 2
    assert solved["judge_usage"]["input_tokens"] > 0
    folders = [path.parent for path in bench.output.glob("*/*/record.json")]
    for folder in folders:
        rows = [json.loads(line) for line in (folder / "judge_chat.jsonl").read_text("utf-8").splitlines()]
        assert [(row["kind"], row["cause"]) for row in rows] == [("outcome", "ok")]
        assert (folder / "judge_process_chat.jsonl").stat().st_size > 0
    assert "kappa" in result.out.lower()


def test_a_trial_leaves_the_known_files(bench: Bench) -> None:
    bench.add()
    bench.run(ORACLE)
    (folder,) = (path.parent for path in bench.output.glob("*/*/record.json"))
    names = {path.name for path in folder.iterdir()}
    assert {"score.json", "process_score.json", "usage.json", "agent.log", "chat.jsonl", "record.json"} <= names
    score = json.loads((folder / "score.json").read_text("utf-8"))
    assert (score["score"], score["max_score"]) == (1.0, 1.0)
    usage = json.loads((folder / "usage.json").read_text("utf-8"))
    assert usage["request_count"] == 3
    assert json.loads((folder / "process_score.json").read_text("utf-8"))["efficiency"]["s_agent"] == 3
    assert folder.parent.name == "task_001_alpha_easy_easy001"
    assert folder.name.startswith("oracle_")


def test_repeats_are_items_of_their_own(bench: Bench, mode: list[str]) -> None:
    node = bench.add()
    result = bench.run(ORACLE, "--dataclaw-runs=3", *mode)
    assert result.code == 0, result.out
    assert [r["node_id"] for r in result.records()] == [node, f"{node}[run2]", f"{node}[run3]"]
    assert result.summary()["runs_per_task"] == 3


# -- what must turn the oracle red --------------------------------------------------------------------------------


def test_a_broken_step_turns_the_oracle_red(bench: Bench, mode: list[str]) -> None:
    bench.add(steps=("raise SystemExit('no such column')\n", SUM_STEPS[1]))
    result = bench.run(ORACLE, *mode)
    assert result.code == 1
    assert result.counts() == (1, 1, 0)
    assert result.records()[0]["outcome"] == "unsolved"


def test_a_broken_database_copy_turns_the_oracle_red(bench: Bench, mode: list[str]) -> None:
    bench.add()
    (bench.root / "conftest.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.fixture\n"
        "def dataclaw_sandbox(dataclaw_sandbox):\n"
        "    (pathlib.Path(dataclaw_sandbox.workspace) / 'database/numbers.csv').write_text('name,value\\na,1\\n')\n"
        "    return dataclaw_sandbox\n"
    )
    result = bench.run(ORACLE, *mode)
    assert result.code == 1
    assert result.records()[0]["answer"] == "2"


def test_a_broken_exec_turns_the_oracle_red(bench: Bench, mode: list[str]) -> None:
    bench.add()
    (bench.root / "conftest.py").write_text(
        "import pytest\n"
        "from pytest_dataclaw.provision.base import ExecResult\n"
        "from pytest_dataclaw.provision.local import LocalSandbox\n"
        "@pytest.fixture(autouse=True)\n"
        "def no_exec(monkeypatch):\n"
        "    monkeypatch.setattr(LocalSandbox, 'exec', lambda self, command, *, timeout: ExecResult('', 127))\n"
    )
    result = bench.run(ORACLE, *mode)
    assert result.code == 1
    assert result.records()[0]["outcome"] == "unsolved"


# -- errors are not failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["dataclaw_sandbox", "dataclaw_agent"])
def test_infrastructure_trouble_is_an_error_in_junit_and_leaves_the_mean(
    bench: Bench, mode: list[str], where: str
) -> None:
    bench.add()
    bad = bench.add()
    bad_id = bad.split("::")[1]
    (bench.root / "conftest.py").write_text(
        "import pytest\n"
        "from pytest_dataclaw.errors import SandboxError\n"
        "class Broken:\n"
        "    name, profile = 'broken', 'default'\n"
        "    def run(self, *arguments):\n"
        "        raise SandboxError('the engine went away')\n"
        "@pytest.fixture\n"
        f"def {where}(request, {where}):\n"
        f"    if request.node.name == {bad_id!r}:\n"
        + (
            "        raise SandboxError('the engine went away')\n"
            if where == "dataclaw_sandbox"
            else "        return Broken()\n"
        )
        + f"    return {where}\n"
    )
    result = bench.run(ORACLE, *mode)
    assert result.code == 1
    assert result.counts() == (2, 0, 1)
    assert "the engine went away" in result.out
    errored = next(r for r in result.records() if r["node_id"] == bad)
    assert (errored["outcome"], errored["end_reason"], errored["scores"]) == ("errored", "sandbox_error", None)
    summary = result.summary()
    assert (summary["evaluated_count"], summary["error_count"], summary["overall_score"]) == (1, 1, 1.0)
    assert list(bench.output.glob("progress_*.json")), "an errored trial keeps the run resumable"


def test_an_exception_of_the_harness_itself_is_an_error_not_a_score(bench: Bench, mode: list[str]) -> None:
    bench.add()
    (bench.root / "conftest.py").write_text(
        "import pytest\n"
        "class Broken:\n"
        "    name, profile = 'broken', 'default'\n"
        "    def run(self, *arguments):\n"
        "        raise ZeroDivisionError('a bug')\n"
        "@pytest.fixture\n"
        "def dataclaw_agent():\n"
        "    return Broken()\n"
    )
    result = bench.run(ORACLE, *mode)
    assert result.counts() == (1, 0, 1)
    assert result.records()[0]["outcome"] == "errored"
    assert "ZeroDivisionError" in result.out


def test_an_agent_that_runs_out_of_time_is_judged_unsolved(bench: Bench) -> None:
    bench.add(steps=("import time\ntime.sleep(60)\n", SUM_STEPS[1]), timeout=1.5)
    result = bench.run(ORACLE)
    (record,) = result.records()
    assert (record["outcome"], record["end_reason"]) == ("unsolved", "agent_timeout")
    assert result.counts() == (1, 1, 0)


# -- what the user reads ------------------------------------------------------------------------------------------


def test_failure_text_tells_what_was_asked_and_got_but_not_the_gold(bench: Bench) -> None:
    bench.add(answer=31337, steps=None)
    hidden = bench.run(NOP)
    assert "What is twice the total" in hidden.out
    assert "record.json" in hidden.out
    assert "31337" not in hidden.out
    assert "31337" in bench.run(NOP, "--dataclaw-show-gold").out


def test_junit_carries_flat_properties_and_one_json_property(bench: Bench, mode: list[str]) -> None:
    bench.add()
    case = bench.run(ORACLE, *mode).junit.find("testcase")
    assert case is not None
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties["dataclaw.acc"] == "1"
    assert properties["dataclaw.ee"] == "0.666667"
    assert properties["dataclaw.outcome"] == "solved"
    assert json.loads(properties["dataclaw"] or "")["record"].endswith("record.json")


def test_verbose_words_name_the_outcome(bench: Bench) -> None:
    bench.add()
    assert "SOLVED acc=1.00" in bench.run(ORACLE, "-v").out
    assert "UNSOLVED acc=0.00" in bench.run(NOP, "-v", "-n2").out


def test_no_summary_still_writes_the_summary_file(bench: Bench, mode: list[str]) -> None:
    bench.add()
    result = bench.run(ORACLE, "--no-summary", *mode)
    assert result.code == 0
    assert result.summary()["overall_score"] == 1.0


@pytest.mark.parametrize(("bound", "code"), [("acc=0.5", 0), ("acc=0.51", 1)])
def test_fail_under_makes_the_exit_status_a_gate(bench: Bench, mode: list[str], bound: str, code: int) -> None:
    bench.add()
    bench.add(answer=1)
    result = bench.run(ORACLE, f"--dataclaw-fail-under={bound}", *mode)
    assert result.code == code, result.out
    assert result.counts() == (2, 1, 0)


def test_a_gate_does_not_hide_a_failing_test_of_another_kind(bench: Bench) -> None:
    bench.add()
    (bench.root / "test_other.py").write_text("def test_other():\n    assert False\n")
    assert bench.run(ORACLE, "--dataclaw-fail-under=acc=0.5").code == 1


def test_secrets_of_the_environment_reach_neither_the_sandbox_nor_the_disk(bench: Bench) -> None:
    secret = "sk-very-secret-value-123456"
    bench.env["OPENROUTER_API_KEY"] = secret
    bench.add(steps=("import os\nprint(sorted(os.environ.values()))\n", SUM_STEPS[1]))
    bench.run(ORACLE)
    text = "".join(path.read_text("utf-8") for path in bench.output.rglob("*") if path.is_file())
    assert "C.UTF-8" in text, "the step printed its environment"
    assert secret not in text


@pytest.mark.parametrize("arguments", MODES.values(), ids=list(MODES))
def test_the_gold_and_the_solution_never_reach_the_workspace(bench: Bench, arguments: list[str]) -> None:
    lister = "import os\nprint([os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs])\n"
    bench.add(steps=(lister, SUM_STEPS[1]), milestones={})
    (record,) = bench.run(ORACLE, *arguments).records()
    (journal,) = bench.output.glob("*/*/exchanges.jsonl")
    assert "./database/numbers.csv" in journal.read_text("utf-8")
    assert "qa_gold" not in journal.read_text("utf-8")
    assert record["outcome"] == "unsolved"
