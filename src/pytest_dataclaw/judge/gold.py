"""From one part of a gold answer, or a milestone's value, to what it expects."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.numeric import ExpectedChange, ExpectedNumber
from pytest_dataclaw.judge.phrases import is_refusal, polarities
from pytest_dataclaw.judge.text import fold
from pytest_dataclaw.judge.values import find_quantities, parse_quantity
from pytest_dataclaw.judge.verbal import ExpectedName, ExpectedPolarity, ExpectedRefusal, ExpectedText

if TYPE_CHECKING:
    from pytest_dataclaw.judge.demand import Demand
    from pytest_dataclaw.judge.expected import Expected
    from pytest_dataclaw.judge.names import Names
    from pytest_dataclaw.model.task import Json

_SENTENCE_WORDS = 14


def expected_of(item: Json, demand: Demand, names: Names) -> Expected:
    """Tell what a gold part expects, by its type and, for a string, by what it reads as."""
    if item is None:
        return ExpectedRefusal()
    if isinstance(item, bool):
        return ExpectedPolarity(value=item)
    if isinstance(item, (int, float)):
        value = Decimal(repr(item))
        return ExpectedNumber(value, demand) if value.is_finite() else ExpectedText(repr(item))
    if isinstance(item, str):
        return _expected_of_text(item, demand, names)
    return ExpectedText(json.dumps(item, ensure_ascii=False))


def _expected_of_text(item: str, demand: Demand, names: Names) -> Expected:
    text = fold(item)[0].strip()
    if is_refusal(text):
        return ExpectedRefusal()
    said = polarities(text)
    if len(said) == 1 and len(text) <= 4:
        return ExpectedPolarity(value=said.pop())
    quantity = parse_quantity(text)
    if quantity is not None and quantity.scale is None:
        return ExpectedNumber(quantity.value, demand, percent=quantity.percent)
    change = _change(text, demand)
    if change is not None:
        return change
    if names.knows(text) and len(text.split()) <= _SENTENCE_WORDS:
        return ExpectedName(item, names)
    return ExpectedText(item)


def _change(text: str, demand: Demand) -> ExpectedChange | None:
    """Read a word of direction with one number, and nothing else of weight, as a change."""
    quantities = find_quantities(text)
    if len(quantities) != 1 or not quantities[0].direction or quantities[0].value < 0:
        return None
    found = quantities[0]
    rest = re.sub(r"\W|了|by|of", "", text[: found.start] + text[found.end :])
    if len(rest) > len("increased") or found.scale is not None:
        return None
    return ExpectedChange(ExpectedNumber(found.value, demand, percent=found.percent), found.direction)
