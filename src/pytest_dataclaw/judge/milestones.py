"""Rule on milestones by what the turns show: tool results and the agent's own text, never tool arguments alone.

Source: the benchmark's published rule (arXiv 2605.02503), a value within 1 % relative in the right semantic context.
Numbers that are near by chance are the danger, so the conventions here are stricter:

- Integers below 1000 have to be equal (1 % of 364 would let 361 pass); other numbers lie within 1 % or round to the
  published decimals. A fraction stands for a percentage, a full amount for one in the unit that the key names (亿元).
- Context: half of the significant words of the key stand within a line of the value (and 200 characters), or in the
  arguments of the call whose short result (at most 8 numbers) shows it.
- A number of five or more significant digits, met to the published decimals, needs no context.
- Names need context; a list of names has to stand together, in context. A yes or no needs context.
- Other text counts where it is literally contained: from five words or ten Chinese characters on by itself, shorter
  text in context. Text that is not found may have been paraphrased or shown in another language: undecided.
- A value without its context is undecided; a value that is nowhere is a no, even where a later milestone implies it.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.answers import unlabelled
from pytest_dataclaw.judge.demand import Demand, money_scale
from pytest_dataclaw.judge.evidence import Block, Sighting, blocks_of, clue_of
from pytest_dataclaw.judge.gold import expected_of
from pytest_dataclaw.judge.names import Names
from pytest_dataclaw.judge.numeric import ExpectedNumber
from pytest_dataclaw.judge.phrases import polarities
from pytest_dataclaw.judge.provinces import PROVINCE_NAMES
from pytest_dataclaw.judge.text import fold
from pytest_dataclaw.judge.values import decimals_of, rounds_to
from pytest_dataclaw.judge.verbal import ExpectedName, ExpectedPolarity, ExpectedText, occurrences
from pytest_dataclaw.model.verdict import MilestoneVerdict, Ruling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_dataclaw.judge.expected import Expected
    from pytest_dataclaw.model.task import Gold, Json, Milestone
    from pytest_dataclaw.model.trajectory import Trajectory

_TOLERANCE = Decimal("0.01")
_EXACT_BELOW = 1000
_DISTINCTIVE_DIGITS = 5
_SHARE = re.compile(r"%|percent|百分|proportion|ratio|rate|share|margin|intensity|比例|占比|率", re.IGNORECASE)
_MONEY_POWER = re.compile(r"10\^([0-9]{1,2})")


def rule_on_milestones(
    gold: Gold, trajectory: Trajectory, aliases: tuple[frozenset[str], ...]
) -> tuple[MilestoneVerdict, ...]:
    """Rule on every milestone of a gold, in order; see the module for the conventions."""
    names = Names(aliases)
    shown = [(turn.index, list(blocks_of(turn))) for turn in trajectory.turns]
    return tuple(_rule(milestone, shown, names, (*PROVINCE_NAMES, *aliases)) for milestone in gold.milestones)


def _rule(
    milestone: Milestone, shown: list[tuple[int, list[Block]]], names: Names, name_sets: tuple[frozenset[str], ...]
) -> MilestoneVerdict:
    clue = clue_of(milestone.key, _as_text(milestone.value), name_sets)
    look, paraphrasable = _looker(milestone, names)
    seen = False
    for turn, blocks in shown:
        for block in blocks:
            given = clue.found_in(block.arguments)
            for sighting in look(block):
                seen = True
                near = block.around(sighting.start, sighting.end)
                if sighting.sure or clue.suffices(given | clue.found_in(near)):
                    reason = "The turn shows the value by itself." if sighting.sure else "The turn shows it in context."
                    return MilestoneVerdict(milestone.key, Ruling.YES, turn, "value", reason)
    if seen:
        return MilestoneVerdict(milestone.key, Ruling.UNDECIDED, reason="The value is shown without its context.")
    if paraphrasable:
        return MilestoneVerdict(milestone.key, Ruling.UNDECIDED, reason="The wording is not found literally.")
    return MilestoneVerdict(milestone.key, Ruling.NO, reason="The value is not shown in any turn.")


def _looker(milestone: Milestone, names: Names) -> tuple[Callable[[Block], Iterator[Sighting]], bool]:
    """Return what finds a milestone's value in a block, and whether the value may be there in other words."""
    if isinstance(milestone.value, list):
        items = [expected_of(item, Demand(), names) for item in milestone.value]
        return lambda block: _list_sightings(block, items, milestone.key), any(map(_is_open, items))
    expected = expected_of(milestone.value, Demand(), names)
    return lambda block: _sightings(block, expected, milestone.key), _is_open(expected)


def _is_open(expected: Expected) -> bool:
    return not isinstance(expected, (ExpectedNumber, ExpectedName, ExpectedPolarity))


def _sightings(block: Block, expected: Expected, key: str) -> Iterator[Sighting]:
    if isinstance(expected, ExpectedNumber):
        yield from _number_sightings(block, expected, key)
    elif isinstance(expected, ExpectedName):
        for spelling in sorted(expected.names.spellings(expected.name)):
            for start, end in occurrences(block.text, spelling):
                yield Sighting(start, end)
    elif isinstance(expected, ExpectedPolarity):
        for match in re.finditer(r"[^\n]+", block.text):
            if polarities(unlabelled(match[0])) == {expected.value}:
                yield Sighting(match.end(), match.end())
    elif isinstance(expected, ExpectedText):
        yield from _text_sightings(block, expected.text)


def _number_sightings(block: Block, expected: ExpectedNumber, key: str) -> Iterator[Sighting]:
    value = expected.value
    decimals = decimals_of(value)
    is_small_count = value == value.to_integral_value() and decimals == 0 and abs(value) < _EXACT_BELOW
    distinctive = len(value.normalize().as_tuple().digits) >= _DISTINCTIVE_DIGITS
    margin = Decimal(0) if is_small_count else max(abs(value) * _TOLERANCE, Decimal(1).scaleb(-decimals) / 2)
    for factor in _factors(key, percent=expected.percent, count=is_small_count):
        low, high = float((value - margin) * factor), float((value + margin) * factor)
        slack = 1e-12 * max(abs(low), abs(high))
        for _, stated, start, end in block.numbers_between(low - slack, high + slack):
            exact = rounds_to(stated / factor, value, decimals or None)
            if exact or (not is_small_count and abs(stated / factor - value) <= abs(value) * _TOLERANCE):
                yield Sighting(start, end, sure=exact and distinctive)


def _factors(key: str, *, percent: bool, count: bool) -> list[Decimal]:
    """Return by what a published value may be multiplied where it is shown: fraction, full amount."""
    factors = [Decimal(1)]
    folded = fold(key)[0]
    if not count and (percent or _SHARE.search(folded)):
        factors.append(Decimal("0.01"))
    power = _MONEY_POWER.search(folded)
    scale = Decimal(1).scaleb(int(power[1])) if power else money_scale(folded)
    return [*factors, scale] if scale is not None and scale != 1 else factors


def _text_sightings(block: Block, text: str) -> Iterator[Sighting]:
    words = re.findall(r"[^\W_]+", fold(text)[0])
    long_enough = len(words) >= 5 or len(re.findall(r"[\u3400-\u9fff]", text)) >= 10
    pattern = r"[\W_]{1,3}".join(map(re.escape, words))
    for match in re.finditer(rf"(?<![^\W_]){pattern}(?![^\W_])", block.text, re.IGNORECASE) if pattern else ():
        yield Sighting(*match.span(), sure=long_enough)


def _list_sightings(block: Block, items: list[Expected], key: str) -> Iterator[Sighting]:
    """Yield the span that holds every item, where the first sightings of all lie together."""
    first = [next(_sightings(block, item, key), None) for item in items]
    spans = [sighting for sighting in first if sighting is not None]
    if spans and len(spans) == len(items):
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        together = end - start <= 80 * len(spans)
        yield Sighting(start, end) if together else Sighting(len(block.text), len(block.text))


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
