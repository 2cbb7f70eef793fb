"""Read JSON objects field by field and refuse, by name, whatever is not as expected."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pytest_dataclaw.errors import RecordError

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum
    from pathlib import Path

    from pytest_dataclaw.model.task import Json

    E = TypeVar("E", bound=Enum)

T = TypeVar("T")


def load_json(path: Path) -> Json:
    """Read one JSON document; RecordError names the file where it is absent, torn or not JSON."""
    try:
        document: Json = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class ObjectReader:
    """One JSON object, each field to be taken once; every method raises RecordError naming the field."""

    def __init__(self, obj: Json, where: str = "") -> None:
        if not isinstance(obj, dict):
            raise RecordError(f"{where or 'document'}: expected an object, got {shown(obj)}")
        self._fields = dict(obj)
        self._where = where

    def fail(self, name: str, message: str) -> NoReturn:
        """Refuse the field `name`."""
        raise RecordError(f"{self._path(name)}: {message}")

    def text(self, name: str) -> str:
        """Take a string."""
        value = self._take(name)
        if not isinstance(value, str):
            self.fail(name, f"expected a string, got {shown(value)}")
        return value

    def integer(self, name: str, minimum: int = 0) -> int:
        """Take a whole number that is at least `minimum`."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            self.fail(name, f"expected a whole number >= {minimum}, got {shown(value)}")
        return value

    def optional_integer(self, name: str, minimum: int = 0) -> int | None:
        """Take a whole number or null."""
        return self.integer(name, minimum) if self._is_given(name) else None

    def number(self, name: str, maximum: float = sys.float_info.max) -> float:
        """Take a finite number from 0 to `maximum`."""
        value = self._take(name)
        # Written so that NaN, which compares false with everything, does not pass.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= maximum:
            self.fail(name, f"expected a finite number from 0 to {maximum:g}, got {shown(value)}")
        return float(value)

    def optional_number(self, name: str, maximum: float = sys.float_info.max) -> float | None:
        """Take a finite number from 0 to `maximum`, or null."""
        return self.number(name, maximum) if self._is_given(name) else None

    def member(self, name: str, kind: type[E]) -> E:
        """Take the value of a member of an enumeration."""
        value = self.text(name)
        try:
            return kind(value)
        except ValueError:
            self.fail(name, f"unknown value {value!r}; known are {', '.join(str(each.value) for each in kind)}")

    def items(self, name: str, read: Callable[[Json, str], T]) -> tuple[T, ...]:
        """Take a list whose items `read` reads, given each with its place."""
        value = self._take(name)
        if not isinstance(value, list):
            self.fail(name, f"expected a list, got {shown(value)}")
        return tuple(read(item, f"{self._path(name)}[{index}]") for index, item in enumerate(value))

    def object(self, name: str, read: Callable[[Json, str], T]) -> T:
        """Take an object that `read` reads, given with its place."""
        return read(self._take(name), self._path(name))

    def optional_object(self, name: str, read: Callable[[Json, str], T]) -> T | None:
        """Take an object that `read` reads, or null."""
        return self.object(name, read) if self._is_given(name) else None

    def end(self) -> None:
        """Refuse fields that nobody took."""
        if self._fields:
            self.fail(next(iter(self._fields)), "unknown field")

    def _take(self, name: str) -> Json:
        if name not in self._fields:
            self.fail(name, "missing")
        return self._fields.pop(name)

    def _is_given(self, name: str) -> bool:
        """Tell null, which is taken, from a value, which is left to be taken."""
        if name in self._fields and self._fields[name] is not None:
            return True
        self._take(name)
        return False

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name


def string(value: Json, where: str) -> str:
    """Read a string item."""
    if not isinstance(value, str):
        raise RecordError(f"{where}: expected a string, got {shown(value)}")
    return value


def json_object(value: Json, where: str) -> dict[str, Any]:
    """Read an object of any JSON content; NaN and infinity are none."""
    if not isinstance(value, dict):
        raise RecordError(f"{where}: expected an object, got {shown(value)}")
    return {key: _json_value(item, f"{where}.{key}") for key, item in value.items()}


def _json_value(value: Json, where: str) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        raise RecordError(f"{where}: expected a finite number, got {value}")
    if isinstance(value, dict):
        return json_object(value, where)
    if isinstance(value, list):
        return [_json_value(item, f"{where}[{index}]") for index, item in enumerate(value)]
    return value


def shown(value: object) -> str:
    """Return a value as a message shows it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
