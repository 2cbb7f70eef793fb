"""Parse JSON strictly: no NaN, no Infinity, no number too large for a float, no key twice, no lone surrogate."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from pytest_dataclaw.collect.source import SourceText
    from pytest_dataclaw.model.task import Json

# A string, or (group 1) a run of characters that a number or a word may be made of.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|([\w.+-]+)')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _NotFiniteError(ValueError):
    """A number is NaN or infinite."""


class _DuplicateKeyError(ValueError):
    """An object holds a key twice."""


def parse_json(source: SourceText) -> Json:
    """Return what a JSON file holds; raise TaskError with the line for anything that is not plain, finite JSON."""
    text = source.text
    try:
        value: Json = json.loads(
            text, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_mapping_of_unique_keys
        )
    except json.JSONDecodeError as exc:
        raise TaskError(source.path, f"is not valid JSON: {exc.msg}", line=exc.lineno) from exc
    except _NotFiniteError as exc:
        raise TaskError(source.path, f"expected finite numbers, got {exc}", line=_line_of_token(source, exc)) from exc
    except _DuplicateKeyError as exc:
        raise TaskError(source.path, "duplicate key", field=str(exc)) from exc
    except (ValueError, RecursionError) as exc:  # an integer of thousands of digits; nesting beyond any use
        raise TaskError(source.path, f"cannot be read as JSON: {exc}") from exc
    surrogate = _SURROGATE.search(text)
    if surrogate is not None and not _is_unicode(value):
        line = source.line_at(surrogate.start())
        raise TaskError(source.path, "half of a surrogate pair is no character", line=line)
    return value


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise _NotFiniteError(literal)
    return number


def _mapping_of_unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _DuplicateKeyError(next(key for key in keys if keys.count(key) > 1))
    return mapping


def _line_of_token(source: SourceText, literal: ValueError) -> int | None:
    places = (match.start() for match in _TOKEN.finditer(source.text) if match[1] == str(literal))
    return next(map(source.line_at, places), None)


def _is_unicode(value: Json) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
