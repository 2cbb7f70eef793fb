"""Expected words: yes and no, names, refusals, and any other text.

Conventions:
- Yes and no: by the clauses that begin with such a word in either language; both in one statement is undecided.
- Names: the statement, its label and quotes apart, has to be the name (see names.py). A name inside a longer statement
  counts if the rest is plain wording without another name, number, negation or comparison; otherwise undecided.
  A statement without the name is wrong, unless it is in another script and no alias is known: undecided.
- Other text ("Benchmark allocation only", a sentence): literally the same after normalisation, else undecided.
- A refusal is right only where the gold is a refusal or null, and wrong against everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.answers import tidy, unlabelled
from pytest_dataclaw.judge.expected import Finding
from pytest_dataclaw.judge.numeric import REFUSED
from pytest_dataclaw.judge.phrases import is_refusal, mentions_refusal, polarities
from pytest_dataclaw.judge.text import fold
from pytest_dataclaw.model.verdict import Ruling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_dataclaw.judge.names import Names

_TOKEN = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)*|[^\W_]|[%<>=]")
_CJK = r"\u3400-\u9fff"
_NAMES_ANOTHER = re.compile(
    r"[0-9]|(?<!^)\b[A-Z]|\b(?:not|no|or|nor|than|vs|versus|and|neither|both|except)\b|[不非未或和与比及]|公司|集团|省|市|自治区|相等|行业"
)
_VERB = re.compile(r"\b(?:is|was|are|were|has|have)\b|[是为]", re.IGNORECASE)
_GLUE = frozenset("是为即属于在的:,;.。!()[]\"'“”‘’「」《》 \n\t")


def text_key(text: str) -> str:
    """Return what two spellings of one text share: no case, blanks or punctuation; numbers keep sign and point."""
    return "\0".join(_TOKEN.findall(fold(text)[0].casefold()))


@dataclass(frozen=True, slots=True)
class ExpectedPolarity:
    """A yes (True) or a no (False)."""

    value: bool

    def carries(self, text: str) -> bool:
        return bool(polarities(unlabelled(text))) or mentions_refusal(text)

    def is_bare(self, statement: str) -> bool:
        return (len(statement) <= 12 and len(polarities(statement)) == 1) or is_refusal(statement)

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement):
            return REFUSED
        said = polarities(statement) or polarities(unlabelled(statement))
        if len(said) != 1 or mentions_refusal(statement):
            return Finding(Ruling.UNDECIDED, "The statement does not commit itself to one side.")
        if said == {self.value}:
            return Finding(Ruling.YES, "The statement takes the expected side.")
        return Finding(Ruling.NO, "The statement takes the other side.")


@dataclass(frozen=True, slots=True)
class ExpectedName:
    """The name of a company, a place or another body, or one of the words that a guideline offers beside names."""

    name: str
    names: Names = field(repr=False)

    def carries(self, text: str) -> bool:
        return any(char.isalpha() for char in text)

    def is_bare(self, statement: str) -> bool:
        return (self.names.knows(statement) and not _VERB.search(statement)) or is_refusal(statement)

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement):
            return REFUSED
        whole = tidy(statement)
        if any(self.names.same(self.name, candidate) for candidate in (whole, tidy(unlabelled(whole)))):
            return Finding(Ruling.YES, "The statement is the expected name.")
        outside, inside = tidy(re.sub(r"\([^()]*\)", " ", whole)), re.findall(r"\(([^()]*)\)", whole)
        if inside and self.names.same(self.name, tidy(unlabelled(outside))):
            if all(self.names.same(self.name, tidy(text)) for text in inside):
                return Finding(Ruling.YES, "The statement is the expected name, given twice.")
            return Finding(Ruling.UNDECIDED, "The expected name has an addition in brackets.")
        return self._rule_contained(whole)

    def _rule_contained(self, statement: str) -> Finding:
        spellings = self.names.spellings(self.name)
        for spelling in sorted(spellings, key=len, reverse=True):
            found = contained(statement, spelling)
            if found is not None:
                rest = (statement[: found[0]] + " " + statement[found[1] :]).strip()
                if _NAMES_ANOTHER.search(rest) or mentions_refusal(statement):
                    return Finding(Ruling.UNDECIDED, "The expected name stands among other things.")
                return Finding(Ruling.YES, "The statement gives the expected name.")
        readable = any(is_chinese(spelling) == is_chinese(statement) for spelling in spellings)
        if readable:
            return Finding(Ruling.NO, "The statement gives another name.")
        return Finding(Ruling.UNDECIDED, "The statement is in another script and an alias is lacking.")


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """Any other text: only literal agreement can be ruled on."""

    text: str

    def carries(self, text: str) -> bool:
        return any(char.isalnum() for char in text)

    def is_bare(self, statement: str) -> bool:
        return text_key(statement) == text_key(self.text) or is_refusal(statement)

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement):
            return REFUSED
        if text_key(self.text) in (text_key(statement), text_key(unlabelled(tidy(statement)))):
            return Finding(Ruling.YES, "The wording is literally the expected one.")
        return Finding(Ruling.UNDECIDED, "Whether the wording means the same takes a reader.")


@dataclass(frozen=True, slots=True)
class ExpectedRefusal:
    """The statement that there are no data; also what a null gold expects."""

    def carries(self, text: str) -> bool:
        return any(char.isalnum() for char in text)

    def is_bare(self, statement: str) -> bool:
        return is_refusal(statement)

    def rule(self, statement: str) -> Finding:
        if is_refusal(statement) or tidy(statement).casefold() in ("null", "none", "n/a"):
            return Finding(Ruling.YES, "The answer says that data are missing, as expected.")
        if mentions_refusal(statement):
            return Finding(Ruling.UNDECIDED, "The answer says that data are missing, and more.")
        return Finding(Ruling.NO, "The answer states a result where data are missing.")


def contained(text: str, name: str) -> tuple[int, int] | None:
    """Return where a text first holds a name that is not a piece of a longer one, or None."""
    return next(occurrences(text, name), None)


def occurrences(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield where a folded text holds a name that is not a piece of a longer one.

    Latin: bounded by words that do not begin with a capital, or by punctuation. Chinese, which has no blanks: bounded
    by punctuation, other scripts, or particles.
    """
    pattern = r"[\s,.]{1,3}".join(re.escape(word) for word in re.split(r"[\s,.]+", fold(name)[0].strip(" .,")) if word)
    for match in re.finditer(pattern, text, re.IGNORECASE) if pattern else ():
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        if _bounded(before[::-1], match[0][0], leftward=True) and _bounded(after, match[0][-1], leftward=False):
            yield match.span()


def _bounded(beside: str, edge: str, *, leftward: bool) -> bool:
    if not beside or beside[0] in _GLUE - {" "}:
        return not re.match(r"\.? ?(?:ltd|limited|inc)\b", beside, re.IGNORECASE) or leftward
    if is_chinese(edge):
        return not re.match(rf"[{_CJK}]", beside)
    if beside[0] != " ":
        return not (beside[0].isascii() and beside[0].isalnum()) and beside[0] not in "-_&/"
    word = re.split(r"[\s,.;:()]", beside[1:], maxsplit=1)[0]
    first = word[-1:] if leftward else word[:1]
    return not first.isupper() or word[::-1].casefold() in ("the", "is")


def is_chinese(text: str) -> bool:
    """Tell whether a text holds Chinese characters."""
    return re.search(rf"[{_CJK}]", text) is not None
