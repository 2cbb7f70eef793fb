"""Fixed phrases in both languages: refusals, yes and no, and the words that tell a correction from a statement."""

from __future__ import annotations

import re

_REFUSAL = re.compile(
    r"\bno\s+(?:relevant\s+|matching\s+|such\s+|available\s+|related\s+)?(?:data|information|records?)"
    r"(?:\s+(?:was|were|is|are|can\s+be|could\s+be))?\s+(?:found|available)"
    r"|\b(?:relevant\s+)?(?:data|information)\s+(?:was\s+|were\s+|is\s+|are\s+|can\s?|could\s+)?not\s+(?:be\s+)?(?:found|available)"
    r"|\b(?:unable\s+to|could\s+not|couldn't|cannot|can't)\s+(?:find|locate)\s+(?:any\s+|the\s+)?(?:relevant\s+)?data"
    r"|(?:未能?|没有|无法|没能?)\s?(?:查询|查找|检索|查|找|搜索)\s?到?\s?(?:任何|相关|有关|的){0,3}(?:数据|资料|信息)"
    r"|(?:无|没有)(?:相关|有关)(?:数据|资料|信息)|查无(?:相关)?(?:数据|资料|信息)",
    re.IGNORECASE,
)
_POLAR = {
    True: frozenset({"yes", "y", "true", "是", "是的", "对", "对的", "正确"}),
    False: frozenset({"no", "n", "false", "否", "不是", "不", "不对", "错", "错误", "不正确", "没有"}),
}
_CLAUSE = re.compile(r"[^,.;:!?。\n]+")
_NEGATED_NOUN = re.compile(
    r"no\s+(?:relevant|matching|such|available|data|more|less|fewer|longer|other)\b", re.IGNORECASE
)
HEDGE = re.compile(
    r"\b(?:not|or|corrected|correction|wait|actually|instead|rather|vs|versus|either|alternatively|maybe|perhaps)\b"
    r"|更正|应为|应该是|而不是|而非|或者|还是|也可能",
    re.IGNORECASE,
)
CONCLUDES = re.compile(
    r"^\W{0,6}(?:so|therefore|thus|hence|overall|in (?:conclusion|summary)|finally|the (?:final )?(?:answer|result))\b"
    r"|^\W{0,6}(?:因此|所以|综上|故|最终|最后|综合来看)",
    re.IGNORECASE,
)


def mentions_refusal(text: str) -> bool:
    """Tell whether a text says somewhere that data could not be found."""
    return _REFUSAL.search(text) is not None


def is_refusal(text: str) -> bool:
    """Tell whether a text says little else than that data could not be found."""
    found = _REFUSAL.search(text)
    return found is not None and not any(char.isdigit() for char in text) and len(text) - len(found[0]) <= 40


def polarities(text: str) -> set[bool]:
    """Return what the clauses of a text say that begin with a yes or a no; empty where none does."""
    said: set[bool] = set()
    for match in _CLAUSE.finditer(text):
        clause = match[0].strip(" \t*_`'\"“”‘’()[]{}「」>#-").casefold()
        after = text[match.end() : match.end() + 3]
        if (
            not clause
            or _NEGATED_NOUN.match(clause)
            or (clause == "no" and after[:1] == "." and after[1:].strip().isdigit())
        ):
            continue
        word = re.split(r"[\s(\[\"'“”)]", clause, maxsplit=1)[0]
        said.update(value for value, words in _POLAR.items() if word in words)
    return said
