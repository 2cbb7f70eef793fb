"""What a trajectory shows: blocks of text with their numbers, and clues to what a number or name there is about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.text import clean
from pytest_dataclaw.judge.values import find_quantities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal

    from pytest_dataclaw.model.trajectory import Turn

_NEAR = 200
_FEW = 8
_WORD = re.compile(r"[a-z]+[0-9]*|[\u3400-\u9fff]+")
_UNIT = re.compile(r"\([^()]*\)")
_STOPWORDS = frozenset({
    "the", "and", "for", "with", "from", "that", "this", "whether", "than", "all", "its", "per",
    "number", "numbers", "total", "count", "counts", "value", "values", "amount", "sum", "result",
    "yuan", "cny", "rmb", "usd", "thousand", "million", "billion", "percent", "percentage", "points",
    "persons", "person", "unit", "units", "year", "ltd", "limited", "company", "corp", "inc",
})  # fmt: skip
_CHINESE_STOPWORDS = frozenset({"数量", "总数", "合计", "数值", "结果", "公司"})


@dataclass(frozen=True, slots=True)
class Sighting:
    """A value seen at `start:end` of a block; `sure` where it is too distinctive to stand there by chance."""

    start: int
    end: int
    sure: bool = False


class Block:
    """A tool result (with the arguments of its call) or a turn's own text."""

    def __init__(self, text: str, arguments: str = "") -> None:
        self.text = clean(text).text
        self._arguments = arguments

    @cached_property
    def numbers(self) -> list[tuple[float, Decimal, int, int]]:
        """The quantities by value: as a float, exact, and where they stand; scaled ones (12.5亿) also in full."""
        found: list[tuple[float, Decimal, int, int]] = []
        for quantity in find_quantities(self.text):
            values = {quantity.value, quantity.signed, quantity.value * (quantity.scale or 1)}
            found.extend((float(value), value, quantity.start, quantity.end) for value in values)
        return sorted(found)

    def numbers_between(self, low: float, high: float) -> list[tuple[float, Decimal, int, int]]:
        """Return the quantities in a closed interval."""
        start = bisect_left(self.numbers, low, key=lambda item: item[0])
        return self.numbers[start : bisect_right(self.numbers, high, key=lambda item: item[0])]

    def around(self, start: int, end: int) -> str:
        """Return, in lower case, what is near a span: its lines and their neighbours, at most 200 characters off."""
        low = self._line_start(self._line_start(start) - 1, start - _NEAR)
        high = self._line_end(self._line_end(end) + 1, end + _NEAR)
        return (self.text[low:start] + " " + self.text[end:high]).casefold()

    @cached_property
    def arguments(self) -> str:
        """The call's arguments in lower case; "" where the block has more numbers than they can be about."""
        return clean(self._arguments).text.replace("\\n", "\n").casefold() if len(self.numbers) <= _FEW else ""

    def _line_start(self, position: int, least: int = 0) -> int:
        return max(self.text.rfind("\n", 0, max(position, 0)) + 1, least, 0)

    def _line_end(self, position: int, most: int | None = None) -> int:
        end = self.text.find("\n", position)
        end = len(self.text) if end < 0 else end
        return end if most is None else min(end, most)


@dataclass(frozen=True, slots=True)
class Clue:
    """The significant words of a milestone's key; another spelling of a name in it stands for the name's words."""

    words: frozenset[str]
    spellings: tuple[tuple[str, frozenset[str]], ...] = ()

    def found_in(self, text: str) -> set[str]:
        """Return those of the words that stand in a text of lower case, or are stood for there."""
        spelled = [words for spelling, words in self.spellings if spelling in text]
        # The plain search is much faster than taking the text apart, and rarely finds anything.
        plain = any(word in text for word in self.words)
        return set().union(*spelled, self.words & significant(text) if plain else ())

    def suffices(self, words: set[str]) -> bool:
        """Tell whether these are at least half of the words; without words, never."""
        return bool(self.words) and 2 * len(words) >= len(self.words)


def clue_of(key: str, value_text: str, name_sets: Iterable[frozenset[str]]) -> Clue:
    """Return the clue of a key; words that the value itself holds are none."""
    folded = _UNIT.sub(" ", clean(key).text).casefold()
    words = (significant(folded) - _STOPWORDS - _CHINESE_STOPWORDS) or significant(folded)
    words -= significant(clean(value_text).text.casefold())
    spellings: list[tuple[str, frozenset[str]]] = []
    for names in name_sets:
        named = next((name for name in sorted(names, key=len, reverse=True) if name.casefold() in folded), None)
        if named is not None:
            meant = frozenset(significant(named.casefold()) & words)
            spellings.extend((name.casefold(), meant) for name in sorted(names) if len(name) > 1)
    return Clue(frozenset(words), tuple(spellings))


def significant(text: str) -> set[str]:
    """Return the words of a text of lower case: Latin ones without plural s, Chinese as pairs of characters."""
    words: set[str] = set()
    for match in _WORD.finditer(text):
        run = match[0]
        if run[0] >= "\u3400":
            words.update(run[index : index + 2] for index in range(max(1, len(run) - 1)))
        elif len(run) > 2 and run not in _STOPWORDS:
            words.add(run.rstrip("s") if len(run) > 4 else run)
    return words


def blocks_of(turn: Turn) -> Iterator[Block]:
    """Yield what a turn shows: its tools' results, then its text. The arguments are the agent's own words."""
    for index, result in enumerate(turn.results):
        yield Block(result, turn.tool_calls[index].arguments if index < len(turn.tool_calls) else "")
    yield Block(turn.text)
