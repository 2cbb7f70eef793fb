"""Quantities in text: sign, separators, scientific notation, percent, Chinese and English units, direction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2}(?![0-9]))?"
    r"|[+-]?\.[0-9]+"
)
_POWER = re.compile(r"\s?[×x*]\s?10\s?(?:\^|\*\*)\s?\{?([+-]?[0-9]{1,2})\}?(?![0-9])")
_PERCENT = r"\\?%|个?百分点|percent\b|percentage\s{1,2}points?\b|per\s?cent\b|pct\b|ppt?s?\b"
_SCALE = (
    r"万亿|千亿|百亿|十亿|亿|千万|百万|十万|万|千(?=[美港]?元)"
    r"|(?:hundred\s)?(?:trillion|billion|million|thousand)\b|[bm]n\b|(?-i:(?<=[0-9])[KMBT])(?![A-Za-z])"
)
_CURRENCY = (
    r"元|人民币|yuan\b|rmb\b|cny\b|美元|usd\b|(?:u\.?s\.? )?dollars?\b|港元|港币|hkd\b|新台币|ntd\b|欧元|euros?\b"
)
_UNIT = re.compile(
    rf"\s{{0,3}}(?:(?P<percent>{_PERCENT})|(?P<scale>{_SCALE})?\s{{0,2}}(?P<currency>{_CURRENCY})?)", re.IGNORECASE
)
_CURRENCY_BEFORE = re.compile(r"(?:rmb|cny|usd|hkd|us\$|hk\$|nt\$|[$¥€])\s?$", re.IGNORECASE)
_SCALES = {
    "万亿": 12, "千亿": 11, "百亿": 10, "十亿": 9, "亿": 8, "千万": 7, "百万": 6, "十万": 5, "万": 4, "千": 3,
    "trillion": 12, "billion": 9, "million": 6, "thousand": 3, "bn": 9, "mn": 6, "t": 12, "b": 9, "m": 6, "k": 3,
}  # fmt: skip
_YUAN = frozenset({"元", "人民币", "yuan", "rmb", "cny", "¥"})
_UP = (
    r"提升|提高|上升|增加|增长|上涨|扩大|高于|高出|多出|(?<!最)高(?=\s?[0-9])"
    r"|\b(?:increas(?:e|es|ed)|rise|rises|rose|up|higher|above|gain|gained|grew|improved)\b"
)
_DOWN = (
    r"下降|降低|减少|下滑|下跌|缩小|(?<!不)低于|低出|少于|(?<!最)低(?=\s?[0-9])"
    r"|\b(?:decreas(?:e|es|ed)|declin(?:e|es|ed)|fall|falls|fell|down|lower|below|drop|drops|dropped|reduc(?:ed|tion))\b"
)
DOWN_WORD = re.compile(_DOWN, re.IGNORECASE)
_DIRECTION_BEFORE = re.compile(
    rf"(?:(?P<up>{_UP})|(?P<down>{_DOWN}))(?:了|约|\bby\b|\bof\b|\babout\b|[\s:*(]){{0,12}}", re.IGNORECASE
)
_DIRECTION_AFTER = re.compile(
    r"\s?[(\[]?\s?(?:(?P<up>提升|提高|上升|增加|增长|increased?|higher|up)"
    r"|(?P<down>下降|降低|减少|decreased?|declined?|lower|down))(?![A-Za-z])",
    re.IGNORECASE,
)
# Wide enough for the longest literal below times the largest power and scale, so that quantize never overflows.
_WIDE = Context(prec=400)
_LONGEST_LITERAL = 60


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written at `start:end` of a text (unit included in `end`).

    `value` carries the written sign only; `direction` is +1 or -1 where a word beside it says up or down, else 0.
    `scale` is the factor of a written money or counting unit (亿元: 1E8, yuan: 1), None where there is none.
    """

    value: Decimal
    start: int
    end: int
    percent: bool = False
    scale: Decimal | None = None
    foreign: bool = False
    """Whether a currency other than the yuan is written."""
    direction: int = 0

    @property
    def decimals(self) -> int:
        """Decimals as written."""
        return decimals_of(self.value)

    @property
    def signed(self) -> Decimal:
        """The value with the sign that a word of direction gives to an unsigned number."""
        return -self.value if self.direction < 0 and self.value > 0 else self.value


def decimals_of(value: Decimal) -> int:
    """Return the number of decimals that a decimal is written with."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def rounds_to(stated: Decimal, expected: Decimal, decimals: int | None) -> bool:
    """Tell whether `stated` rounded to `decimals` (half up or half even) is `expected`; None: if they are equal."""
    return stated == expected or (decimals is not None and expected in rounded(stated, decimals))


def rounded(value: Decimal, decimals: int) -> set[Decimal]:
    """Return a value rounded half up and half even."""
    step = Decimal(1).scaleb(-decimals)
    return {value.quantize(step, mode, _WIDE) for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN)}


def find_quantities(text: str) -> list[Quantity]:
    """Return the quantities of a text in order; digits inside words (CR4), versions and overlong literals are none."""
    directions = {match.end(): 1 if match["up"] else -1 for match in _DIRECTION_BEFORE.finditer(text)}
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        quantity = _read(text, match, directions) if not found or match.start() >= found[-1].end else None
        if quantity is not None:
            found.append(quantity)
    return found


def parse_quantity(text: str) -> Quantity | None:
    """Return the quantity that the whole text is (surrounding blanks apart), or None."""
    stripped = text.strip()
    match = _NUMBER.match(stripped) if len(stripped) <= 2 * _LONGEST_LITERAL else None
    quantity = _read(stripped, match, {}) if match else None
    return quantity if quantity and quantity.end == len(stripped) else None


def _read(text: str, match: re.Match[str], directions: dict[int, int]) -> Quantity | None:
    start, end = match.span()
    literal = match[0]
    before = text[start - 1] if start else ""
    signed = literal[0] in "+-"
    if signed and before and ((before.isascii() and before.isalnum()) or before in ")]%-年月日"):
        # A range or a subtraction: the dash is no sign.
        literal, start, signed, before = literal[1:], start + 1, False, "-"
    tail_of_another = literal[0] == "." and before.isdigit()
    if len(literal) > _LONGEST_LITERAL or tail_of_another or (not signed and _inside_word(text, before, end)):
        return None
    value = Decimal(literal.replace(",", ""))
    power = _POWER.match(text, end)
    if power:
        value, end = value.scaleb(int(power[1]), _WIDE), power.end()
    if text.startswith("‰", end):
        value, end = value.scaleb(-1), end + 1
        return Quantity(value, start, end, percent=True)
    unit = _UNIT.match(text, end)
    percent, scale, currency = unit.group("percent", "scale", "currency") if unit else (None, None, None)
    end = unit.end() if unit and (percent or scale or currency) else end
    written = currency or _symbol_before(text, start)
    return Quantity(
        value,
        start,
        end,
        percent=percent is not None,
        scale=_factor(scale) if scale else (Decimal(1) if written else None),
        foreign=bool(written) and written.lower() not in _YUAN,
        direction=directions.get(start) or _direction_after(text, end),
    )


def _inside_word(text: str, before: str, end: int) -> bool:
    """Tell whether an unsigned number is a piece of a word or of a dotted version, not a number of its own."""
    after = text[end : end + 2]
    dotted = len(after) == 2 and after[0] == "." and after[1].isdigit()
    return dotted or (before.isascii() and (before.isalpha() or before in ("_", "#")))


def _symbol_before(text: str, start: int) -> str:
    found = _CURRENCY_BEFORE.search(text[max(0, start - 5) : start])
    return found[0].strip().lower() if found else ""


def _factor(unit: str) -> Decimal:
    word = unit.lower().removeprefix("hundred").strip()
    return Decimal(1).scaleb(_SCALES[word] + (2 if unit.lower().startswith("hundred") else 0))


def _direction_after(text: str, end: int) -> int:
    found = _DIRECTION_AFTER.match(text, end)
    if found is None:
        return 0
    return 1 if found["up"] else -1
