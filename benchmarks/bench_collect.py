"""Time loading 492 tasks against PyYAML's pure-Python loader on the front matters of the same files.

python benchmarks/bench_collect.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from _tasks import front_matter, make_root
from pytest_dataclaw.collect.root import BenchmarkRoot
from pytest_dataclaw.collect.task_file import load_task

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7


def main() -> None:
    """Print the medians of interleaved rounds, in ms for all tasks, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_root(Path(folder))
        files = sorted((path / "tasks").glob("task_*.md"))
        blocks = [front_matter(file.read_text(encoding="utf-8")) for file in files]

        def load() -> None:
            root = BenchmarkRoot(path)
            for file in files:
                load_task(file, root)

        def parse() -> None:
            for block in blocks:
                yaml.load(block, yaml.SafeLoader)

        rounds = [(_ms(load), _ms(parse)) for _ in range(ROUNDS)]
    ours, pure = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"load_task, {len(files)} tasks (files read, hashed, checked; gold too): {ours:8.1f} ms")
    print(f"yaml.SafeLoader, their {len(blocks)} front matters alone:                {pure:8.1f} ms")
    print(f"ratio (median of {ROUNDS} rounds): {pure / ours:.1f}")


def _ms(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
