"""Read a judge's reply: one JSON object, checked against what was asked; nothing is guessed.

Outcome: `{"scores": {key: 0|1}, "total": x, "reason": str}`. Process: `{"milestones": [{"key", "achieved", "turn",
"evidence", "reason"}], "break_point": str|null, "chain_summary": str}`. A score is 0, 1 or a boolean, nothing between.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.verdict import MilestoneVerdict, PartVerdict, Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_dataclaw.model.task import Gold

EVIDENCE = ("value", "inferred", "none")

# Wide enough for a mean written with two decimals, narrower than one part's share of any answer up to 50 parts.
_TOTAL_TOLERANCE = 0.01
_QUOTES = "\"'`“”‘’「」『』«»"
_OBJECT_START = re.compile(r'\{\s*["}]')
_FENCE = re.compile(r"```\w*")


class ReplyFault(ValueError):  # noqa: N818 - a fault of the reply, always caught and asked again
    """Say what is wrong with a reply, in words that its author can act on."""


def part_keys(gold: Gold) -> tuple[str, ...]:
    """Return the score keys of a gold answer: `part_0`... for the items of a list, `match` for anything else.

    An empty list has no parts to score, so it is compared as a whole under `match`.
    """
    if isinstance(gold.answer, list) and gold.answer:
        return tuple(f"part_{index}" for index in range(len(gold.answer)))
    return ("match",)


def outcome_schema(keys: Sequence[str]) -> dict[str, Any]:
    """Return the strict JSON schema of an outcome reply."""
    scores = _object_schema({key: {"type": "integer", "enum": [0, 1]} for key in keys})
    return _object_schema({"scores": scores, "total": {"type": "number"}, "reason": {"type": "string"}})


def process_schema() -> dict[str, Any]:
    """Return the strict JSON schema of a process reply."""
    milestone = {
        "key": {"type": "string"},
        "achieved": {"type": "boolean"},
        "turn": {"type": ["integer", "null"]},
        "evidence": {"type": "string", "enum": list(EVIDENCE)},
        "reason": {"type": "string"},
    }
    return _object_schema(
        {
            "milestones": {"type": "array", "items": _object_schema(milestone)},
            "break_point": {"type": ["string", "null"]},
            "chain_summary": {"type": "string"},
        }
    )


def parse_outcome(text: str, keys: Sequence[str]) -> tuple[PartVerdict, ...]:
    """Return one verdict for each of `keys`, in their order; raise ReplyFault."""
    reply = _find_object(text, "scores")
    scores = reply["scores"]
    if not isinstance(scores, dict):
        raise ReplyFault('"scores" must be an object')
    missing = [key for key in keys if key not in scores]
    if missing:
        raise ReplyFault(f'"scores" lacks {_listed(missing)}')
    values = [_zero_or_one(scores[key], f'"scores"."{key}"') for key in keys]
    _check_total(reply, values)
    reason = _text(reply.get("reason"))
    return tuple(
        PartVerdict(key, Ruling.YES if value else Ruling.NO, reason) for key, value in zip(keys, values, strict=True)
    )


def parse_process(text: str, keys: Sequence[str], turns: int) -> tuple[MilestoneVerdict, ...]:
    """Return one verdict for each milestone of `keys`, in their order; raise ReplyFault.

    `turns` is T: an achieved milestone needs a first turn in 1..T.
    """
    rows = _find_object(text, "milestones")["milestones"]
    if not isinstance(rows, list):
        raise ReplyFault('"milestones" must be a list')
    loose = _loose_spelling(keys)
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            raise ReplyFault('every item of "milestones" must be an object with a string "key"')
        key = row["key"] if row["key"] in keys else loose.get(_canonical(row["key"]))
        if key in found:
            raise ReplyFault(f"milestone {_quoted(key)} is given twice")
        if key is not None:
            found[key] = row
    missing = [key for key in keys if key not in found]
    if missing:
        raise ReplyFault(f'"milestones" lacks {_listed(missing)}')
    return tuple(_milestone(key, found[key], turns) for key in keys)


def _milestone(key: str, row: dict[str, Any], turns: int) -> MilestoneVerdict:
    name = f"milestone {_quoted(key)}"
    if "achieved" not in row:
        raise ReplyFault(f'{name} lacks "achieved"')
    reason = _text(row.get("reason"))
    if not _zero_or_one(row["achieved"], f'{name}: "achieved"'):
        return MilestoneVerdict(key, Ruling.NO, reason=reason)
    turn = row.get("turn")
    if turn is None:
        raise ReplyFault(f'{name} is achieved but has no "turn"; name the first turn that shows it, 1 to {turns}')
    if isinstance(turn, bool) or not isinstance(turn, int) or not 1 <= turn <= turns:
        raise ReplyFault(f'{name}: "turn" must be a whole number from 1 to {turns}, not {_quoted(turn)}')
    evidence = row.get("evidence")
    if evidence not in ("value", "inferred"):
        raise ReplyFault(f'{name} is achieved, so "evidence" must be "value" or "inferred", not {_quoted(evidence)}')
    return MilestoneVerdict(key, Ruling.YES, turn=turn, evidence=evidence, reason=reason)


def _check_total(reply: dict[str, Any], values: Sequence[int]) -> None:
    if "total" not in reply:
        raise ReplyFault('the reply lacks "total"')
    total = reply["total"]
    if isinstance(total, bool) or not isinstance(total, (int, float)):
        raise ReplyFault(f'"total" must be a number, not {_quoted(total)}')
    if not 0 <= total <= 1:
        raise ReplyFault(f'"total" must lie between 0 and 1, not {_quoted(total)}')
    mean = sum(values) / len(values)
    if abs(total - mean) > _TOTAL_TOLERANCE:
        raise ReplyFault(f'"total" is {total} but the mean of "scores" is {mean:.4g}')


def _zero_or_one(value: object, where: str) -> int:
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return int(value)
    raise ReplyFault(f"{where} must be 0 or 1, not {_quoted(value)}")


def _find_object(text: str, wanted: str) -> dict[str, Any]:
    """Return the only top-level object that has the key `wanted` and is not itself quoted."""
    found = [obj for obj in _top_level_objects(_without_wrapping(text)) if wanted in obj]
    if len(found) != 1:
        count = "no JSON object" if not found else f"{len(found)} JSON objects"
        raise ReplyFault(f'the reply has {count} with the key "{wanted}"; exactly one is needed')
    return found[0]


def _top_level_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of `text` from left to right, leaving out those in quotation marks.

    What looks like an object but does not parse ends the search with ReplyFault: an object inside a broken one may be
    a quotation of the agent, so it must not be read as the judge's own words.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant)
    position = 0
    while start := _OBJECT_START.search(text, position):
        before = text[position : start.start()]
        try:
            obj, position = decoder.raw_decode(text, start.start())
        except ReplyFault:
            raise
        except (ValueError, RecursionError) as error:
            raise ReplyFault(f"the reply is not valid JSON ({_text(str(error))})") from None
        if not _is_quoted(before, text[position : position + 10]):
            yield obj


def _is_quoted(before: str, after: str) -> bool:
    """Tell whether text between `before` and `after` stands in quotation marks or in a Markdown quotation."""
    marks = before.rstrip(" \t")[-1:] + after.lstrip(" \t")[:1]
    return any(mark in _QUOTES for mark in marks) or before.rpartition("\n")[2].lstrip().startswith(">")


def _without_wrapping(text: str) -> str:
    """Drop a leading block of reasoning and the marks of Markdown code fences."""
    if text.lstrip().startswith("<think>"):
        text = text.rpartition("</think>")[2]
    return _FENCE.sub("", text)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        raise ReplyFault("a JSON object of the reply has the same key twice")
    return obj


def _refuse_constant(name: str) -> float:
    raise ReplyFault(f"{name} is not a JSON number")


def _loose_spelling(keys: Sequence[str]) -> dict[str, str]:
    """Map canonical forms to keys; empty where two keys share a form, so that only exact copies count."""
    loose = {_canonical(key): key for key in keys}
    return loose if len(loose) == len(keys) else {}


def _canonical(key: str) -> str:
    return "".join(unicodedata.normalize("NFKC", key).casefold().split())


def _text(value: object) -> str:
    """Return a string that can be written as UTF-8; "" for anything but a string."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _quoted(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return _text(shown if len(shown) <= 100 else f"{shown[:100]}…")


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(_quoted(key) for key in keys)


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
