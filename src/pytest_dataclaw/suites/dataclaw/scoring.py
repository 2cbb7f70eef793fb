"""Which of the formulas apply to a DataClaw trial, and what its judge is asked. Source: arXiv 2605.02503."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import JudgeError
from pytest_dataclaw.judge.base import Case
from pytest_dataclaw.judge.reply import part_keys
from pytest_dataclaw.model.result import Scores
from pytest_dataclaw.model.verdict import OutcomeVerdict, PartVerdict, Ruling
from pytest_dataclaw.score.acc import accuracy
from pytest_dataclaw.score.process import efficiency, gpr, tgpr, tpe, tpe_achieved, turn_penalties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_dataclaw.model.task import Gold, Json, Task
    from pytest_dataclaw.model.trajectory import Trajectory
    from pytest_dataclaw.model.verdict import MilestoneVerdict, ProcessVerdict

__all__ = ["PROCESS_MODES", "accuracy", "answer_text", "case_of", "needs_process", "no_answer", "scores"]

PROCESS_MODES = ("unsolved", "all", "off")
"""Whose milestones are judged: those of unsolved trials, of all trials, of none."""


def case_of(task: Task, trajectory: Trajectory, aliases: tuple[frozenset[str], ...] = ()) -> Case:
    """Make the case of a trial; its answer is the text of the last turn that has text."""
    return Case(gold=task.gold, answer=trajectory.answer, trajectory=trajectory, aliases=aliases)


def no_answer(gold: Gold, judge: str) -> OutcomeVerdict:
    """Return the verdict on an empty answer, which no judge is asked about: no part is right."""
    return OutcomeVerdict(judge, tuple(PartVerdict(key, Ruling.NO, "no answer") for key in part_keys(gold)))


def answer_text(answer: Json) -> str:
    """Write a gold answer as an agent would state it: a string as it is, anything else as JSON."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def needs_process(gold: Gold, acc: float, turns: int, process_mode: str) -> bool:
    """Tell whether the milestones of a trial with this accuracy and number of turns are to be judged."""
    if process_mode not in PROCESS_MODES:
        raise ValueError(f"process mode {process_mode!r} is none of {', '.join(PROCESS_MODES)}")
    if process_mode == "off" or not _has_process(gold, turns):
        return False
    return process_mode == "all" or acc < 1.0


def scores(task_gold: Gold, outcome: OutcomeVerdict, process: ProcessVerdict | None, trajectory: Trajectory) -> Scores:
    """Return all metrics of a judged trial.

    EE for solved trials only; GPR, TPE and TGPR where milestones were judged and the task has milestones, steps and
    turns. JudgeError where the verdict does not fit the gold or the trajectory.
    """
    if tuple(part.key for part in outcome.parts) != (keys := part_keys(task_gold)):
        raise JudgeError(f"{outcome.judge} did not rule on exactly {', '.join(keys)}")
    acc = accuracy(outcome.parts)
    turns = len(trajectory.turns)
    ee = efficiency(task_gold.steps_num, turns) if acc == 1.0 else None
    if process is None or not _has_process(task_gold, turns):
        return Scores(acc=acc, ee=ee)
    total = len(task_gold.milestones)
    if [milestone.key for milestone in process.milestones] != [milestone.key for milestone in task_gold.milestones]:
        raise JudgeError(f"{process.judge} did not rule on the {total} milestones of the gold file, in its order")
    reached = _turns_reached(process.milestones, turns)
    penalties = turn_penalties(task_gold.steps_num, reached)
    return Scores(
        acc=acc,
        ee=ee,
        gpr=gpr(len(reached), total),
        tpe=tpe(penalties),
        tpe_achieved=tpe_achieved(penalties),
        tgpr=tgpr(penalties, total),
    )


def _has_process(gold: Gold, turns: int) -> bool:
    return bool(gold.milestones) and gold.steps_num > 0 and turns > 0


def _turns_reached(milestones: Sequence[MilestoneVerdict], turns: int) -> list[int]:
    """Return the turn of every achieved milestone; a guessed turn would be a made-up score, so none is guessed."""
    reached = []
    for milestone in milestones:
        if milestone.ruling is not Ruling.YES:
            continue
        if milestone.turn is None or not 1 <= milestone.turn <= turns:
            raise JudgeError(f"milestone {milestone.key!r} is achieved at turn {milestone.turn} of {turns}")
        reached.append(milestone.turn)
    return reached
