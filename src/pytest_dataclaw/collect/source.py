"""Read a text file of a benchmark, whole and checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, its line ends made `\\n` and a byte-order mark taken off; the digest is of the file's bytes."""

    path: Path
    text: str
    sha256: str

    def line_at(self, index: int) -> int:
        """Return the 1-based line of a character of the text."""
        return self.text.count("\n", 0, index) + 1


def read_source(path: Path) -> SourceText:
    """Read a UTF-8 file; raise TaskError where it cannot be read, is not UTF-8 or holds NUL bytes."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a file read whole needs no buffer
            data = file.read()
    except OSError as exc:
        raise TaskError(path, f"cannot be read: {exc.strerror or exc}") from exc
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as exc:
        message = f"is not UTF-8: byte 0x{data[exc.start]:02x} at offset {exc.start}"
        raise TaskError(path, message, line=_line_of_byte(data, exc.start)) from exc
    if "\0" in text:
        offset = data.index(b"\0")
        raise TaskError(path, f"holds a NUL byte at offset {offset}", line=_line_of_byte(data, offset))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return SourceText(path, text, hashlib.sha256(data).hexdigest())


def _line_of_byte(data: bytes, offset: int) -> int:
    return len((data[:offset] + b".").splitlines())
