"""Parse YAML mappings strictly, and find the line of a field once something is known to be wrong."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # same interface, another class

if TYPE_CHECKING:
    from collections.abc import Hashable

# Beside its own errors PyYAML lets through whatever Python raises when a tag, explicit or resolved, does not fit its
# scalar: a ValueError for `2022-99-99`, a KeyError for `!!bool maybe`, an AttributeError for `!!timestamp x`.
_LOAD_ERRORS = (
    yaml.YAMLError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class YamlTextError(Exception):
    """What is wrong with a YAML text; `index` is the character where it shows, None where PyYAML gives no place."""

    def __init__(self, message: str, index: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.index = index
        self.key = key


class _UniqueKeyLoader(_SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in seen:
                        raise YamlTextError("duplicate key", key.start_mark.index, key.value)
                    seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> object:
    """Return what a YAML document holds; raise YamlTextError for bad YAML and for a key that a mapping holds twice."""
    try:
        return yaml.load(text, _UniqueKeyLoader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise YamlTextError(f"bad YAML: {exc.problem or exc.context}", mark.index if mark else None) from exc
    except yaml.reader.ReaderError as exc:
        raise YamlTextError(f"bad YAML: {exc.reason}", _index_of_unprintable(text)) from exc
    except _LOAD_ERRORS as exc:
        raise YamlTextError(f"bad YAML: a value does not fit its type: {exc}") from exc


@lru_cache(maxsize=64)
def is_text(word: str) -> bool:
    """Tell whether YAML takes a plain (unquoted) word for text, not for a number, a date, a truth value or null."""
    resolvers = _SafeLoader.yaml_implicit_resolvers
    return not any(form.match(word) for first in (word[0], None) for _, form in resolvers.get(first, ()))


def _index_of_unprintable(text: str) -> int | None:
    # libyaml counts bytes and the pure-Python reader characters, so neither's own position is used.
    match = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return match.start() if match else None


def index_of(text: str, keys: tuple[str | int, ...]) -> int | None:
    """Return where in a YAML or JSON text a field stands; where it is absent, the nearest field that holds it.

    None for an absent field of the outermost mapping, and for a text that YAML cannot read.
    """
    try:
        node = yaml.compose(text, _SafeLoader)
    except _LOAD_ERRORS:
        return None
    index = None
    for key in keys:
        found = _child(node, key)
        if found is None:
            break
        place, node = found
        index = place.start_mark.index
    return index


def _child(node: yaml.Node | None, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node that stands for a key or list item, and the node of its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    return None
