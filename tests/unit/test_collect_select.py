"""--dataclaw-suite."""

from __future__ import annotations

import pytest

from pytest_dataclaw.collect.select import SuiteFilter


@pytest.mark.parametrize(
    ("text", "task_id", "expected"),
    [
        ("task_001", "task_001_demo_easy_easy001", True),
        ("task_001", "task_001", True),
        ("task_001_", "task_001_demo", True),
        ("task_001_demo", "task_001_demo_easy", True),
        ("task_001_demo_easy", "task_001_demo", False),
        ("task_001", "task_0011_demo", False),
        ("task_0", "task_001_demo", False),
        ("001", "task_001_demo", False),
        ("TASK_001", "task_001_demo", False),
        ("task_002, task_001 ,", "task_001_demo", True),
        ("", "task_001_demo", True),
        (" , ", "task_001_demo", True),
        ("all", "task_001_demo", True),
        ("task_002,all", "task_001_demo", True),
    ],
)
def test_matches(text: str, task_id: str, expected: bool) -> None:
    assert SuiteFilter.parse(text).matches(task_id) is expected


def test_unknown_entries_are_named_once_in_order() -> None:
    suite = SuiteFilter.parse("task_9,task_001,task_8,task_9")
    assert suite.unknown(iter(["task_001_demo", "task_80_demo"])) == ("task_9", "task_8")
    assert SuiteFilter.parse("all").unknown([]) == ()
