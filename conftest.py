"""Keep data that only looks like tests out of collection; in CI, let no Docker test be skipped.

The plugin itself is an entry point, not registered here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

collect_ignore_glob = ["tests/data/*"]
if not os.environ.get("DATACLAW_TIMED_TESTS"):
    # They watch containers appear and end from outside, and are not dependable enough yet on a loaded machine.
    collect_ignore_glob += ["tests/docker/test_kills.py", "tests/docker/test_canary.py"]

REQUIRED = "DATACLAW_REQUIRE_DOCKER"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a Docker test into a failure where `DATACLAW_REQUIRE_DOCKER` is set."""
    report = yield
    if report.skipped and os.environ.get(REQUIRED) and item.get_closest_marker("docker"):
        report.outcome = "failed"
        report.longrepr = f"{REQUIRED} is set, but: {report.longrepr}"
    return report
