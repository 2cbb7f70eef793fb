"""What the engine tells of containers as it happens: how they ended, and when memory ran out."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.engine import engine_errors

if TYPE_CHECKING:
    from docker import DockerClient

_OOM_WINDOW_NS = 5_000_000_000
"""How long before the end memory may have run out for the two to belong together: the agent's server may have been
killed first, and whoever ran it ended the container then."""


class Watch:
    """The fate of one container. `ended` and `removed` are set as that happens; both also when the stream is lost."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.removed = threading.Event()
        self.exit_code: int | None = None
        """None while it runs, and if the stream was lost before it ended."""
        self.was_killed = False
        """Whether somebody had the engine send it a signal: us, or somebody outside."""
        self.ended_at = 0
        """By the engine's clock, in nanoseconds since the epoch."""
        self._ooms: list[int] = []

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether a process of it was killed for want of memory right before it ended. Ask once `removed` is set."""
        return any(self.ended_at - oom < _OOM_WINDOW_NS for oom in self._ooms)

    def note(self, event: dict[str, Any]) -> None:
        """Take in an event of this container."""
        action = event["Action"]
        if action == "oom":
            self._ooms.append(event["timeNano"])
        elif action == "kill":
            self.was_killed = True
        elif action == "die":
            self.exit_code = int(event["Actor"]["Attributes"]["exitCode"])
            self.ended_at = event["timeNano"]
            self.ended.set()
        elif action == "destroy":
            self.ended.set()
            self.removed.set()


class EventStream:
    """Follows the containers that carry a label, in a thread of its own; open it before the first of them starts."""

    def __init__(self, client: DockerClient, label: str) -> None:
        self._watches: dict[str, Watch] = {}
        self._lock = threading.Lock()
        self._closing = False
        self._lost = False
        # The engine answers before it listens to itself: `since` lets it catch up on what happened in between.
        since = int(time.time()) - 1
        filters = {"type": "container", "label": label, "event": ["oom", "kill", "die", "destroy"]}
        with engine_errors("cannot follow the engine's events"):
            self._events = client.events(decode=True, since=since, filters=filters)
        self._thread = threading.Thread(target=self._follow, name="dataclaw-docker-events", daemon=True)
        self._thread.start()

    def watch(self, container_id: str) -> Watch:
        """Return the watch of a container that has not been started yet."""
        with self._lock:
            return self._watches.setdefault(container_id, Watch())

    def remaining(self) -> dict[str, Watch]:
        """Return the watches of the containers that have not been removed, by container id."""
        with self._lock:
            return dict(self._watches)

    def check(self) -> None:
        """Raise SandboxError if the engine has stopped telling."""
        if self._lost:
            raise SandboxError("the engine ended its stream of events: it was stopped, or the connection was lost")

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._closing = True
        self._events.close()
        self._thread.join(timeout=5)

    def _follow(self) -> None:
        for event in self._events:
            container_id = event["Actor"]["ID"]
            with self._lock:
                watch = self._watches.get(container_id)
            if watch is None:
                continue
            watch.note(event)
            if watch.removed.is_set():
                with self._lock:
                    del self._watches[container_id]
        if self._closing:
            return
        self._lost = True
        for watch in self.remaining().values():  # nobody must wait for what will not be told
            watch.ended.set()
            watch.removed.set()
