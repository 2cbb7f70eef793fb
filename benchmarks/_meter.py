"""Where the time of a lifecycle goes, step by step: wall clock, and the CPU time of its container."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from docker import DockerClient

STEPS = ("container", "data in", "set-up", "gateway", "agent", "judge", "results out", "removal")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds; `cpu` is that of everything in the container, user and system."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


Costs: TypeAlias = "Mapping[str, Cost]"
"""By step."""


class Meter:
    """Books what was spent since the last call on one of STEPS; the clock starts when it is made."""

    def __init__(self, client: DockerClient) -> None:
        self.costs = dict.fromkeys(STEPS, Cost())
        self._client = client
        self._container = ""
        self._cpu = 0.0
        self._last = time.perf_counter()

    def watch(self, container: str) -> None:
        """Count the CPU time of a container, that since its start included."""
        self._container = container

    def book(self, step: str, *, last_sample: bool = False) -> None:
        """Book on a step. After the last sample the container may end, and no CPU time is counted any more."""
        wall = time.perf_counter() - self._last
        cpu = self._sample()
        self.costs[step] += Cost(wall, cpu - self._cpu)
        self._cpu = cpu
        if last_sample:
            self._container = ""
        self._last = time.perf_counter()  # the sample's own time is nobody's

    def _sample(self) -> float:
        if not self._container:
            return self._cpu
        stats = self._client.api.stats(self._container, stream=False, one_shot=True)
        return int(stats["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9
