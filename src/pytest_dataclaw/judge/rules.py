"""The deterministic judge: yes, no, or undecided; the same text always gets the same ruling.

Outcome: the answer is cleaned (text.py), its final statement found (answers.py), and each part compared with what the
gold expects (numeric.py, verbal.py, whose docstrings state the conventions). Where several statements could be meant
with equal right, they have to agree. A list counts as follows:

- An answer with another number of parts than the gold is wrong in all of them: parts cannot be told apart by guessing.
- Order matters, except for a gold list of names or texts whose guidelines say nothing of order. Those match as a set;
  fewer items than expected score those that are there, more are wrong in all parts (naming everything is no answer).
- Prose instead of a list is read where it holds exactly as many numbers as the gold; otherwise right values in it are
  undecided.

Process: see milestones.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dataclaw.judge.answers import Listing, read_list, read_single, splits, tidy
from pytest_dataclaw.judge.demand import Demand, demand_of
from pytest_dataclaw.judge.expected import Expected, Finding, combine
from pytest_dataclaw.judge.gold import expected_of
from pytest_dataclaw.judge.milestones import rule_on_milestones
from pytest_dataclaw.judge.names import Names
from pytest_dataclaw.judge.numeric import MANY, REFUSED, SEVERAL, UNSTATED, ExpectedChange, ExpectedNumber
from pytest_dataclaw.judge.phrases import is_refusal
from pytest_dataclaw.judge.text import clean
from pytest_dataclaw.judge.values import find_quantities, parse_quantity
from pytest_dataclaw.judge.verbal import ExpectedName, ExpectedText
from pytest_dataclaw.model.verdict import OutcomeVerdict, PartVerdict, ProcessVerdict, Ruling

if TYPE_CHECKING:
    from pytest_dataclaw.judge.base import Case

_MISCOUNTED = Finding(Ruling.NO, "The answer has another count of parts than asked for.")
_EMPTY = Finding(Ruling.UNDECIDED, "Nothing is left once what addresses the judge is taken out.")


class RulesJudge:
    """Rules by fixed rules, without a model; neither method raises for any answer or trajectory."""

    name = "rules"

    def judge_outcome(self, case: Case) -> OutcomeVerdict:
        """Rule on every part of the answer."""
        cleaned = clean(case.answer)
        demand = demand_of(case.gold.question, case.gold.guidelines)
        names = Names(case.aliases)
        expectations = [expected_of(item, demand, names) for item in case.gold.parts]
        if not cleaned.text.strip():
            findings = [_EMPTY if cleaned.flags else UNSTATED for _ in expectations]
        elif len(expectations) == 1:
            findings = [_rule_single(cleaned.text, expectations[0])]
        else:
            findings = _rule_list(cleaned.text, expectations, demand)
        keys = [f"part_{index}" for index in range(len(findings))] if isinstance(case.gold.answer, list) else ["match"]
        parts = tuple(
            PartVerdict(key, finding.ruling, finding.reason) for key, finding in zip(keys, findings, strict=True)
        )
        return OutcomeVerdict(self.name, parts, flags=cleaned.flags)

    def judge_process(self, case: Case) -> ProcessVerdict:
        """Rule on every milestone."""
        return ProcessVerdict(self.name, rule_on_milestones(case.gold, case.trajectory, case.aliases))


def _rule_single(text: str, expected: Expected) -> Finding:
    reading = read_single(text, expected.carries, expected.is_bare)
    if not reading.claims:
        return expected.rule(text)
    finding = combine([expected.rule(claim) for claim in reading.claims], SEVERAL)
    if finding.ruling is Ruling.YES and any(expected.rule(text).ruling is not Ruling.YES for text in reading.rivals):
        return Finding(Ruling.UNDECIDED, SEVERAL)
    if finding.ruling is Ruling.NO and any(expected.rule(text).ruling is Ruling.YES for text in reading.others):
        return Finding(Ruling.UNDECIDED, SEVERAL)
    return finding


def _rule_list(text: str, expectations: list[Expected], demand: Demand) -> list[Finding]:
    if is_refusal(text):
        return [expected.rule(text) for expected in expectations]
    as_set = not demand.ordered and all(isinstance(item, (ExpectedName, ExpectedText)) for item in expectations)
    rule = _rule_set if as_set else _rule_listing
    ruled = [rule(listing, expectations) for listing in read_list(text, len(expectations))]
    return [combine(list(findings), SEVERAL) for findings in zip(*ruled, strict=True)]


def _rule_listing(listing: Listing, expectations: list[Expected]) -> list[Finding]:
    if listing.parts is not None and len(listing.parts) == len(expectations):
        return [expected.rule(part) for expected, part in zip(expectations, listing.parts, strict=True)]
    if is_refusal(listing.text):
        return [REFUSED for _ in expectations]
    if listing.parts is not None or _is_enumeration(listing.text):
        return [_MISCOUNTED for _ in expectations]
    return _rule_prose(listing.text, expectations)


def _rule_prose(text: str, expectations: list[Expected]) -> list[Finding]:
    """Rule on wording in which parts are not set apart, by its numbers in their order."""
    quantities = find_quantities(text)
    ends = [0, *(quantity.end for quantity in quantities)]
    stated = [text[start : quantity.end] for start, quantity in zip(ends, quantities, strict=False)]
    numeric = [item for item in expectations if isinstance(item, (ExpectedNumber, ExpectedChange))]
    if len(numeric) == len(stated):
        remaining = iter(stated)
        return [item.rule(next(remaining)) if item in numeric else item.rule(text) for item in expectations]
    if len(stated) > MANY:
        return [Finding(Ruling.UNDECIDED, SEVERAL) for _ in expectations]
    findings = []
    for item in expectations:
        tried = [item.rule(one) for one in (stated if item in numeric else [text])]
        right = any(finding.ruling is not Ruling.NO for finding in tried)
        findings.append(Finding(Ruling.UNDECIDED, SEVERAL) if right else UNSTATED)
    return findings


def _rule_set(listing: Listing, expectations: list[Expected]) -> list[Finding]:
    """Rule on names without order: each is right if it is among the items, unless there are more items than names."""
    if is_refusal(listing.text):
        return [REFUSED for _ in expectations]
    items = listing.parts or max(splits(listing.text), key=len, default=())
    if len({tidy(item) for item in items}) > len(expectations):
        return [_MISCOUNTED for _ in expectations]
    findings = []
    for expected in expectations:
        ruled = [expected.rule(item) for item in items]
        best = next((finding for finding in ruled if finding.ruling is Ruling.YES), None)
        findings.append(best or (combine(ruled, SEVERAL) if ruled else UNSTATED))
    return findings


def _is_enumeration(text: str) -> bool:
    """Tell whether a statement is a list in form: an array, or short items that are bare numbers or free of digits."""
    ways = splits(text)
    if len(ways) == 1:
        return True
    return any(all(_is_item(tidy(item)) for item in way) for way in ways if way)


def _is_item(item: str) -> bool:
    return len(item) <= 40 and (parse_quantity(item) is not None or not find_quantities(item))
