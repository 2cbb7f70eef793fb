"""Compare our trial, profiles `upstream` and `lean`, with the published benchmark's lifecycle of a task, in one run.

python benchmarks/lifecycle.py [--rounds N]

All three run the same OpenClaw, on the same data, against the same scripted model without latency, one after the other:
only their ratios mean something on a machine that does other work too. Needs a Docker engine with the images
`dataclaw:local` and `dataclaw:local-plain` (docker/build-image) and Docker's command line. How a step is counted:
`_meter.py`; the reference: `_reference.py`; ours: `_trial.py`. Work outside the containers (Docker's daemon; our proxy
and judge) is in the wall time alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from _meter import STEPS, Cost
from _reference import IMAGE, run_reference
from _scripted import make_data
from _trial import Worker
from pytest_dataclaw.errors import DataclawError
from pytest_dataclaw.provision.engine import connect
from pytest_dataclaw.provision.image import LOCAL_IMAGE, inspect

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import DockerClient

    from _meter import Costs

SUBJECTS = ("reference", "upstream", "lean")
LIMITS = {"upstream": (4, 4), "lean": (6, 7)}
"""The reference takes at least so many times as long, and so many times the CPU time."""
_TITLES = {
    "container": "1 docker run | container made and started",
    "data in": "2 docker cp | data mounted",
    "set-up": "3 onboard | configuration written",
    "gateway": "4 gateway start",
    "agent": "5 set model, run agent | turn by WebSocket",
    "judge": "6 judge agent | judge on the host",
    "results out": "7 docker cp | files and record",
    "removal": "8 docker rm | stop and removal",
}


def main() -> int:
    """Print medians of interleaved rounds in seconds, ratios, and whether they are as they should be (else 1)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="rounds of the three (default: 1)")
    rounds: int = parser.parse_args().rounds
    if rounds < 1:
        parser.error(f"--rounds: expected a number from 1 on, got {rounds}")
    try:
        measured = _measure(rounds)
    except DataclawError as error:
        raise SystemExit(str(error)) from error
    _print_table(measured)
    return 0 if _print_ratios(measured) else 1


def _measure(rounds: int) -> list[dict[str, Costs]]:
    """Return the costs of each round by subject."""
    with tempfile.TemporaryDirectory() as folder, closing(connect()) as client:
        _check_images(client)
        place = Path(folder)
        files = make_data(place / "database")
        with closing(Worker(client, place, files)) as worker:
            print(f"data: {len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")
            print(f"ours, once in a worker's life, in no trial's time: {worker.prepare():.1f} s", flush=True)
            run: dict[str, Callable[[], Costs]] = {
                "reference": lambda: run_reference(client, place / "database"),
                "upstream": lambda: worker.run("upstream"),
                "lean": lambda: worker.run("lean"),
            }
            return [{subject: run[subject]() for subject in SUBJECTS} for _ in range(rounds)]


def _check_images(client: DockerClient) -> None:
    baked, plain = inspect(client, LOCAL_IMAGE), inspect(client, IMAGE)
    if baked.context is None or baked.context != plain.context:
        raise SystemExit(f"{LOCAL_IMAGE} and {IMAGE} are not built from the same files; docker/build-image makes both")


def _print_table(measured: list[dict[str, Costs]]) -> None:
    width = max(map(len, _TITLES.values()))
    print(f"\nseconds, median of rounds: {len(measured)} (a total is the median of totals)")
    print(f"{'':{width}}  " + "".join(f"{subject:>16}" for subject in SUBJECTS))
    print(f"{'reference | ours':{width}}  " + f"{'wall':>9}{'CPU':>7}" * len(SUBJECTS))
    for step in STEPS:
        cells = (_median([costs[subject][step] for costs in measured]) for subject in SUBJECTS)
        print(f"{_TITLES[step]:{width}}  " + "".join(f"{cost.wall:9.2f}{cost.cpu:7.2f}" for cost in cells))
    cells = (_median([_total(costs[subject]) for costs in measured]) for subject in SUBJECTS)
    print(f"{'in all':{width}}  " + "".join(f"{cost.wall:9.2f}{cost.cpu:7.2f}" for cost in cells))


def _print_ratios(measured: list[dict[str, Costs]]) -> bool:
    """Print how many times as much the reference takes, in the median round; return whether that is enough."""
    print()
    enough = True
    for subject, (wall_limit, cpu_limit) in LIMITS.items():
        pairs = [(_total(costs["reference"]), _total(costs[subject])) for costs in measured]
        wall = median(reference.wall / ours.wall for reference, ours in pairs)
        cpu = median(reference.cpu / ours.cpu for reference, ours in pairs)
        for name, ratio, limit in (("wall", wall, wall_limit), ("CPU", cpu, cpu_limit)):
            holds = ratio >= limit
            enough &= holds
            print(f"{subject:8} {name:4} 1/{ratio:.1f} of the reference; at most 1/{limit}: {'yes' if holds else 'NO'}")
    return enough


def _median(costs: list[Cost]) -> Cost:
    return Cost(median(cost.wall for cost in costs), median(cost.cpu for cost in costs))


def _total(costs: Costs) -> Cost:
    return sum(costs.values(), Cost())


if __name__ == "__main__":
    sys.exit(main())
