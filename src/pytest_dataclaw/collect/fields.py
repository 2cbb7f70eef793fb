"""Typed access to a mapping read from a file, its faults TaskErrors that name file, line and field."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeVar, overload

from pytest_dataclaw.collect.yaml_text import index_of
from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

T = TypeVar("T")

# Control characters and lone surrogates, which neither a terminal nor an XML report can carry.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_KINDS: dict[type, str] = {str: "text", list: "a list", dict: "a mapping", bool: "true or false", int: "a whole number"}


class Fields:
    """The fields of one mapping; `text` is the YAML or JSON it came from, which starts at `first_line` of the file."""

    def __init__(self, path: Path, values: Mapping[str, object], text: str, first_line: int = 1) -> None:
        self.path = path
        self.values = values
        self._text = text
        self._first_line = first_line

    def error(self, message: str, *keys: str | int) -> TaskError:
        """Make the error for a field, given as keys and list indices from the outside in."""
        index = index_of(self._text, keys)
        line = None if index is None else self._first_line + self._text.count("\n", 0, index)
        return TaskError(self.path, message, line=line, field=_dotted(keys))

    @overload
    def get(self, kind: type[T], name: str) -> T: ...
    @overload
    def get(self, kind: type[T], name: str, default: T) -> T: ...
    def get(self, kind: type[T], name: str, default: T | None = None) -> T:
        """Return a field of the given type; without a default it must be there."""
        if name not in self.values:
            if default is None:
                raise self.error(f"missing field, expected {_KINDS[kind]}", name)
            return default
        return self.check(kind, self.values[name], name)

    def check(self, kind: type[T], value: object, *keys: str | int) -> T:
        """Return the value if it is of the type, which a bool is not where a number is asked for."""
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        raise self.error(f"expected {_KINDS[kind]}, got {_describe(value)}", *keys)

    def line_of_text(self, name: str, default: str | None = None) -> str:
        """Return a field that is one line of printable text and not blank."""
        text = self.get(str, name) if default is None else self.get(str, name, default)
        if not text.strip():
            raise self.error("expected text, got none", name)
        if _UNPRINTABLE.search(text):
            raise self.error(f"expected one line of printable text, got {text!r}", name)
        return text

    def seconds(self, name: str, default: float) -> float:
        """Return a field that is a positive, finite number."""
        value = self.values.get(name, default)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
            return float(value)
        raise self.error(f"expected a positive number of seconds, got {_describe(value)}", name)

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return a field that is a list of texts."""
        if name not in self.values:
            return default
        return tuple([self.check(str, item, name, index) for index, item in enumerate(self.get(list, name))])


def _dotted(keys: tuple[str | int, ...]) -> str | None:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".") or None


def _describe(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
