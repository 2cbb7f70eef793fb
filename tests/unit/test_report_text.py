"""The block for the terminal, and the words of one trial."""

from __future__ import annotations

from dataclasses import replace

import pytest
from record_samples import SETUP, errored, part, solved, unsolved
from test_report_summary import facts

from pytest_dataclaw.model.result import EndReason, Record, Scores
from pytest_dataclaw.model.trajectory import Usage
from pytest_dataclaw.model.verdict import Ruling
from pytest_dataclaw.report.summary import summarize
from pytest_dataclaw.report.text import display_width, one_line, render

PLAIN = [
    solved(1, ee=0.8, agent_usage=Usage(5, 1000, 200, cost_usd=0.25, wall_seconds=4.0, waiting_seconds=1.5)),
    unsolved(
        2,
        scores=Scores(0.5, gpr=0.5, tpe=0.9, tpe_achieved=0.9, tgpr=0.45),
        category="enterprise_industry_policy_analysis",
        level="hard",
        end_reason=EndReason.AGENT_TIMEOUT,
    ),
    errored(3, EndReason.RATE_LIMITED, category="企业政策"),
]


def test_the_whole_block() -> None:
    lines = render(summarize(PLAIN, facts(planned=5, total=492, selection="-k foo", wall_seconds=12.34)))
    assert "\n".join(lines) == (
        """\
model        vendor/model-1
judge        vendor/judge-1 (process: unsolved)
agent        react (default)
sandbox      local
WARNING      the local sandbox isolates nothing: the agent could reach this
             machine's files and network, and the scores may not be comparable
trials       5 of 492 trials, selected by -k foo

Acc          0.750  n=2 judged, 95 % interval 0.000 to 1.000 (t)
Acc(all)     0.500  n=3, errored counted as 0
EE           0.800  n=1 solved
GPR          0.500  n=1 unsolved
TPE          0.900  n=1 unsolved, 0 without a milestone (leaderboard)
TPE achieved 0.900  n=1 unsolved with a milestone (paper v3)

                                          n solved    Acc     EE    GPR    TPE
overall                                   2      1  0.750  0.800  0.500  0.900
by category
  enterprise_industry_policy_analysis     1      0  0.500      -  0.500  0.900
  risk_assessment                         1      1  1.000  0.800      -      -
  企业政策                                0      0      -      -      -      -
by level
  easy                                    1      1  1.000  0.800      -      -
  hard                                    1      0  0.500      -  0.500  0.900

outcomes     1 solved, 1 unsolved, 1 errored, 2 never started
judged       1 answered, 1 agent_timeout
errored      1 rate_limited
agent usage  5 requests, 1000 + 200 tokens, cost $0.2500, 4.0 s (1.5 s waiting)
judge usage  none
wall time    12.3 s
look at      1 ended by time-out
             tasks/task_002.md::task_002
records      output/*/*_ab12cd34*/record.json"""
    )


def test_columns_stay_aligned_with_wide_characters() -> None:
    records = [
        solved(1, category="企业政策分析"),
        unsolved(2, category="ascii"),
        solved(3, category="ｆｕｌｌ"),
        solved(4, category="e\u0301"),
    ]
    lines = render(summarize(records, facts()))
    start = lines.index("by category")
    rows = lines[start + 1 : start + 5]
    assert {display_width(row) for row in [*rows, lines[start - 1]]} == {display_width(lines[start - 2])}


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("企业", 4), ("ｆ", 2), ("e\u0301", 1), ("", 0)])
def test_display_width(text: str, width: int) -> None:
    assert display_width(text) == width


@pytest.mark.parametrize("name", ["x" * 90, "企" * 60])
def test_long_names_are_cut_to_the_width(name: str) -> None:
    lines = render(summarize([solved(1, category=name)], facts()), width=80)
    row = next(line for line in lines if line.startswith(f"  {name[:5]}"))
    assert display_width(row) <= 80
    assert row.endswith("…     1      1  1.000  0.500      -      -")


def test_no_trailing_spaces_and_no_line_breaks() -> None:
    for verbose in (False, True):
        lines = render(summarize(PLAIN, facts(), {"n": "died"}), verbose=verbose)
        assert [line for line in lines if line != line.rstrip() or "\n" in line] == []


def test_a_run_without_records_is_rendered() -> None:
    text = "\n".join(render(summarize([], facts())))
    assert "Acc          -  n=0 judged" in text
    assert "0 solved, 0 unsolved, 0 errored, 10 never started" in text


def _warned(**changes: object) -> bool:
    return any(line.startswith("WARNING") for line in render(summarize([], facts(**changes))))


def test_a_sandbox_that_isolates_nothing_is_marked() -> None:
    assert _warned(isolated=False)
    assert not _warned(isolated=True, sandbox="docker")
    assert not _warned(isolated=False, model="oracle")
    assert not _warned(isolated=False, model="nop")


def test_the_whole_benchmark_names_no_selection() -> None:
    assert "trials       10 trials" in render(summarize([], facts()))
    assert "trials       10 trials, 2 runs a task" in render(summarize([], facts(runs=2)))


def test_unknown_cost_is_not_zero() -> None:
    unknown = solved(1, agent_usage=Usage(1, 10, 2))
    known = solved(2, agent_usage=Usage(1, 10, 2, cost_usd=0.5))
    assert "cost n/a" in "\n".join(render(summarize([unknown], facts())))
    both = "\n".join(render(summarize([unknown, known], facts())))
    assert "cost $0.5000 (at least: n/a for 1 trials)" in both


def test_judge_and_rules() -> None:
    records = [
        solved(1, rules_parts=(part(Ruling.YES),)),
        solved(2, rules_parts=(part(Ruling.NO),)),
        unsolved(3, rules_parts=(part(Ruling.UNDECIDED),)),
    ]
    lines = render(summarize(records, facts()))
    # Agreement 1/2; chance (2 * 1) / 4 = 0.5; kappa 0.
    assert "vs. rules    0.500 agreement, kappa 0.000, n=2 parts; 1 undecided" in lines
    assert "             disagreement: tasks/task_002.md::task_002 match" in lines
    lines = render(summarize(records[:1], facts()))
    assert "vs. rules    1.000 agreement, both judges gave every part the same ruling, n=1 parts; 0 undecided" in lines


def test_undecided_of_the_sole_judge_are_listed_short_or_whole() -> None:
    rules = replace(SETUP, judge="rules")
    records = [unsolved(n, setup=rules, parts=(part(Ruling.UNDECIDED),)) for n in range(1, 8)]
    short, whole = (render(summarize(records, facts()), verbose=verbose) for verbose in (False, True))
    assert "undecided    7 parts the rules could not decide, scored 0" in short
    assert sum("undecided: tasks/" in line for line in short) == 5
    assert "             ... and 2 more (-v)" in short
    assert sum("undecided: tasks/" in line for line in whole) == 7
    assert not any("more (-v)" in line for line in whole)


def test_spread_between_runs() -> None:
    records = [solved(1), unsolved(1, repeat=2), solved(2), solved(2, repeat=2)]
    lines = render(summarize(records, facts(runs=2)), verbose=True)
    assert "Acc          0.750  n=4 judged on 2 tasks, 95 % interval 0.000 to 1.000 (t)" in lines
    assert "spread       1 of 2 tasks differ between runs" in lines
    assert "             spread: tasks/task_001.md::task_001: 0.000 to 1.000, n=2" in lines


def test_crashed_trials_are_listed() -> None:
    lines = render(summarize([], facts(), {"tasks/a.md::a": "worker gw0 died"}))
    assert "errored      1 crashed" in lines
    assert "             crashed: tasks/a.md::a: worker gw0 died" in lines


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (solved(1, ee=0.75, turns=4), "solved  acc=1.00 ee=0.75 turns=4"),
        (unsolved(1, turns=0, end_reason=EndReason.OOM), "unsolved  acc=0.00 turns=0 oom"),
        (PLAIN[1], "unsolved  acc=0.50 gpr=0.50 tpe=0.90 turns=8 agent_timeout"),
        (PLAIN[2], "errored  rate_limited"),
    ],
)
def test_one_line(record: Record, words: str) -> None:
    assert one_line(record) == words
