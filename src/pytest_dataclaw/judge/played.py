"""Play an LLM judge with another judge: from the prompt's text to a reply by the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.judge.base import Case
from pytest_dataclaw.judge.prompt import read_payload
from pytest_dataclaw.model.task import Gold, Milestone
from pytest_dataclaw.model.trajectory import ToolCall, Trajectory, Turn
from pytest_dataclaw.model.verdict import Ruling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_dataclaw.judge.base import Judge


class PlayedJudge:
    """Answers the judge's prompts with the rulings of `judge`, which sees what the prompt says and no more."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def reply(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the JSON reply to a prompt; undecided is written as 0 or not achieved.

        Raises ValueError where the messages are no prompt of ours, JudgeError from the judge that is played.
        """
        payload = read_payload(messages)
        reply = self._process(payload) if "milestones" in payload else self._outcome(payload)
        return json.dumps(reply, ensure_ascii=False)

    def _outcome(self, payload: dict[str, Any]) -> dict[str, Any]:
        verdict = self._judge.judge_outcome(_outcome_case(payload))
        scores = {part.key: int(part.ruling is Ruling.YES) for part in verdict.parts}
        reasons = [f"{part.key}: {part.reason}" for part in verdict.parts if part.reason]
        return {"scores": scores, "total": sum(scores.values()) / len(scores), "reason": "; ".join(reasons)}

    def _process(self, payload: dict[str, Any]) -> dict[str, Any]:
        verdict = self._judge.judge_process(_process_case(payload))
        rows = [
            {
                "key": milestone.key,
                "achieved": milestone.ruling is Ruling.YES,
                "turn": milestone.turn,
                "evidence": milestone.evidence,
                "reason": milestone.reason,
            }
            for milestone in verdict.milestones
        ]
        missed = [row["key"] for row in rows if not row["achieved"]]
        return {
            "milestones": rows,
            "break_point": missed[0] if missed else None,
            "chain_summary": f"{len(rows) - len(missed)} of {len(rows)} milestones were reached.",
        }


def _outcome_case(payload: dict[str, Any]) -> Case:
    gold = _gold(payload, guidelines=payload["guidelines"], answer=payload["gold_answer"])
    return Case(gold=gold, answer=payload["final_answer"], aliases=_aliases(payload))


def _process_case(payload: dict[str, Any]) -> Case:
    turns = tuple(
        Turn(
            index=row["turn"],
            text=row["text"],
            tool_calls=tuple(ToolCall("", call["name"], call["arguments"]) for call in row["tool_calls"]),
            results=tuple(row["results"]),
        )
        for row in payload["turns"]
    )
    trajectory = Trajectory(turns)
    gold = _gold(
        payload,
        steps=tuple(payload["gold_steps"]),
        milestones=tuple(Milestone(item["key"], item["value"]) for item in payload["milestones"]),
    )
    return Case(gold=gold, answer=trajectory.answer, trajectory=trajectory, aliases=_aliases(payload))


def _gold(payload: dict[str, Any], **known: Any) -> Gold:
    """Return a gold that holds what the prompt tells of it."""
    fields: dict[str, Any] = {"guidelines": "", "answer": None, "steps": (), "milestones": (), **known}
    return Gold(question=payload["question"], steps_num=len(fields["steps"]), solution=(), path=Path(), **fields)


def _aliases(payload: dict[str, Any]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names) for names in payload["aliases"])
