"""Make agent text fit for parsing: hidden characters and imitated verdicts out, compatibility forms folded.

Everything here is linear in the length of the text, and nothing raises: the text is hostile by assumption.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

HIDDEN_CHARACTERS = "hidden_characters"
IMITATES_VERDICT = "imitates_verdict"

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DASHES = frozenset("‐‑‒–—―−﹘﹣－")
_VERDICT_KEY = re.compile(
    r'\\?"(?:scores|match|part_[0-9]{1,3}|verdict|ruling)\\?"\s{0,8}:'
    r'|"(?:total|score)"\s{0,8}:\s{0,8}(?:[01](?:\.0{1,4})?|true|false)\s{0,8}[,}]'
)
_ADDRESS = re.compile(
    r"(?:\bthe\s{1,3})?\b(?:gold|golden|reference|expected|standard|official)\s{1,3}(?:answer|label|solution)\b"
    r"|\bground[ -]truth\b"
    r"|\b(?:mark|grade|judge|treat|accept|count|score|rate)\b[^\n]{0,40}\bas\s{1,3}(?:correct|right|true|a\smatch|solved)\b"
    r"|\bignore\s{1,3}(?:all|any|the|your|previous|prior|above)\b[^\n]{0,30}\b(?:instructions?|rubric|guidelines?|rules)\b"
    r"|(?:^|(?<=\n))[ \t>*#\[(]{0,8}(?:system|judge|grader|evaluator)\b[^\n:]{0,20}:"
    r"|\b(?-i:SYSTEM|JUDGE|GRADER)\b[^\n:]{0,12}:"
    r"|\b(?:full\s{1,3}(?:marks|score|credit)|you\s{1,3}are\s{1,3}(?:now\s{1,3})?an?\b[^\n]{0,20}\b(?:judge|grader|evaluator))\b"
    r"|\[system[^\]\n]{0,20}\]|<<<(?:END|DATA)\b[^\n>]{0,80}>>>"
    r"|\bverdict\W{1,4}(?:correct|match|pass|yes|1)\b"
    r"|<\|[a-z_]{2,20}\|>|\[/?inst\]|</?(?:system|verdict|judge|grading|score)>"
    r"|(?:^|(?<=\n))[ \t*_#]{0,6}(?:score|total|grade|得分|总分)[ \t*_]{0,4}[:=][ \t*_]{0,4}"
    r"(?:1(?:\.0{1,4})?|100 ?%)(?: ?/ ?(?:1(?:\.0)?|100))?[ \t*_]{0,4}(?=\n|$)"
    r"|标准答案|参考答案|判定?为正确|(?:评分员|评审员|裁判|系统) ?:|忽略(?:之前|以上|上述|所有)|给予?满分",
    re.IGNORECASE,
)
_LEADS_ON = re.compile(r"(?:[:=是为]|\bis)[\s*_`\"“]{0,8}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text to parse, and the doubts (`OutcomeVerdict.flags`) that came up on the way."""

    text: str
    flags: tuple[str, ...] = ()


def clean(text: str) -> Cleaned:
    """Return the text that counts: folded, and with every span that imitates or addresses a judge taken out."""
    folded, hidden = fold(text)
    kept = _without_addresses(_without_verdicts(folded))
    flags = [IMITATES_VERDICT] if kept != folded else []
    return Cleaned(kept, (*flags, HIDDEN_CHARACTERS) if hidden else tuple(flags))


def fold(text: str) -> tuple[str, bool]:
    """Return the text with compatibility forms folded, and whether zero-width, bidi or control characters were dropped.

    Character-wise NFKD, which unlike NFKC on the whole is linear for any run of combining marks. Superscripts and
    circled numbers stay as they are (folded, `10³` would read 103), and no script is folded into another.
    """
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    table = {ord(char): _fold_char(char) for char in set(text)}
    hidden = any(unicodedata.category(chr(code)) in ("Cf", "Cc") and not new for code, new in table.items())
    return text.translate(table), hidden


def _fold_char(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\x0b\x0c\x85" or category in ("Zl", "Zp"):
        return "\n"
    if category == "No" or char in "\n\t":
        return char
    if category in ("Cf", "Cc") or "\ufe00" <= char <= "\ufe0f":
        return ""
    return "-" if char in _DASHES else unicodedata.normalize("NFKD", char)


def _without_verdicts(text: str) -> str:
    """Take out every outermost JSON object that holds a key of a judge's reply."""
    objects = _outermost_objects(text)
    cuts: list[tuple[int, int]] = []
    index = 0
    for match in _VERDICT_KEY.finditer(text):
        if cuts and match.start() < cuts[-1][1]:
            continue
        while index < len(objects) and objects[index][1] <= match.start():
            index += 1
        if index < len(objects) and objects[index][0] <= match.start():
            cuts.append(objects[index])
        else:
            cuts.append((match.start(), _line_end(text, match.end())))
    return _cut(text, cuts)


def _outermost_objects(text: str) -> list[tuple[int, int]]:
    """Return the spans of balanced braces that lie in no other such span, in order of their start."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, match.end()))
    return spans


def _without_addresses(text: str) -> str:
    """Take out, to the end of its line, all that speaks to a judge or of a gold answer."""
    cuts: list[tuple[int, int]] = []
    for match in _ADDRESS.finditer(text):
        if cuts and match.start() < cuts[-1][1]:
            continue
        end = _line_end(text, match.end())
        if _LEADS_ON.search(text[max(match.start(), end - 24) : end]):
            following = re.compile(r"\s*").match(text, end)
            end = _line_end(text, following.end() if following else end)
        cuts.append((match.start(), end))
    return _cut(text, cuts)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _cut(text: str, cuts: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    position = 0
    for start, end in cuts:
        kept.append(text[position:start])
        position = end
    return "".join([*kept, text[position:]])
