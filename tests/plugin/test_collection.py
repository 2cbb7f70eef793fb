"""From task files to items: ids, markers, keywords, selection, and what a broken file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Bench

ORACLE = "--dataclaw-model=oracle"


def _three(bench: Bench) -> list[str]:
    return [
        bench.add(category="enterprise_industry_analysis"),
        bench.add(category="enterprise_industry_policy_analysis", level="hard"),
        bench.add(category="risk_assessment", level="hard"),
    ]


def _ran(bench: Bench, *arguments: str) -> list[str]:
    return [record["node_id"] for record in bench.run(ORACLE, *arguments).records()]


def test_collect_only_needs_no_model_and_starts_nothing(bench: Bench, mode: list[str]) -> None:
    nodes = _three(bench)
    result = bench.run("--collect-only", "-q", *mode)
    assert result.code == 0, result.out
    assert [line for line in result.out.splitlines() if "::" in line] == nodes
    assert not bench.output.exists()


def test_keywords_and_markers_select(bench: Bench, mode: list[str]) -> None:
    analysis, policy, risk = _three(bench)
    assert _ran(bench, "-k", "enterprise_industry", *mode) == [analysis, policy]
    (bench.root / "output").rename(bench.root / "output1")
    assert _ran(bench, "-m", "hard and not risk_assessment", "--strict-markers", *mode) == [policy]
    (bench.root / "output").rename(bench.root / "output2")
    assert _ran(bench, risk, *mode) == [risk]


def test_a_selection_says_so_and_has_its_own_summary(bench: Bench, mode: list[str]) -> None:
    _three(bench)
    assert bench.run(ORACLE, *mode).code == 0
    result = bench.run(ORACLE, "-k", "risk", *mode)
    assert "1 of 3" in result.out
    assert len(list(bench.output.glob("summary_*.json"))) == 2


def test_suite_selects_by_id_or_prefix_and_names_what_is_unknown(bench: Bench, mode: list[str]) -> None:
    analysis, _, risk = _three(bench)
    assert _ran(bench, f"--dataclaw-suite=task_001,{risk.split('::')[1]}", *mode) == [analysis, risk]
    result = bench.run(ORACLE, "--dataclaw-suite=task_001,task_00", *mode)
    assert result.code == 4, result.out
    assert "task_00" in result.out
    assert "Traceback" not in result.out


def test_root_option_collects_where_no_path_is_given(bench: Bench, mode: list[str], tmp_path: Path) -> None:
    bench.add()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "pytest.ini").write_text("[pytest]\n")
    result = bench.run(ORACLE, f"--dataclaw-root={bench.root}", *mode, cwd=elsewhere)
    assert result.code == 0, result.out
    assert len(result.records()) == 1, "results go to the benchmark root"
    assert bench.run(ORACLE, "--dataclaw-root=nowhere", *mode, cwd=elsewhere).code == 4


def test_a_benchmark_elsewhere_is_run_by_path(bench: Bench, mode: list[str], tmp_path: Path) -> None:
    bench.add()
    result = bench.run(ORACLE, str(bench.root / "tasks"), *mode, cwd=tmp_path)
    assert result.code == 0, result.out
    assert len(result.records()) == 1


def test_two_benchmark_roots_in_one_run_are_refused(bench: Bench, mode: list[str], tmp_path: Path) -> None:
    from harness import Bench as Other

    other = Other(tmp_path / "other")
    bench.add()
    other.add()
    result = bench.run(ORACLE, "tasks", str(other.root / "tasks"), *mode)
    assert result.code != 0
    assert "one benchmark root" in result.out
    assert result.records() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--dataclaw-model"),
        (["--dataclaw-model=some/model"], "JUDGE_MODEL"),
        (["--dataclaw-model=some/model", "--dataclaw-judge=rules"], "OPENCLAW_CUSTOM_BASE_URL"),
        (["--dataclaw-model=openrouter/some/model", "--dataclaw-judge=rules"], "OPENROUTER_API_KEY"),
        ([ORACLE, "--dataclaw-agent=openclaw", "--dataclaw-sandbox=local"], "needs a container"),
        ([ORACLE, "--dataclaw-runs=0"], "--dataclaw-runs"),
        ([ORACLE, "--dataclaw-fail-under=ee=1"], "--dataclaw-fail-under"),
        ([ORACLE, "--dataclaw-sandbox=moon"], "--dataclaw-sandbox"),
        ([ORACLE, "--dataclaw-judge=gpt"], "JUDGE_CUSTOM_BASE_URL"),
        ([ORACLE, "--dataclaw-resume"], "--dataclaw-resume"),
    ],
)
def test_a_usage_error_is_one_message_and_nothing_is_started(
    bench: Bench, mode: list[str], arguments: list[str], message: str
) -> None:
    bench.add()
    result = bench.run(*arguments, *mode)
    assert result.code == 4, result.out
    assert message in result.out
    assert "Traceback" not in result.out
    assert result.records() == []


def test_a_broken_file_is_a_collection_error_with_file_line_and_field(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add(timeout_seconds="soon")
    result = bench.run(ORACLE, *mode)
    assert result.code == (1 if "-n2" in mode else 2), result.out
    assert "task_002_alpha_easy_easy002.md:" in result.out
    assert "timeout_seconds" in result.out
    assert "Traceback" not in result.out
    assert result.records() == [], "no trial starts beside a broken file"


def test_a_duplicate_id_names_both_files(bench: Bench, mode: list[str]) -> None:
    bench.add()
    bench.add(id="task_001_alpha_easy_easy001")
    result = bench.run(ORACLE, *mode)
    assert result.code != 0
    assert "task_001_alpha_easy_easy001.md" in result.out
    assert "task_002_alpha_easy_easy002.md" in result.out
    assert result.records() == []


def test_a_differing_number_of_steps_is_a_warning(bench: Bench) -> None:
    import json

    bench.add(steps=None)
    gold = next((bench.root / "assets/qa_gold").glob("*/*.json"))
    content = json.loads(gold.read_text("utf-8"))
    gold.write_text(json.dumps({**content, "steps_num": 5}), "utf-8")
    result = bench.run(ORACLE)
    assert result.code == 0, result.out
    assert "steps_num" in result.out
    assert result.records()[0]["gold_steps"] == 5


def test_user_fixtures_override_ours_at_every_scope(bench: Bench, mode: list[str]) -> None:
    bench.add()
    (bench.root / "tasks/conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='module', autouse=True)\n"
        "def of_the_module():\n"
        "    yield\n"
        "@pytest.fixture\n"
        "def dataclaw_judge(dataclaw_judge):\n"
        "    class Strict:\n"
        "        name = 'strict'\n"
        "        def judge_outcome(self, case):\n"
        "            from pytest_dataclaw.model.verdict import OutcomeVerdict, PartVerdict, Ruling\n"
        "            return OutcomeVerdict('strict', (PartVerdict('match', Ruling.NO, 'never'),))\n"
        "        judge_process = dataclaw_judge.judge_process\n"
        "    return Strict()\n"
    )
    result = bench.run(ORACLE, *mode)
    assert result.counts() == (1, 1, 0)
    (record,) = result.records()
    assert (record["setup"]["judge"], record["detail"]) == ("strict", "never")
    # The deterministic judge runs beside every other: here it disagrees.
    assert record["rules_parts"][0]["ruling"] == "yes"


def test_settings_come_from_ini_and_env_file(bench: Bench, mode: list[str]) -> None:
    bench.add()
    (bench.root / ".env").write_text("DEFAULT_MODEL=oracle\nJUDGE_MODEL=openrouter/costly\n")
    (bench.root / "pytest.ini").write_text("[pytest]\ndataclaw_runs = 2\n")
    result = bench.run(*mode)
    assert result.code == 0, result.out
    assert len(result.records()) == 2
    assert {r["setup"]["judge"] for r in result.records()} == {"rules"}
    assert "openrouter/costly" in result.out, "a judge that is not taken is named"


def test_a_foreign_project_imports_and_collects_nothing_of_ours(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "task_notes.md").write_text("# Notes\n\nNot a benchmark task.\n")
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_modules():\n"
        "    heavy = {'yaml', 'docker', 'openai', 'dotenv', 'aiohttp', 'httpx', 'requests', 'pydantic'}\n"
        "    assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "    assert 'pytest_dataclaw.plugin' in sys.modules\n"
    )
    for arguments in (["-p", "no:xdist"], ["-n2"], ["--markers"]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
        assert "dataclaw" not in done.stdout.replace("dataclaw-0", "").split("collected")[-1].replace("plugins: ", "")
    listing = (
        "import sys, pytest\n"
        "code = pytest.main(['--collect-only', '-q'])\n"
        "heavy = {'yaml', 'docker', 'openai', 'dotenv', 'aiohttp', 'httpx', 'requests', 'pydantic'}\n"
        "sys.exit(int(code) or (heavy & set(sys.modules) and 9) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", listing], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 test collected" in done.stdout
