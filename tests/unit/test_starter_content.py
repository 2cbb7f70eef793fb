"""The bundled tasks: scripts reach the answer, a second computation agrees, a careless one does not."""

from __future__ import annotations

import bisect
import json
import shutil
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from starter_firms import DATABASE, ROOT, Firm, aliases, all_firms, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

OPERATION = "enterprise/company_operation_status.csv"
PROFILE = "enterprise/company_profile.csv"
POLICIES = "policy/policy_resource.csv"

USED = {
    "comprehensive_decision/hard001": (PROFILE, OPERATION, POLICIES, "internal_metrics.csv"),
    "enterprise_industry_analysis/easy001": (PROFILE, OPERATION, "bilingual_translation_english_chinese.json"),
    "enterprise_industry_policy_analysis/easy001": (PROFILE, POLICIES),
    "hypothesis_verification/hard001": (PROFILE, OPERATION),
    "industry_planning/medium001": (PROFILE, OPERATION, POLICIES),
    "international_comparison/medium001": (PROFILE, OPERATION),
    "risk_assessment/medium001": (PROFILE, OPERATION),
}
"""The tasks, and the files that each one's scripts read."""
TASKS = tuple(USED)
KEYS = {"id", "question", "guidelines", "steps", "steps_num", "evidence", "milestone", "answer", "metadata"}


def raw_of(task: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((ROOT / "assets" / "qa_raw" / f"{task}_result.json").read_text(encoding="utf-8"))
    return raw


def scripts_of(task: str) -> list[Path]:
    return sorted((ROOT / "assets" / "solutions" / task).iterdir())


def play(task: str, workspace: Path) -> list[subprocess.CompletedProcess[str]]:
    """Run a task's scripts as the oracle does: one after another, each from standard input, come what may."""
    return [
        subprocess.run(
            [sys.executable, "-I", "-X", "utf8", "-"],
            input=script.read_text(encoding="utf-8"),
            cwd=workspace,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        for script in scripts_of(task)
    ]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    shutil.copytree(DATABASE, tmp_path / "database")
    return tmp_path


@pytest.fixture(scope="module")
def firms() -> list[Firm]:
    return all_firms()


def test_tasks_are_one_a_category_on_three_levels() -> None:
    folder = ROOT / "assets" / "qa_raw"
    found = {path.relative_to(folder).as_posix().removesuffix("_result.json") for path in folder.rglob("*.json")}
    assert found == set(TASKS)
    assert Counter(raw_of(task)["metadata"]["level"] for task in TASKS) == {"easy": 2, "medium": 3, "hard": 2}


@pytest.mark.parametrize("task", TASKS)
def test_raw_file_is_consistent(task: str) -> None:
    raw = raw_of(task)
    category, task_id = task.split("/")
    assert set(raw) == KEYS
    assert raw["id"] == task_id
    assert raw["metadata"] == {"db": "starter", "level": task_id.rstrip("0123456789"), "category": category}
    assert raw["steps_num"] == len(raw["steps"]) == len(scripts_of(task))
    assert [path.name for path in scripts_of(task)] == [f"step_{n:02}.py" for n in range(1, raw["steps_num"] + 1)]
    assert 2 <= raw["steps_num"] <= 6
    assert 3 <= len(raw["milestone"]) <= 8


# --- the scripts


@pytest.mark.parametrize("task", TASKS)
def test_scripts_reach_milestones_and_answer(task: str, workspace: Path) -> None:
    raw = raw_of(task)
    done = play(task, workspace)

    assert [run.stderr for run in done] == [""] * len(done)
    *_, last = done
    assert last.stdout.count("\n") == 1
    assert said(last.stdout, like=raw["answer"]) == raw["answer"]
    lines = "".join(run.stdout for run in done).splitlines()
    assert [key for key, value in raw["milestone"].items() if not any(states(line, key, value) for line in lines)] == []


def said(output: str, like: object) -> object:
    return output.strip() if isinstance(like, str) else json.loads(output)


def states(line: str, key: str, value: object) -> bool:
    """Tell whether a line names a milestone in the words of its key and gives its value after the last colon."""
    label, _, stated = line.replace("：", ": ").rpartition(": ")
    if not set(key.split()) <= set(label.split()):
        return False
    if isinstance(value, (int, float)):
        return float(stated) == value
    return stated.strip() == ("；".join(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(("task", "file"), [(task, file) for task, files in USED.items() for file in files])
@pytest.mark.parametrize("damage", ["deleted", "emptied"])
def test_a_damaged_source_keeps_the_scripts_from_the_answer(task: str, file: str, damage: str, workspace: Path) -> None:
    source = workspace / "database" / file
    if damage == "deleted":
        source.unlink()
    elif file.endswith(".json"):
        source.write_text('{"company_items": {}, "policy_items": {}}', encoding="utf-8")
    else:
        source.write_text(source.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    *_, last = play(task, workspace)

    assert last.returncode != 0
    assert last.stdout == ""


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_step_keeps_the_scripts_from_the_answer(task: str, workspace: Path) -> None:
    last = scripts_of(task)[-1]
    run = subprocess.run([sys.executable, str(last)], cwd=workspace, capture_output=True, timeout=60, check=False)
    assert run.returncode != 0
    assert run.stdout == b""


# --- the second computation, and careless ones, which differ from it in one thing


def released(industry: str, province: str) -> int:
    """Read a policy count from the derived table, which the step scripts do not use."""
    target = f"{industry}-{province}发布政策数量"
    return sum(int(row["value"]) for row in rows_of("policy/policy_release_status.csv") if row["targetName"] == target)


def best_site(firms: list[Firm], *, at_least: int = 3) -> list[object]:
    need = ("研发投入金额", "营业收入金额", "政府奖励资金、补贴")
    kept = [f for f in firms if f.industry == "专用设备制造业" and f.has(*need) and f[need[2]] > 0]
    table: list[tuple[str, list[Decimal]]] = []
    for province in sorted({f.province for f in kept}):
        local = [f for f in kept if f.province == province]
        if len(local) >= at_least:
            research, revenue, subsidy = (sum((f[c] for f in local), Decimal()) for c in need)
            policies = Decimal(released("专用设备制造业", province))
            table.append((province, [research / revenue, revenue / subsidy, policies]))
    scores: dict[str, Decimal] = defaultdict(Decimal)
    for i, weight in enumerate((50, 30, 20)):
        low, high = min(v[i] for _, v in table), max(v[i] for _, v in table)
        for province, values in table:
            scores[province] += weight * (values[i] - low) / (high - low)
    (second, less), (first, most) = sorted(scores.items(), key=lambda item: item[1])[-2:]
    return [first, float(round(most, 1)), second, float(round(most - less, 1))]


def market_leader(
    firms: list[Firm], *, per_employee: bool = True, same_industry: bool = True, same_province: bool = True
) -> str:
    asked = next(name for name, english in aliases().items() if "Xiao Lan Sheng Yao Ye Co., Ltd." in english)
    home = next(f for f in firms if f.name == asked)
    peers = [
        f
        for f in firms
        if (f.industry == home.industry or not same_industry) and (f.province == home.province or not same_province)
    ]
    *_, leader = sorted(peers, key=lambda f: f["营业收入金额"] / (f["雇员总数"] if per_employee else 1))
    return aliases().get(leader.name, [leader.name])[0]


def applies(
    firms: list[Firm], *, industry: str | None = None, title: str = "关于培育智能产线示范企业的若干措施（试行）"
) -> str:
    firm = next(f for f in firms if f.name == "岑曜锐泵阀公司")
    titles = {
        row["title"]
        for row in rows_of(POLICIES)
        if row["province"] == firm.province and f"；{industry or firm.industry}；" in f"；{row['industry']}；"
    }
    return "是" if title in titles else "否"


def research_and_growth(
    firms: list[Firm], *, limit: int = 100, state_owned: tuple[str, ...] = ("", "（其他）", "（院所）")
) -> list[object]:
    def sample(wanted: Callable[[str], bool]) -> tuple[list[float], list[float]]:
        x, y = "研发投入占比", "营业收入同比增减幅"
        kept = [f for f in firms if wanted(f.ownership) and f.has(x, y) and f[x] <= limit and abs(f[y]) <= limit]
        return [float(f[x]) for f in kept], [float(f[y]) for f in kept]

    private = sample("民营企业".__eq__)
    state = sample(lambda label: label.partition("国有企业")[1:] in [("国有企业", suffix) for suffix in state_owned])
    r_private, r_state = statistics.correlation(*private), statistics.correlation(*state)
    gap = statistics.median(private[1]) - statistics.median(state[1])
    return [len(private[0]), round(r_private, 4), round(r_private - r_state, 3), round(gap, 1)]


def middle(values: Sequence[Decimal]) -> Decimal:
    ordered, half = sorted(values), len(values) // 2
    return (ordered[half] + ordered[~half]) / 2


def projection(
    firms: list[Firm],
    *,
    growth: Callable[[Sequence[Decimal]], Decimal] = middle,
    places: tuple[str, ...] = ("江苏省",),
    complete: bool = True,
) -> float:
    revenue, change = "营业收入金额", "营业收入同比增减幅"
    local = [f for f in firms if (f.industry, f.province) == ("医药制造业", "江苏省")]
    kept = [f for f in local if f.has(revenue, change)]
    listed = [p for p in rows_of(POLICIES) if "医药制造业" in p["industry"].split("；") and p["province"] in places]
    rate = growth([f[change] for f in kept]) + Decimal("1.5") * len(listed)
    base = sum(f[revenue] for f in (kept if complete else local))
    return float(round(base * (1 + rate / 100) ** 3 / 10**8, 2))


def share_above(firms: list[Firm], *, capitalised: bool = True, blanks_count: bool = False) -> str:
    ratio = "研发投入占比"
    own = [f for f in firms if f.industry == "专用设备制造业" and f.ownership == "民营企业"]
    reported = sorted(f[ratio] for f in own if f.has(ratio))
    foreign = Decimal(9947 if capitalised else 8124) / Decimal(1842)
    above = len(reported) - bisect.bisect_right(reported, foreign)
    return f"{Decimal(100 * above) / len(own if blanks_count else reported):.2f}%"


def turned_to_loss(
    firms: list[Firm], *, worth: float = 20, profitable: bool = True, blank_is_zero: bool = False
) -> int:
    profit, subsidy, debts, value = "营业利润金额", "政府奖励资金、补贴", "总负债", "公司市值"
    count = 0
    for f in firms:
        if f.industry[-3:] != "制造业" or not f.has(profit, debts, value) or f[value] <= Decimal(worth):
            continue
        grant = f.figures[subsidy] or Decimal()
        tested = (f[profit] > 0 or not profitable) and f[debts] > 0 and (grant > 0 or blank_is_zero)
        count += tested and 100 * f[profit] < 60 * grant + f[debts]
    return count


SECOND: dict[str, Callable[..., object]] = dict(
    zip(
        TASKS,
        (best_site, market_leader, applies, research_and_growth, projection, share_above, turned_to_loss),
        strict=True,
    )
)
CARELESS: list[tuple[str, dict[str, Any]]] = [
    ("comprehensive_decision/hard001", {"at_least": 1}),
    ("comprehensive_decision/hard001", {"at_least": 4}),
    ("enterprise_industry_analysis/easy001", {"per_employee": False}),
    ("enterprise_industry_analysis/easy001", {"same_industry": False}),
    ("enterprise_industry_analysis/easy001", {"same_province": False}),
    ("enterprise_industry_policy_analysis/easy001", {"industry": "通用设备制造业"}),
    ("enterprise_industry_policy_analysis/easy001", {"title": "关于培育智能产线示范企业的若干措施"}),
    ("hypothesis_verification/hard001", {"limit": 10**6}),
    ("hypothesis_verification/hard001", {"state_owned": ("",)}),
    ("industry_planning/medium001", {"growth": statistics.mean}),
    ("industry_planning/medium001", {"places": ("江苏省", "")}),
    ("industry_planning/medium001", {"places": ()}),
    ("industry_planning/medium001", {"complete": False}),
    ("international_comparison/medium001", {"capitalised": False}),
    ("international_comparison/medium001", {"blanks_count": True}),
    ("risk_assessment/medium001", {"worth": 2e9}),
    ("risk_assessment/medium001", {"worth": 0}),
    ("risk_assessment/medium001", {"profitable": False}),
    ("risk_assessment/medium001", {"blank_is_zero": True}),
]


@pytest.mark.parametrize("task", TASKS)
def test_second_computation_agrees(task: str, firms: list[Firm]) -> None:
    assert SECOND[task](firms) == raw_of(task)["answer"]


@pytest.mark.parametrize(("task", "mistake"), CARELESS)
def test_a_careless_computation_misses_the_answer(task: str, mistake: dict[str, Any], firms: list[Firm]) -> None:
    assert SECOND[task](firms, **mistake) != raw_of(task)["answer"]
