"""Where in a text the final answer stands, and the parts of an answer that is a list.

The strongest mark that is present decides: a marker of finality (`Final answer`, 最终答案, a box), then a plain marker
(`Answer:`, 答案), then the text's last line that could hold an answer. Marked statements are settled; a last line is
settled if it holds nothing but the answer or opens as a conclusion. What is not settled has rivals.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.phrases import CONCLUDES

if TYPE_CHECKING:
    from collections.abc import Callable

_BOXED = re.compile(r"\\boxed\s?\{(?:\\text\s?\{)?([^{}\n]*)\}")
_STRONG = re.compile(
    r"(?:\bfinal\s(?:answer|result|conclusion)|最终(?:的)?(?:答案|结果|结论|回答))[*_`\"”\s]{0,6}"
    r"(?:\bis\b|[:=是为]|\n|(?=[-+0-9\[]))[:*_\s]{0,6}",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"(?:\b(?:the\s)?answer|答案|回答)[*_`\"”\s]{0,4}(?:\bis\b|[:=]|[是为](?!否))[*_ \t:]{0,6}(?:\n\s{0,8})?",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
# A dash or a list number glued to a digit is a sign or a decimal, not a bullet.
_BULLET = re.compile(r"^[\s>#]*(?:[①-⑳]\s*|(?:[-*•]|\(?[0-9]{1,2}[.):、])(?:\s+|(?=[^\s0-9*])))")
_LATEX = re.compile(r"\\(?=[%$#&])|\\(?:text|mathrm|mathbf)\s?\{([^{}]{0,200})\}")
_ARRAY = re.compile(r"\[[^\[\]]*\]")
_OBJECT = re.compile(r"\{[^{}]*\}")
_THOUSANDS_SAFE_COMMA = re.compile(r",(?![0-9]{3}(?![0-9]))|(?<![0-9]),")
_SEPARATORS = (
    re.compile(r"\n"),
    re.compile(r"[①-⑳]|(?:^|(?<=\s))\(?[1-9][.)]\s"),
    re.compile(r";"),
    re.compile(r"、"),
    _THOUSANDS_SAFE_COMMA,
    re.compile(r","),
    re.compile(r"[,、]\s?(?:and\s)?|\sand\s|(?<=[\u4e00-\u9fff])[和与及](?=[\u4e00-\u9fff])"),
)
_EDGES = " \t\n*_`\"'“”‘’「」《》.。!！;；,，、"


@dataclass(frozen=True, slots=True)
class Reading:
    """Statements of the final answer. `claims` are ruled on; `rivals` can only unsettle what the claims say."""

    claims: tuple[str, ...]
    rivals: tuple[str, ...] = ()
    """Other places that could be meant by the same right as the claim; all must agree for a YES."""
    others: tuple[str, ...] = ()
    """Every other line; none may say YES for a NO."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A statement of an answer in parts; `parts` is None where it does not split into as many as were asked for."""

    parts: tuple[str, ...] | None
    text: str


def tidy(text: str) -> str:
    """Return a statement without markup, quotes and closing punctuation; a list or object of one item unwrapped."""
    stripped = _LATEX.sub(lambda match: match[1] or "", text).strip()
    stripped = re.sub(r"\*\*|__|`", "", stripped).lstrip(_EDGES.replace(".", "")).rstrip(_EDGES)
    if len(stripped) > 2 and stripped[0] in "[{" and stripped[-1] in "]}":
        items = list_items(stripped)
        if items is not None and len(items) == 1:
            return items[0].strip(_EDGES)
    return re.sub(r"^\$([^$]*)\$$", r"\1", stripped)


def bold_spans(text: str) -> list[str]:
    """Return the texts set in bold."""
    return [match[1] for match in _BOLD.finditer(text)]


def unlabelled(text: str) -> str:
    """Return a statement without list bullet and without a label before its last colon."""
    body = _BULLET.sub("", text, count=1)
    head, colon, tail = body.rpartition(":")
    return tail if colon and tail.strip(_EDGES) and not head.rstrip().endswith(("http", "https")) else body


def read_single(text: str, carries: Callable[[str], bool], is_bare: Callable[[str], bool]) -> Reading:
    """Find the statements of a single answer: `carries` tells if a line can hold one, `is_bare` if nothing else."""
    marked = [claim for claim in dict.fromkeys(marked_statements(text)) if carries(claim)]
    if marked:
        return Reading(tuple(marked))
    lines = [line for line in _FENCE.sub("", text).split("\n") if line.strip()]
    last = next((index for index in range(len(lines) - 1, -1, -1) if carries(lines[index])), None)
    if last is None:
        return Reading(())
    claim = lines[last]
    at_end = last == len(lines) - 1
    if len(lines) == 1 or (at_end and is_bare(tidy(claim))):
        return Reading((claim,))
    others = [line for line in dict.fromkeys(lines[:last]) if carries(line)]
    bold = [span for span in bold_spans(text) if carries(span)]
    rivals = bold + [line for line in others if not at_end or is_bare(tidy(line))]
    return Reading((claim,), tuple(rivals), () if at_end and _concludes(claim) else (*others, *bold))


def marked_statements(text: str) -> list[str]:
    """Return the line behind each of the strongest kind of marker that the text has; empty where it has none."""
    return [block.split("\n", 1)[0] for block in marked_blocks(text)]


def marked_blocks(text: str) -> list[str]:
    """Return the text from each of the strongest kind of marker to the next blank line or the next such marker."""
    plain = _FENCE.sub("", text)
    boxed = [match[1] for match in _BOXED.finditer(plain)]
    return [*boxed, *_behind(_STRONG, plain)] or _behind(_WEAK, plain)


def _behind(marker: re.Pattern[str], text: str) -> list[str]:
    matches = list(marker.finditer(text))
    limits = [*(match.start() for match in matches), len(text)][1:]
    blocks = [text[match.end() : limit].lstrip() for match, limit in zip(matches, limits, strict=True)]
    return [head for block in blocks if (head := re.split(r"\n[ \t]*\n", block, maxsplit=1)[0]).strip(_EDGES)]


def read_list(text: str, count: int) -> list[Listing]:
    """Find the statements of an answer of `count` parts, each split into parts where it can be."""
    blocks = marked_blocks(text)
    if blocks:
        return [_listing(block, count) for block in blocks]
    plain = _FENCE.sub("", text).strip()
    paragraphs = [paragraph for paragraph in re.split(r"\n[ \t]*\n", plain) if paragraph.strip()]
    last_line = plain.rpartition("\n")[2]
    arrays = [match for match in _ARRAY.finditer(plain) if len(list_items(match[0]) or ()) > 1]
    if arrays:
        claim = Listing(list_items(arrays[-1][0]), arrays[-1][0])
        later = plain[arrays[-1].end() :].count("\n") > 0 and split_parts(last_line, count)
        return [claim, Listing(later, last_line)] if later else [claim]
    for statement in (last_line, paragraphs[-1] if paragraphs else "", plain):
        parts = split_parts(statement, count)
        if parts:
            return [Listing(parts, statement)]
    return [Listing(None, paragraphs[-1] if paragraphs else "")]


def _listing(block: str, count: int) -> Listing:
    head = block.split("\n", 1)[0]
    for statement in (head, block):
        parts = split_parts(statement, count)
        if parts:
            return Listing(parts, statement)
    return Listing(None, block)


def split_parts(statement: str, count: int) -> tuple[str, ...] | None:
    """Split a statement into exactly `count` parts, or return None. An array in it is the only way to read it."""
    return next((parts for parts in splits(statement) if len(parts) == count), None)


def splits(statement: str) -> list[tuple[str, ...]]:
    """Return the ways to split a statement into parts, the most explicit one first; only one where it has an array."""
    for match in reversed([*_ARRAY.finditer(statement), *_OBJECT.finditer(statement)]):
        items = list_items(match[0])
        if items is not None and (len(items) > 1 or match[0] == statement.strip()):
            return [items]
    ways = []
    for separator in _SEPARATORS:
        pieces = [_BULLET.sub("", piece, count=1) for piece in separator.split(statement)]
        ways.append(tuple(piece for piece in pieces if piece.strip(_EDGES)))
    return ways


def list_items(text: str) -> tuple[str, ...] | None:
    """Return the items of a flat array, or the values of a flat object, as they are written; None for all else."""
    try:
        loaded = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        if not text.startswith("[") or not text.endswith("]"):
            return None
        loaded = [piece.strip(_EDGES) for piece in _THOUSANDS_SAFE_COMMA.split(text[1:-1])]
    items = list(loaded.values()) if isinstance(loaded, dict) else loaded
    if not isinstance(items, list) or any(isinstance(item, (list, dict)) for item in items):
        return None
    return tuple(item if isinstance(item, str) else json.dumps(item) for item in items)


def _concludes(line: str) -> bool:
    return CONCLUDES.search(line) is not None
