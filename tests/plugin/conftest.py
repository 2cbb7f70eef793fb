"""Fixtures of the plugin tests: a fresh benchmark root, and the three ways of running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness import MODES, Bench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty benchmark root."""
    return Bench(tmp_path / "bench")


@pytest.fixture(params=MODES, ids=str)
def mode(request: pytest.FixtureRequest) -> list[str]:
    """Arguments for one of: no xdist, xdist idle, two workers."""
    return MODES[request.param]
