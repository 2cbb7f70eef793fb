"""Output of any length in bounded memory."""

from __future__ import annotations


class HeadTail:
    """The first and the last `limit` bytes of a stream; `dropped` counts the bytes between them."""

    def __init__(self, limit: int) -> None:
        self.dropped = 0
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._limit - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        excess = max(0, len(self._tail) - self._limit)
        del self._tail[:excess]
        self.dropped += excess

    def text(self) -> str:
        """Return what was kept, bytes that are not UTF-8 replaced; a line marks where bytes were dropped."""
        if not self.dropped:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        return f"{head}\n[... {self.dropped} bytes dropped ...]\n{tail}"
