"""An OpenAI-compatible endpoint on loopback that answers from a list; for tests of what calls a model."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from pytest_dataclaw.model.run import ModelEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Response:
    """A raw HTTP response."""

    status: int
    body: str
    content_type: str = "application/json"


@dataclass
class FakeOpenAI:
    """The endpoint, what it still has to answer, and what it was asked."""

    endpoint: ModelEndpoint
    answers: list[Response]
    requests: list[dict[str, Any]] = field(default_factory=list)


def completion(content: str | None, **message: object) -> Response:
    """Return a chat completion with this content and a usage of 10 + 5 tokens."""
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": content, **message},
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return Response(200, json.dumps(body))


def failure(status: int, message: str) -> Response:
    """Return an error in the provider's form."""
    return Response(status, json.dumps({"error": {"message": message, "type": "invalid_request_error"}}))


@contextmanager
def serve(*answers: Response) -> Iterator[FakeOpenAI]:
    """Run an endpoint that gives `answers` in turn, and status 599 after the last."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            fake.requests.append(json.loads(self.rfile.read(length)))
            answer = fake.answers.pop(0) if fake.answers else failure(599, "no answer left")
            body = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint = ModelEndpoint(f"http://127.0.0.1:{server.server_port}/v1", "token-1", "judge-model")
    fake = FakeOpenAI(endpoint, list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
