"""Expected numbers, and expected changes ("提升1.79": a direction and a size).

Conventions:
- A stated number is right if rounding it to the demanded decimals, half up or half even, gives the gold; where nothing
  is demanded, to the gold's own decimals; for integers and integral gold without demand only if it is equal.
- A written % is right for a gold that is demanded as a percentage. A fraction for a percentage, or a percentage for a
  fraction, has the right value in the wrong form: undecided.
- A written money unit converts to the one unit that question or guidelines name. Where they name none, a number that
  fits only without its unit is undecided. A foreign currency where the yuan is named is wrong.
- An unsigned number beside a word of decline is negative; where the question itself asks for a decline, undecided.
- Of several numbers in a statement: the one in bold, outside brackets, behind the last "=", ":" or "is", or with the
  demanded % is meant, in this order; years and list numbers only if there is nothing else. None of this applies to a
  statement with words of doubt or correction ("not", "or", 更正) or with more than 100 numbers. If none is singled out,
  any right one is undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.answers import bold_spans, tidy
from pytest_dataclaw.judge.expected import Finding
from pytest_dataclaw.judge.phrases import HEDGE, is_refusal, mentions_refusal
from pytest_dataclaw.judge.values import Quantity, decimals_of, find_quantities, parse_quantity, rounded, rounds_to
from pytest_dataclaw.model.verdict import Ruling

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from pytest_dataclaw.judge.demand import Demand

_NUMBER_WORD = re.compile(
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b|[零一二两三四五六七八九十]+(?=[个家省条项位名])",
    re.IGNORECASE,
)
_COPULA = re.compile(r"[=≈:]|\b(?:is|was|are|equals)\b|[是为](?!否)", re.IGNORECASE)
_BRACKETS = re.compile(r"\([^()]*\)")
_YEAR_BEFORE = re.compile(r"\b(?:in|by|for|of|since|year|fy|to|from)\s{0,2}$", re.IGNORECASE)
_ENUMERATOR = re.compile(r"\s*\(?[0-9]{1,2}[.):、]\s")
MANY = 100

UNSTATED = Finding(Ruling.NO, "The statement holds nothing of the expected kind.")
SEVERAL = "Several values compete and none is marked as final."
REFUSED = Finding(Ruling.NO, "The answer says that data are missing where a result exists.")


@dataclass(frozen=True, slots=True)
class ExpectedNumber:
    """A number, given as its published decimal."""

    value: Decimal
    demand: Demand
    percent: bool = False
    """The gold itself is written with a %."""

    def carries(self, text: str) -> bool:
        return bool(find_quantities(text)) or mentions_refusal(text)

    def is_bare(self, statement: str) -> bool:
        return parse_quantity(statement) is not None or is_refusal(statement)

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement):
            return REFUSED
        quantities = meant(statement, percent=self.percent or self.demand.percent)
        if not quantities:
            spelled = _NUMBER_WORD.search(statement) is not None
            return Finding(Ruling.UNDECIDED, "The number seems to be spelled out.") if spelled else UNSTATED
        return _settle([self.compare(quantity) for quantity in quantities], statement)

    def compare(self, quantity: Quantity) -> Finding:
        """Compare one stated quantity with the gold."""
        stated, reason = quantity.signed, "The value matches after rounding to the demanded decimals."
        if quantity.scale is not None and (quantity.scale != 1 or self.demand.scale is not None):
            return self._compare_scaled(quantity, quantity.scale)
        if quantity.direction < 0 and quantity.value < 0 and self._fits(stated):
            return Finding(Ruling.UNDECIDED, "A sign and a word of decline negate each other.")
        if self._fits(stated):
            if quantity.percent and not self._takes_percent:
                return Finding(Ruling.UNDECIDED, "A percentage is stated where none was asked for.")
            return Finding(Ruling.YES, reason)
        if quantity.direction < 0 and self._fits(-stated) and self.demand.decline:
            return Finding(Ruling.UNDECIDED, "The size matches; whether it takes a sign is open.")
        other_form = stated / 100 if quantity.percent else stated * 100
        if (quantity.percent or self.demand.share or self.percent) and self._fits(other_form):
            return Finding(Ruling.UNDECIDED, "The value matches in the other of the forms fraction and percentage.")
        return Finding(Ruling.NO, "The value differs at the demanded decimals.")

    @property
    def _takes_percent(self) -> bool:
        return self.percent or self.demand.percent or (self.demand.share and abs(self.value) >= 1)

    def _compare_scaled(self, quantity: Quantity, scale: Decimal) -> Finding:
        wanted = self.demand.scale
        if quantity.foreign and wanted is not None:
            return Finding(Ruling.NO, "The value is stated in another currency.")
        if self._fits(quantity.signed * scale / (wanted or 1)):
            return Finding(Ruling.YES, "The value matches after conversion of its unit.")
        if wanted is None and self._fits(quantity.signed):
            return Finding(Ruling.UNDECIDED, "The digits match; which unit was asked for is open.")
        return Finding(Ruling.NO, "The value differs after conversion of its unit.")

    def _fits(self, stated: Decimal) -> bool:
        own = 0 if self.value == self.value.to_integral_value() else decimals_of(self.value)
        decimals = self.demand.decimals_for(own)
        if decimals is not None and own > decimals:
            return any(rounds_to(stated, value, decimals) for value in rounded(self.value, decimals))
        return rounds_to(stated, self.value, decimals)


@dataclass(frozen=True, slots=True)
class ExpectedChange:
    """A change: the size as an `ExpectedNumber`, and whether it goes up (+1) or down (-1)."""

    size: ExpectedNumber
    direction: int

    def carries(self, text: str) -> bool:
        return self.size.carries(text)

    def is_bare(self, statement: str) -> bool:
        return self.size.is_bare(statement) or (len(statement) <= 24 and bool(find_quantities(statement)))

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement):
            return REFUSED
        quantities = meant(statement, percent=self.size.demand.percent)
        if not quantities:
            return UNSTATED
        return _settle([self._compare(quantity) for quantity in quantities], statement)

    def _compare(self, quantity: Quantity) -> Finding:
        finding = self.size.compare(replace(quantity, value=abs(quantity.value), direction=0))
        negative = quantity.value < 0
        if finding.ruling is Ruling.NO or (not quantity.direction and not negative):
            open_direction = Finding(Ruling.UNDECIDED, "The size matches; its direction is not stated.")
            return finding if finding.ruling is Ruling.NO else open_direction
        if quantity.direction and negative:
            return Finding(Ruling.UNDECIDED, "Both a sign and a word of direction are stated.")
        if (quantity.direction or -1) != self.direction:
            return Finding(Ruling.NO, "The direction of the change is the other one.")
        return finding


def meant(statement: str, *, percent: bool) -> list[Quantity]:
    """Return the quantity that a statement means, or all that compete where it does not say which."""
    text = tidy(statement)
    quantities = find_quantities(text)
    if _is_one(quantities):
        return quantities[:1]
    quantities = [quantity for quantity in quantities if not _is_incidental(text, quantity)] or quantities
    if _is_one(quantities):
        return quantities[:1]
    if len(quantities) > MANY or HEDGE.search(text):
        return quantities
    ways: tuple[Callable[[], list[Quantity]], ...] = (
        lambda: find_quantities(" ; ".join(bold_spans(statement))),
        lambda: find_quantities(_BRACKETS.sub(" ", text)),
        lambda: _behind_copula(text, quantities),
        lambda: [quantity for quantity in quantities if quantity.percent] if percent else [],
    )
    for way in ways:
        narrowed = way()
        if _is_one(narrowed):
            return narrowed[:1]
    return quantities


def _is_one(quantities: list[Quantity]) -> bool:
    return len({(quantity.signed, quantity.percent, quantity.scale) for quantity in quantities}) == 1


def _is_incidental(text: str, quantity: Quantity) -> bool:
    """Tell whether a number is a year or numbers a list item."""
    bare = quantity.value == quantity.value.to_integral_value() and quantity.decimals == 0
    if not bare:
        return False
    if _ENUMERATOR.match(text) and quantity.start <= 2:
        return True
    before = text[max(0, quantity.start - 8) : quantity.start]
    is_year = 1949 <= quantity.value <= 2060 and not quantity.percent and quantity.scale is None
    return is_year and (text.startswith("年", quantity.end) or _YEAR_BEFORE.search(before) is not None)


def _behind_copula(text: str, quantities: list[Quantity]) -> list[Quantity]:
    last = max((match.end() for match in _COPULA.finditer(text)), default=None)
    return [] if last is None else [quantity for quantity in quantities if quantity.start >= last]


def _settle(findings: list[Finding], statement: str) -> Finding:
    rulings = {finding.ruling for finding in findings}
    if rulings == {Ruling.YES} and mentions_refusal(statement):
        return Finding(Ruling.UNDECIDED, "A value is stated together with a refusal.")
    if len(rulings) == 1:
        return findings[0]
    return Finding(Ruling.UNDECIDED, SEVERAL)
