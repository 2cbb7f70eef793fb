"""A script in a running container that says itself when it is done, and with what exit code."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from pytest_dataclaw.provision.container_process import ContainerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from docker import APIClient


class ContainerScript:
    """A script of `inside`, started at once. `sink` gets its output without the trailer, the last of it at `close`.

    SandboxError where the engine will not have it. Use `run`, then `exit_code` if that returned True, then `close`.
    """

    def __init__(
        self,
        api: APIClient,
        container_id: str,
        script: str,
        *arguments: str,
        environment: Sequence[str] = (),
        stdin: bytes = b"",
        sink: Callable[[bytes], object] = lambda piece: None,
    ) -> None:
        self._trailer = Trailer(sink)
        argv = ["bash", "-c", script, "bash", self._trailer.mark, *arguments]
        self._process = ContainerProcess(
            api, container_id, argv, environment=environment, stdin=stdin, sink=self._trailer.feed
        )

    def run(self, seconds: float) -> bool:
        """Pass input and output on until the script is done or has been killed; False if time was up first."""
        return self._process.run(seconds, until=lambda: self._trailer.exit_code is not None)

    def exit_code(self) -> int:
        """Return the exit code; 128 + n for signal n."""
        told = self._trailer.exit_code
        return told if told is not None else self._process.exit_code()

    def close(self) -> None:
        """Take no more output; what is left of the script goes on."""
        self._trailer.flush()
        self._process.close()


class Trailer:
    """Passes a script's output on, but for its end, from which it reads the exit code.

    The output itself may stay open: a background child holds it, and the engine waits seconds for that, with the ends
    of later commands too. One write to a pipe is atomic, so all that was printed before has come, and nothing is mixed
    in.
    """

    def __init__(self, sink: Callable[[bytes], object]) -> None:
        self.mark = secrets.token_hex(8)
        self.exit_code: int | None = None
        self._sink = sink
        self._pattern = re.compile(rb"%b:(\d+);" % self.mark.encode())
        self._longest = len(f"{self.mark}:255;")
        self._held = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece of output; what follows the trailer is dropped."""
        if self.exit_code is not None:
            return
        self._held += piece
        found = self._pattern.search(self._held)
        if found is not None:
            self.exit_code = int(found[1])
            del self._held[found.start() :]
            self.flush()
        else:
            self._pass_on(len(self._held) - self._longest)

    def flush(self) -> None:
        """Pass on what was held back as it might have been the beginning of the trailer."""
        self._pass_on(len(self._held))

    def _pass_on(self, length: int) -> None:
        if length > 0:
            self._sink(bytes(self._held[:length]))
            del self._held[:length]
