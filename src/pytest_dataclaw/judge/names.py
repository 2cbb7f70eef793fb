"""Name matching: exact after normalisation, over legal-form variants, aliases and the provinces' several names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_dataclaw.judge.provinces import PROVINCE_NAMES
from pytest_dataclaw.judge.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPECIAL = (frozenset({"equal", "equals", "same", "相等", "相同", "一样"}), frozenset({"industry", "行业"}))
_WORD = re.compile(r"[^\W_]+(?:(?<=[0-9])\.[0-9]+)*")
_LEGAL_WORDS = frozenset(
    {"co", "ltd", "limited", "company", "corp", "corporation", "inc", "incorporated", "plc", "llc"}
)
_LEGAL_FORM = re.compile(r"(?:股份|有限|责任)*公司$")
_COMPANY = re.compile(
    r"\b(?:co\.?,? ?ltd|company|corp|corporation|inc|limited)\b\.?\W*$|(?:公司|集团|研究院)$", re.IGNORECASE
)


def name_key(name: str) -> str:
    """Return what two spellings of one name share: no case, blanks, punctuation, legal form or leading article."""
    words = _WORD.findall(fold(name)[0].casefold())
    if len(words) > 1 and words[0] == "the":
        words = words[1:]
    core = list(words)
    while len(core) > 1 and core[-1] in _LEGAL_WORDS:
        core.pop()
    if core[-2:] == ["joint", "stock"] and len(core) > 2:
        core = core[:-2]
    joined = "".join(core)
    return _LEGAL_FORM.sub("", joined) or joined


class Names:
    """Knows which names mean the same: `aliases` of the task root, provinces, and a few words of guidelines."""

    def __init__(self, aliases: Iterable[frozenset[str]] = ()) -> None:
        self._sets: dict[str, set[str]] = {}
        self._spellings: dict[str, set[str]] = {}
        for names in (*PROVINCE_NAMES, *_SPECIAL, *aliases):
            keys = {key for name in names if (key := name_key(name))}
            for key in keys:
                self._sets.setdefault(key, set()).update(keys)
                self._spellings.setdefault(key, set()).update(names)

    def same(self, first: str, second: str) -> bool:
        """Tell whether two names mean the same body; empty ones never do."""
        key, other = name_key(first), name_key(second)
        return bool(key) and (key == other or other in self._sets.get(key, ()))

    def spellings(self, name: str) -> frozenset[str]:
        """Return every known spelling of a name, itself included."""
        return frozenset({name}) | frozenset(self._spellings.get(name_key(name), ()))

    def knows(self, text: str) -> bool:
        """Tell whether the whole text is a name, by the tables or by a company's legal form."""
        stripped = text.strip()
        return len(stripped) <= 120 and (name_key(stripped) in self._sets or bool(_COMPANY.search(stripped)))
