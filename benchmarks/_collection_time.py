"""A pytest plugin (`-p _collection_time`) that prints the CPU seconds which the collection phase takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Time everything between the start of pytest's collection and its end, imports made on the way included."""
    start = time.process_time()
    result = yield
    print(f"\ncollection took {time.process_time() - start:.6f} s of CPU")
    return result
