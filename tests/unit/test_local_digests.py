from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path, PurePosixPath

import pytest

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.digests import DigestCache, combined_sha256

# printf abc | sha256sum
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_bytes(b"abc")
    return path


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache believe that an hour has passed, so that no file is too young to be remembered."""
    now = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: now)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that were hashed."""
    sizes: list[int] = []
    original = hashlib.sha256

    class Counting:
        def __init__(self) -> None:
            self._digest = original()

        def update(self, block: bytes) -> None:
            sizes.append(len(block))
            self._digest.update(block)

        def hexdigest(self) -> str:
            return self._digest.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Counting)
    return sizes


@pytest.mark.usefixtures("later")
def test_a_file_is_read_once(file: Path, reads: list[int]) -> None:
    cache = DigestCache()
    assert [cache.sha256(file) for _ in range(3)] == [ABC] * 3
    assert reads == [3]


def test_a_file_that_changed_just_now_is_not_remembered(file: Path, reads: list[int]) -> None:
    cache = DigestCache()
    cache.sha256(file)
    cache.sha256(file)
    assert reads == [3, 3]


@pytest.mark.usefixtures("later")
def test_a_change_under_the_same_size_and_mtime_is_seen(file: Path) -> None:
    cache = DigestCache()
    assert cache.sha256(file) == ABC
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:
        file.write_bytes(b"abd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.sha256(file) == hashlib.sha256(b"abd").hexdigest()


@pytest.mark.usefixtures("later")
def test_another_file_in_its_place_is_seen(file: Path) -> None:
    cache = DigestCache()
    cache.sha256(file)
    other = file.with_name("b.csv")
    other.write_bytes(b"abd")
    other.replace(file)
    assert cache.sha256(file) == hashlib.sha256(b"abd").hexdigest()


def test_the_first_digest_stays_the_measure(file: Path) -> None:
    cache = DigestCache()
    assert cache.check(file) == ABC
    file.write_bytes(b"abd")
    for _ in range(2):
        with pytest.raises(SandboxError, match=r"a\.csv: changed"):
            cache.check(file)
    file.write_bytes(b"abc")
    assert cache.check(file) == ABC


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")  # to open it would block for ever
    for path in (tmp_path, tmp_path / "absent", tmp_path / "fifo"):
        with pytest.raises(FileNotFoundError, match=path.name):
            DigestCache().sha256(path)


def test_combined_digest_is_of_sorted_lines() -> None:
    first, second = PurePosixPath("database/a.csv"), PurePosixPath("database/b.csv")
    expected = hashlib.sha256(b"11  database/a.csv\n22  database/b.csv\n").hexdigest()
    assert combined_sha256({first: "11", second: "22"}) == expected
    assert combined_sha256({second: "22", first: "11"}) == expected
    assert combined_sha256({first: "22", second: "11"}) != expected
