"""Split a task file into its YAML front matter and its markdown body."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_dataclaw.collect.fields import Fields
from pytest_dataclaw.collect.yaml_text import YamlTextError, is_text, parse_yaml
from pytest_dataclaw.errors import TaskError

if TYPE_CHECKING:
    from pytest_dataclaw.collect.source import SourceText

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"\n---[ \t]*$", re.MULTILINE)
# Simple `key: value` lines, then the list of workspace files, which all tasks of a benchmark write alike.
_SPLIT = re.compile(r"((?:[A-Za-z_]+:[^\n]*\n)+)(workspace_files:.*)", re.DOTALL)
# Words without any sign that YAML gives a meaning, so that each line is an entry of its own.
_PLAIN_LINES = re.compile(r"(?:[A-Za-z_]+:(?: [A-Za-z0-9_][A-Za-z0-9_./-]*)+\n)+")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields of a task file's front matter, and where in the text the body starts."""

    fields: Fields
    body_index: int


def read_front_matter(source: SourceText) -> FrontMatter:
    """Read the front matter between the two `---` lines; raise TaskError where it is absent, unclosed or bad YAML."""
    opening = _OPENING.match(source.text)
    if opening is None:
        raise TaskError(source.path, "missing front matter: expected `---` as the first line", line=1)
    closing = _CLOSING.search(source.text, opening.end() - 1)
    if closing is None:
        raise TaskError(source.path, "unclosed front matter: expected a second `---` line", line=1)
    block = source.text[opening.end() : closing.start() + 1]
    try:
        values = _parse(block)
    except YamlTextError as fault:
        line = None if fault.index is None else source.line_at(opening.end() + fault.index)
        raise TaskError(source.path, str(fault), line=line, field=fault.key) from fault
    if not isinstance(values, dict):
        raise TaskError(source.path, "expected the front matter to be a mapping of `key: value` lines", line=2)
    return FrontMatter(Fields(source.path, values, block, first_line=2), closing.end())


def _parse(block: str) -> object:
    # The list is most of the text and takes most of the time. As every line before it is a complete entry of the
    # mapping, reading the two halves apart means the same; whatever is unusual or wrong is read in one piece.
    split = _SPLIT.fullmatch(block)
    if split is not None:
        try:
            head, tail = _parse_head(split[1]), _parse_shared(split[2])
        except YamlTextError:
            return parse_yaml(block)
        if isinstance(head, dict) and isinstance(tail, dict) and not head.keys() & tail.keys():
            return head | tail
    return parse_yaml(block)


def _parse_head(text: str) -> object:
    # What YAML does with plain words, of which ids and names are made, is to look whether they are numbers or the like.
    if _PLAIN_LINES.fullmatch(text):
        pairs = [line.split(": ") for line in text.splitlines()]
        values = {key: word if is_text(word) else _parse_shared(word) for key, word in pairs}
        if len(values) == len(pairs) and all(map(is_text, values)):
            return values
    return parse_yaml(text)


@lru_cache(maxsize=16)
def _parse_shared(text: str) -> object:
    return parse_yaml(text)
