"""A process in a running container, started through the engine: its input, its output, its end."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any, cast

from pytest_dataclaw.errors import SandboxError
from pytest_dataclaw.provision.engine import engine_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from docker import APIClient

_HEADER = struct.Struct(">BxxxL")
"""Before each piece of output: the stream it belongs to, and its length in bytes (Docker Engine API, attach)."""
_STDOUT = 1
_CHUNK_BYTES = 64 * 1024
_END_SECONDS = 5.0
"""How long a process may take to end after its output has."""


class ContainerProcess:
    """A process, started at once; `sink` is called with every piece of its standard output.

    SandboxError where the engine will not have it. Use `run` once, then `exit_code`, then `close`.
    """

    def __init__(
        self,
        api: APIClient,
        container_id: str,
        argv: Sequence[str],
        *,
        environment: Sequence[str] = (),
        stdin: bytes = b"",
        sink: Callable[[bytes], object] = lambda piece: None,
    ) -> None:
        self._api = api
        self._sink = sink
        self._unsent = memoryview(stdin)
        self._received = bytearray()
        self._left = 0
        """Bytes that are still to come of the present piece of output."""
        self._is_stdout = False
        with engine_errors("cannot start a command in the container"):
            created = api.exec_create(container_id, list(argv), stdin=True, environment=list(environment), workdir="/")
            self._id: str = created["Id"]
            self._stream = cast("Any", api.exec_start(self._id, socket=True))
        self._socket: socket.socket = self._stream._sock  # the SDK returns a reader, but we have to write as well
        self._socket.setblocking(False)
        self._finish_input()

    def run(self, seconds: float, *, until: Callable[[], bool]) -> bool:
        """Pass input and output on to the output's end, or until so; False where `seconds` were over first."""
        end = time.monotonic() + seconds
        poll = select.poll()
        while (left := end - time.monotonic()) > 0:
            poll.register(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))
            ready = dict(poll.poll(left * 1000)).get(self._socket.fileno(), 0)
            if ready & select.POLLOUT:
                self._send()
            if ready & ~select.POLLOUT and (not self._receive() or until()):
                return True
        return False

    def exit_code(self) -> int:
        """Return the exit code of a process whose output is at its end; 128 + n for signal n."""
        end = time.monotonic() + _END_SECONDS
        with engine_errors("cannot tell how a command in the container ended"):
            while (code := self._api.exec_inspect(self._id)["ExitCode"]) is None:
                if time.monotonic() > end:
                    raise SandboxError("a command in the container closed its output, but does not end")
                time.sleep(0.01)
        return int(code)

    def close(self) -> None:
        """Give the connection up; the process, if it runs, goes on."""
        self._stream._response.close()
        self._stream.close()
        self._socket.close()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent[:_CHUNK_BYTES]) :]
        except BrokenPipeError:  # the process ended, or does not care for its input
            self._unsent = self._unsent[:0]
            return
        self._finish_input()

    def _finish_input(self) -> None:
        if not self._unsent:
            self._socket.shutdown(socket.SHUT_WR)

    def _receive(self) -> bool:
        """Take in what has arrived; False at the end."""
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        self._received += chunk
        while self._received:
            if not self._left:
                if len(self._received) < _HEADER.size:
                    break
                stream, self._left = _HEADER.unpack_from(self._received)
                self._is_stdout = stream == _STDOUT
                del self._received[: _HEADER.size]
            piece = bytes(self._received[: self._left])
            del self._received[: self._left]
            self._left -= len(piece)
            if self._is_stdout and piece:
                self._sink(piece)
        return bool(chunk)
