"""A small OpenAI-compatible server on loopback that plays a script, one entry a request, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.run import ModelEndpoint

if TYPE_CHECKING:
    from types import TracebackType

TOKEN = "lease-token-5f3a"


@dataclass(frozen=True)
class Answer:
    """What one request gets. `hang` waits for the client to give up; `drip` sends blanks without end before it."""

    status: int = 200
    body: bytes = b""
    hang: bool = False
    drip: bool = False


def says(text: str | None, finish_reason: str = "stop", **message: Any) -> Answer:
    """A reply of the model."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    completion = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    return Answer(body=json.dumps(completion).encode())


def calls(*arguments: Any, name: str = "exec", text: str | None = None, first: int = 1) -> Answer:
    """A reply with one tool call for each of `arguments` (a string is sent as it is); ids are `call_1`, ..."""
    tool_calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, given in enumerate(arguments, start=first)
    ]
    return says(text, "tool_calls", tool_calls=tool_calls)


def fails(status: int, message: str, code: str | None = None) -> Answer:
    """An error of the provider."""
    return Answer(status, json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode())


@dataclass
class FakeChatServer:
    """Serve `script` in order; a request past its end is answered with status 500."""

    script: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __enter__(self) -> FakeChatServer:
        self._over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> ModelEndpoint:
        """Where the server listens, and the token that it expects."""
        return ModelEndpoint(f"http://127.0.0.1:{self._server.server_port}/v1", TOKEN, "model-x")

    def next_answer(self, request: dict[str, Any], headers: dict[str, str]) -> Answer:
        """Keep a request and return what it gets."""
        self.requests.append(request)
        self.headers.append(headers)
        number = len(self.requests)
        return (
            self.script[number - 1] if number <= len(self.script) else fails(500, f"no answer {number} in the script")
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                answer = fake.next_answer(
                    json.loads(self.rfile.read(length)), {k.lower(): v for k, v in self.headers.items()}
                )
                if answer.hang:
                    fake._over.wait(30)
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(10**9 if answer.drip else len(answer.body)))
                self.end_headers()
                if answer.drip:
                    self._drip()
                self.wfile.write(answer.body)

            def _drip(self) -> None:
                self.close_connection = True
                while not fake._over.wait(0.05):
                    self.wfile.write(b" ")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
                pass

        return Handler
