"""What a question and its guidelines demand of the form of an answer: decimals, percent, unit, order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from pytest_dataclaw.judge.text import fold
from pytest_dataclaw.judge.values import DOWN_WORD

_DIGITS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6,
}  # fmt: skip
_DECIMALS = re.compile(
    r"\b([0-9]|one|two|three|four|five|six)[\s-]{0,2}(?:decimals?\b|d\.p\.|digits? after the decimal)"
    r"|([0-9一两二三四五六])\s?位\s?小数|小数点?后\s?([0-9一两二三四五六])\s?位",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"%|percent|百分", re.IGNORECASE)
_SHARE = re.compile(
    r"%|percent|百分|proportion|ratio\b|rate\b|share\b|margin|intensity|比例|占比|率|比重|幅", re.IGNORECASE
)
_ORDER = re.compile(
    r"in order\b|in sequence|respectively|\border(?:ed)? (?:of|by)\b|ascending|descending|rank(?:ed|ing) (?:of|by)"
    r"|依次|分别|按顺序|顺序|排序|从高到低|从低到高|由高到低|由低到高",
    re.IGNORECASE,
)
# A unit after a slash (件/百万元) is the denominator of a rate, not the unit of the answer.
_MONEY = re.compile(
    r"(?<![/每百千十万亿美港欧多单0-9.])(?P<zh>万亿|十亿|亿|千万|百万|万)?元(?![/素器])"
    r"|(?<!/)(?P<hundred>\b100[\s-]|\bhundred[\s-]|\b10\^8)?(?P<en>\b(?:trillion|billion|million|thousand))?s?\s?(?:of\s)?"
    r"(?:chinese\s)?(?:yuan|rmb|cny)\b",
    re.IGNORECASE,
)
_POWERS = {
    "万亿": 12, "十亿": 9, "亿": 8, "千万": 7, "百万": 6, "万": 4,
    "trillion": 12, "billion": 9, "million": 6, "thousand": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Demand:
    """The demanded form. `scale` is the factor of the one money unit that is named, None where none or several are."""

    decimals: tuple[int, ...] = ()
    percent: bool = False
    """The guidelines speak of percent."""
    share: bool = False
    """Question or guidelines speak of a share, rate or percentage."""
    scale: Decimal | None = None
    decline: bool = False
    """The question itself speaks of a decline, so that its size may be stated without a sign."""
    ordered: bool = False

    def decimals_for(self, own: int) -> int | None:
        """Return how many decimals a number of `own` published decimals is to be compared at; None where exactly.

        Where several are demanded for several parts, the smallest that can hold the published number; where none
        can, the largest.
        """
        if not self.decimals:
            return own or None
        return min((count for count in self.decimals if count >= own), default=max(self.decimals)) or None


def demand_of(question: str, guidelines: str) -> Demand:
    """Read the demand of a task; wording that is not understood demands nothing."""
    asked, rules = fold(question)[0], fold(guidelines)[0]
    return Demand(
        decimals=tuple(sorted(_decimals(rules) or _decimals(asked))),
        percent=bool(_PERCENT.search(rules)),
        share=bool(_SHARE.search(rules) or _SHARE.search(asked)),
        scale=money_scale(rules) or money_scale(asked),
        decline=bool(DOWN_WORD.search(asked)),
        ordered=bool(_ORDER.search(rules)),
    )


def money_scale(text: str) -> Decimal | None:
    """Return the factor of the one money unit that a folded text names; None where it names none or several."""
    scales = set()
    for match in _MONEY.finditer(text):
        power = _POWERS.get((match["zh"] or match["en"] or "").lower(), 0)
        scales.add(Decimal(1).scaleb(8 if match["hundred"] else power))
    return scales.pop() if len(scales) == 1 else None


def _decimals(text: str) -> set[int]:
    words = [next(group for group in match.groups() if group).lower() for match in _DECIMALS.finditer(text)]
    return {_DIGITS.get(word) or int(word) for word in words}
