from __future__ import annotations

import pytest

from pytest_dataclaw.provision.capture import HeadTail


def fed(limit: int, *chunks: bytes) -> HeadTail:
    output = HeadTail(limit)
    for chunk in chunks:
        output.feed(chunk)
    return output


@pytest.mark.parametrize("chunks", [[b"abcdef"], [b"a", b"bcd", b"", b"ef"]])
def test_up_to_twice_the_limit_all_is_kept(chunks: list[bytes]) -> None:
    output = fed(3, *chunks)
    assert (output.text(), output.dropped) == ("abcdef", 0)


@pytest.mark.parametrize("chunks", [[b"abcdefghij"], [b"ab", b"cdefgh", b"ij"], [b"%c" % c for c in b"abcdefghij"]])
def test_beyond_it_the_middle_is_dropped_and_counted(chunks: list[bytes]) -> None:
    output = fed(3, *chunks)
    assert output.text() == "abc\n[... 4 bytes dropped ...]\nhij"
    assert output.dropped == 4


def test_a_character_across_the_joint_is_whole_if_nothing_was_dropped() -> None:
    assert fed(4, "甲乙".encode()).text() == "甲乙"  # three bytes each: the second one lies in both halves


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert fed(9, b"a\xff\0b").text() == "a\ufffd\0b"
