"""An OpenAI-compatible server on loopback that gives scripted replies, so that litellm is exercised over real HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Says:
    """A completion with this text as the assistant's message."""

    text: str | None
    refusal: str | None = None
    finish: str = "stop"


@dataclass(frozen=True)
class Fails:
    """An HTTP error."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """These bytes as the body of a 200."""

    body: bytes


@dataclass(frozen=True)
class Embeds:
    """A vector for each text, of this many numbers, in the order of the texts or backwards. `first`: its first number.

    `refuses`: texts that hold this word make the call fail, as a text that is too long does.
    """

    dimension: int = 8
    first: float | None = None
    backwards: bool = False
    refuses: str | None = None


class Hangs:
    """No answer until the server stops."""


class BreaksOff:
    """The connection ends in the middle of the answer."""


Scripted = Says | Embeds | Fails | Raw | Hangs | BreaksOff


class ModelServer:
    """Gives the scripted replies one after the other, the last one for ever; keeps the requests.

    A script may also be a function from a request to its reply.
    """

    def __init__(self, script: Sequence[Scripted] | Callable[[dict[str, Any]], Scripted]) -> None:
        self.script = script if callable(script) else list(script)
        self.requests: list[dict[str, Any]] = []
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server._answer(self, json.loads(body))

            def log_message(self, format: str, *args: Any) -> None:
                """Keep the test's output clean."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @contextlib.contextmanager
    def running(self) -> Iterator[ModelServer]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            self._http.shutdown()
            thread.join()
            self._http.server_close()

    def _next(self, request: dict[str, Any]) -> Scripted:
        with self._turn:
            self.requests.append(request)
            if callable(self.script):
                return self.script(request)
            return self.script[min(len(self.requests), len(self.script)) - 1]

    def _answer(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        scripted = self._next(request)
        if isinstance(scripted, Hangs):
            self._stopped.wait()
        elif isinstance(scripted, BreaksOff):
            _break_off(handler)
        elif isinstance(scripted, Fails):
            body = json.dumps({"error": {"message": scripted.message, "type": "error", "code": None}}).encode()
            _send(handler, scripted.status, body, scripted.headers)
        elif isinstance(scripted, Raw):
            _send(handler, 200, scripted.body, {})
        elif isinstance(scripted, Embeds):
            _embed(handler, scripted, request)
        else:
            _send(handler, 200, json.dumps(completion(scripted, request["model"])).encode(), {})


def completion(says: Says, model: str) -> dict[str, Any]:
    """A chat completion as OpenAI lays it out."""
    message = {"role": "assistant", "content": says.text, "refusal": says.refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": says.finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _embed(handler: BaseHTTPRequestHandler, how: Embeds, request: Mapping[str, Any]) -> None:
    texts = request["input"]
    if how.refuses is not None and any(how.refuses in text for text in texts):
        _send(
            handler, 400, json.dumps({"error": {"message": "too long", "type": "invalid_request_error"}}).encode(), {}
        )
        return
    data = [{"object": "embedding", "index": at, "embedding": _vector(how, text)} for at, text in enumerate(texts)]
    listed = data[::-1] if how.backwards else data
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    body = {"object": "list", "model": request["model"], "data": listed, "usage": usage}
    _send(handler, 200, json.dumps(body).encode(), {})


def _vector(how: Embeds, text: str) -> list[float]:
    vector = [float(byte) for byte in hashlib.shake_128(text.encode()).digest(how.dimension)]
    return vector if how.first is None else [how.first, *vector[1:]]


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "chatcmpl-1", "choices": [{"mess')
    handler.close_connection = True
