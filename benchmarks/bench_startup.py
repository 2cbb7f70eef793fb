"""Compare pytest's start-up in a foreign project with and without the plugin, in one run.

python benchmarks/bench_startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 20


def main() -> None:
    """Print the medians of interleaved rounds, in ms, and the ratio (at most 1.15 is the aim)."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        rounds = [(_ms(folder), _ms(folder, "-p", "no:dataclaw")) for _ in range(ROUNDS + 1)][1:]  # the first is cold
    with_plugin, without = (statistics.median(times) for times in zip(*rounds, strict=True))
    print(f"pytest --collect-only with the plugin:    {with_plugin:7.1f} ms")
    print(f"pytest --collect-only without the plugin: {without:7.1f} ms")
    print(f"ratio (median of {ROUNDS} each): {with_plugin / without:.3f}")


def _ms(folder: str, *arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
