"""Keeps secrets out of everything the proxy writes to disk."""

from __future__ import annotations

import base64
import json
import threading
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_LENGTH = 8
"""Shorter values are not scrubbed: they would hit ordinary words and numbers."""


class Redactor:
    """Replaces secret values by `[redacted:NAME]`, in plain, JSON-escaped, URL-quoted and base64 form. Thread-safe."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        self._forms: tuple[tuple[str, str], ...] = ()
        for name, value in secrets.items():
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Scrub `value` from now on; values shorter than 8 characters are ignored."""
        if len(value) >= MIN_LENGTH:
            with self._lock:
                self._names[value] = name
                self._rebuild()

    def discard(self, value: str) -> None:
        """Stop scrubbing a value that has ceased to be a secret."""
        with self._lock:
            self._names.pop(value, None)
            self._rebuild()

    def scrub(self, text: str) -> str:
        """Return the text without any of the secrets; the longest form that fits is replaced first."""
        for form, label in self._forms:
            text = text.replace(form, label)
        return text

    def _rebuild(self) -> None:
        labels = {form: f"[redacted:{name}]" for value, name in self._names.items() for form in _forms(value)}
        self._forms = tuple(sorted(labels.items(), key=lambda item: len(item[0]), reverse=True))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value)
    yield quote(value, safe="")
    raw = value.encode("utf-8", "surrogatepass")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        # Within longer encoded data the value starts at any of three offsets; only the characters that depend on
        # nothing but the value are looked for (`echo "$KEY" | base64` adds a newline, basic auth a user name).
        for offset, skipped in ((0, 0), (1, 2), (2, 3)):
            yield encode(b"\0" * offset + raw).decode()[skipped : (offset + len(raw)) * 8 // 6]
