"""Which metrics a DataClaw trial gets, with values worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_dataclaw.errors import JudgeError
from pytest_dataclaw.model.result import Scores
from pytest_dataclaw.model.task import Brief, Gold, Json, Milestone, Task
from pytest_dataclaw.model.trajectory import Trajectory, Turn
from pytest_dataclaw.model.verdict import MilestoneVerdict, OutcomeVerdict, PartVerdict, ProcessVerdict, Ruling
from pytest_dataclaw.suites.dataclaw.scoring import answer_text, case_of, needs_process, no_answer, scores

YES, NO, UNDECIDED = Ruling.YES, Ruling.NO, Ruling.UNDECIDED


def _gold(milestones: int = 3, steps_num: int = 2, answer: Json = 7) -> Gold:
    return Gold(
        question="How many?",
        guidelines="A number.",
        answer=answer,
        steps=("a", "b"),
        steps_num=steps_num,
        milestones=tuple(Milestone(f"m{index}", index) for index in range(milestones)),
        solution=(),
        path=Path("gold.json"),
    )


def _outcome(*rulings: Ruling) -> OutcomeVerdict:
    keys = ["match"] if len(rulings) == 1 else [f"part_{index}" for index in range(len(rulings))]
    return OutcomeVerdict("judge", tuple(PartVerdict(key, ruling) for key, ruling in zip(keys, rulings, strict=True)))


def _process(*turns: int | None) -> ProcessVerdict:
    """Return a verdict by the turn of each milestone, None for one that was not reached."""
    return ProcessVerdict(
        "judge", tuple(MilestoneVerdict(f"m{i}", NO if turn is None else YES, turn) for i, turn in enumerate(turns))
    )


def _trajectory(turns: int) -> Trajectory:
    return Trajectory(tuple(Turn(index, f"text {index}") for index in range(1, turns + 1)))


def test_solved_has_ee_and_nothing_else() -> None:
    # N = 2, T = 5: EE = 0.4
    assert scores(_gold(), _outcome(YES), None, _trajectory(5)) == Scores(acc=1.0, ee=0.4)


def test_solved_without_turns_has_no_ee() -> None:
    assert scores(_gold(), _outcome(YES), None, Trajectory()) == Scores(acc=1.0)


def test_unsolved_with_late_milestones() -> None:
    # N = 2; m0 at turn 2 (1), m2 at turn 4 (0.9 ** 2 = 0.81), m1 never.
    # GPR = 2/3, TPE = 1.81 / 2 = 0.905, TGPR = 1.81 / 3 = 0.60333...
    result = scores(_gold(), _outcome(NO), _process(2, None, 4), _trajectory(6))
    assert (result.acc, result.ee) == (0.0, None)
    assert result.gpr == pytest.approx(2 / 3)
    assert result.tpe == pytest.approx(0.905)
    assert result.tpe_achieved == pytest.approx(0.905)
    assert result.tgpr == pytest.approx(1.81 / 3)


def test_all_milestones_late() -> None:
    # N = 2: turns 3, 5, 6 are 1, 3, 4 late: 0.9 + 0.729 + 0.6561 = 2.2851; over 3: 0.7617.
    result = scores(_gold(), _outcome(NO), _process(3, 5, 6), _trajectory(6))
    assert result.gpr == 1.0
    assert result.tpe == pytest.approx(0.7617)
    assert result.tgpr == pytest.approx(0.7617)


def test_none_achieved_under_both_conventions() -> None:
    result = scores(_gold(), _outcome(NO), _process(None, None, None), _trajectory(6))
    assert result == Scores(acc=0.0, gpr=0.0, tpe=0.0, tpe_achieved=None, tgpr=0.0)


def test_partial_credit_counts_as_unsolved() -> None:
    # 1 of 4 parts; undecided is 0. All three milestones on time: GPR = TPE = TGPR = 1.
    result = scores(_gold(answer=[1, 2, 3, 4]), _outcome(YES, NO, UNDECIDED, NO), _process(1, 1, 2), _trajectory(3))
    assert result == Scores(acc=0.25, gpr=1.0, tpe=1.0, tpe_achieved=1.0, tgpr=1.0)


@pytest.mark.parametrize(
    ("gold", "turns"),
    [(_gold(milestones=0), 4), (_gold(steps_num=0), 4), (_gold(), 0)],
    ids=["no milestones", "no gold steps", "no turns"],
)
def test_process_metrics_are_absent_not_zero(gold: Gold, turns: int) -> None:
    assert not needs_process(gold, 0.0, turns, "unsolved")
    assert not needs_process(gold, 0.0, turns, "all")
    verdict = _process(*[None] * len(gold.milestones))
    assert scores(gold, _outcome(NO), verdict, _trajectory(turns)) == Scores(acc=0.0)


def test_solved_with_judged_milestones_has_both() -> None:
    # --dataclaw-process=all. N = 2, T = 4: EE 0.5; m1 at turn 3: 0.9.
    result = scores(_gold(milestones=2), _outcome(YES), _process(1, 3), _trajectory(4))
    assert (result.acc, result.ee, result.gpr) == (1.0, 0.5, 1.0)
    assert result.tpe == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("acc", "mode", "expected"),
    [
        (0.0, "unsolved", True),
        (0.5, "unsolved", True),
        (1.0, "unsolved", False),
        (1.0, "all", True),
        (0.0, "all", True),
        (0.0, "off", False),
        (1.0, "off", False),
    ],
)
def test_whose_milestones_are_judged(acc: float, mode: str, expected: bool) -> None:
    assert needs_process(_gold(), acc, 3, mode) is expected


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match="'some' is none of unsolved, all, off"):
        needs_process(_gold(), 0.0, 3, "some")


@pytest.mark.parametrize("turn", [None, 0, 7])
def test_an_achieved_milestone_needs_a_turn_of_the_trajectory(turn: int | None) -> None:
    verdict = ProcessVerdict("judge", (MilestoneVerdict("m0", YES, turn),))
    with pytest.raises(JudgeError, match="'m0' is achieved at turn"):
        scores(_gold(milestones=1), _outcome(NO), verdict, _trajectory(6))


def test_undecided_milestones_are_not_achieved() -> None:
    verdict = ProcessVerdict("rules", (MilestoneVerdict("m0", UNDECIDED), MilestoneVerdict("m1", YES, 1)))
    assert scores(_gold(milestones=2), _outcome(NO), verdict, _trajectory(2)).gpr == 0.5


def test_verdicts_must_fit_the_gold() -> None:
    with pytest.raises(JudgeError, match="exactly part_0, part_1"):
        scores(_gold(answer=[1, 2]), _outcome(YES), None, _trajectory(1))
    with pytest.raises(JudgeError, match="3 milestones"):
        scores(_gold(), _outcome(NO), _process(1, 2), _trajectory(3))


@pytest.mark.parametrize("answer", [7, "x", None, [], [1], [1, "x"], {"a": 1}])
def test_no_answer_is_wrong_in_every_part(answer: Json) -> None:
    gold = _gold(answer=answer)
    verdict = no_answer(gold, "judge")
    assert {part.ruling for part in verdict.parts} == {NO}
    assert scores(gold, verdict, None, Trajectory()) == Scores(acc=0.0)


def test_answer_text_is_the_string_itself_or_json() -> None:
    assert answer_text("是") == "是"
    assert answer_text(20.5) == "20.5"
    assert json.loads(answer_text(["甲公司", 1, None])) == ["甲公司", 1, None]
    assert "甲公司" in answer_text(["甲公司"])


def test_a_case_takes_the_last_turn_with_text(tmp_path: Path) -> None:
    brief = Brief("task_001", "n", "c", "easy", "prompt", 60.0, (), False)
    task = Task(brief, _gold(), tmp_path / "task_001.md", tmp_path, "", "")
    trajectory = Trajectory((Turn(1, "first"), Turn(2, "final"), Turn(3, "  ")))
    aliases = (frozenset({"a", "b"}),)
    case = case_of(task, trajectory, aliases)
    assert (case.answer, case.gold, case.trajectory, case.aliases) == ("final", task.gold, trajectory, aliases)
