"""Time the collection of 492 tasks against PyYAML's pure-Python loader on the front matters of the same files.

python benchmarks/bench_collect.py

Twice: `load_task` alone, and the whole collection phase of `pytest --collect-only` with what pytest itself does in it.
All times are CPU times, the bytecode caches are warm.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
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

ROUNDS = 9
_TIME = re.compile(r"^collection took ([0-9.]+) s of CPU$", re.MULTILINE)


def main() -> None:
    """Print the medians of interleaved rounds, in ms for all tasks, and the ratios (at least 5 is the aim)."""
    with tempfile.TemporaryDirectory() as folder:
        path = make_root(Path(folder) / "root")
        files = sorted((path / "tasks").glob("task_*.md"))
        blocks = [front_matter(file.read_text(encoding="utf-8")) for file in files]
        environment = _environment(Path(folder) / "bytecode")

        def load() -> None:
            root = BenchmarkRoot(path)
            for file in files:
                load_task(file, root)

        def parse() -> None:
            for block in blocks:
                yaml.load(block, yaml.SafeLoader)

        _collection_ms(path, environment, len(files))  # fills the bytecode caches
        rounds = [(_collection_ms(path, environment, len(files)), _ms(load), _ms(parse)) for _ in range(ROUNDS)]
    collection, ours, pure = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"pytest's collection phase, {len(files)} tasks (imports and pytest's own work too): {collection:8.1f} ms")
    print(f"load_task, the same (files read, hashed, checked; gold too):             {ours:8.1f} ms")
    print(f"yaml.SafeLoader, their {len(blocks)} front matters alone:                         {pure:8.1f} ms")
    print(f"ratios (median of {ROUNDS} rounds): collection phase {pure / collection:.1f}, load_task {pure / ours:.1f}")


def _environment(bytecode: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPATH": str(Path(__file__).parent), "PYTHONPYCACHEPREFIX": str(bytecode)}


def _collection_ms(root: Path, environment: dict[str, str], tasks: int) -> float:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "_collection_time", str(root / "tasks")],
        cwd=root,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = _TIME.search(done.stdout)
    if found is None or done.stdout.count(".md: 1\n") != tasks:
        raise SystemExit(f"expected {tasks} collected tasks and their time, got:\n{done.stdout}")
    return float(found[1]) * 1000


def _ms(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    main()
