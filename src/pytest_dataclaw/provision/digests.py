"""SHA-256 of the benchmark's own files, without reading them again for every trial."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

from pytest_dataclaw.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path, PurePosixPath

_CHUNK_BYTES = 1 << 20

_SETTLED_NS = 2_000_000_000
"""A change so recent may be followed by one with the same ctime: file systems count time in ticks of up to 2 s."""


class DigestCache:
    """Digests of files by path, each good for as long as the file's inode data stay as they were.

    Device, inode, size, mtime and ctime are compared; a program may set an mtime, but not a ctime.
    """

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._first: dict[Path, str] = {}

    def check(self, path: Path) -> str:
        """Return the digest; raise SandboxError if it is not the one that was returned first, OSError as `sha256`.

        The first one stays the measure, so that no later trial works on what an earlier one left behind.
        """
        digest = self.sha256(path)
        if digest != self._first.setdefault(path, digest):
            raise SandboxError(f"{path}: changed since the first trial was provided with it; restore the file")
        return digest

    def sha256(self, path: Path) -> str:
        """Return the hexadecimal digest of a regular file; raise OSError where it cannot be read."""
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file")
        with path.open("rb", buffering=0) as file:
            stamp = _stamp(os.fstat(file.fileno()))
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
            after = os.fstat(file.fileno())
        if _stamp(after) == stamp and time.time_ns() - after.st_ctime_ns > _SETTLED_NS:
            self._known[path] = (stamp, digest.hexdigest())
        return digest.hexdigest()


def combined_sha256(digests: Mapping[PurePosixPath, str]) -> str:
    """Return the digest of the lines `digest  dest`, sorted by dest."""
    lines = (f"{digest}  {dest}\n" for dest, digest in sorted(digests.items(), key=lambda item: str(item[0])))
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
