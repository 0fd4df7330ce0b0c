"""A real HTTP server on loopback that speaks `/v1/chat/completions`, and fails as it is told."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Answer = Callable[["Handler"], None]
AT_ONCE = {"Retry-After": "0.01"}  # the client's own waits are half a second and more


@dataclass
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class ChatServer:
    """Gives its answers in order, and keeps what it was asked."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    stopped: Event = field(default_factory=Event)


@contextmanager
def serving() -> Iterator[ChatServer]:
    """Serve on a free port inside the `with`."""
    chat = ChatServer()
    handler = type("ThisHandler", (Handler,), {"chat": chat})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        chat.url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield chat
        finally:
            chat.stopped.set()
            http.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Takes one request, and gives the next answer."""

    protocol_version = "HTTP/1.1"
    chat: ChatServer

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = json.loads(self.rfile.read(length))
        self.chat.asked.append(Asked(self.path, self.headers, body))
        self.close_connection = True
        with suppress(ConnectionError):  # whoever asked may leave
            self.chat.answers[len(self.chat.asked) - 1](self)

    def begin(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def completion(
    text: str | None = None, *, calls: list[Any] | None = None, finish: str = "stop", **message: Any
) -> dict[str, Any]:
    """Return a whole completion, as OpenAI's server writes it."""
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": []} | message
    if calls:
        message["tool_calls"] = calls
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "small-2026-01-01",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 19,
            "completion_tokens": 10,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
    }


def call(id: str | None, name: str, arguments: object, **more: object) -> dict[str, Any]:
    """Return a call of a tool, as a server writes it."""
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function} | more


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk of a stream; no delta makes the last one, with the usage."""
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion.chunk",
        "created": 1694268190,
        "model": "small-2026-01-01",
        "choices": [] if delta is None else choices,
        **more,
    }


USAGE = chunk(None, usage={"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29})


def whole(
    body: object, *, status: int = 200, kind: str = "application/json", **headers: str
) -> Answer:
    """Answer with JSON, or with bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: Handler) -> None:
        handler.begin(status, kind, {"Content-Length": str(len(data)), **headers})
        handler.wfile.write(data)

    return answer


def failing(status: int, message: str = "it went wrong", **headers: str) -> Answer:
    """Answer with an error, as OpenAI's server writes it."""
    error = {"message": message, "type": "an_error", "param": None, "code": None}
    return whole({"error": error}, status=status, **headers)


def streamed(*chunks: dict[str, Any] | str, done: bool = True) -> Answer:
    """Answer piece by piece, as server-sent events; the connection is closed at the end."""

    def answer(handler: Handler) -> None:
        handler.begin(200, "text/event-stream; charset=utf-8", {})
        for one in (*chunks, *(["[DONE]"] if done else [])):
            text = one if isinstance(one, str) else json.dumps(one)
            handler.wfile.write(f"data: {text}\n\n".encode())
            handler.wfile.flush()

    return answer


def cut(body: object, *, kind: str = "application/json") -> Answer:
    """Promise more bytes than are sent, and close the connection."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler: Handler) -> None:
        handler.begin(200, kind, {"Content-Length": str(len(data) + 100)})
        handler.wfile.write(data)

    return answer


def silent(handler: Handler) -> None:
    """Answer nothing, and stay."""
    handler.chat.stopped.wait()


def trickling(head: bytes, *, kind: str = "application/json") -> Answer:
    """Answer byte by byte, without an end."""

    def answer(handler: Handler) -> None:
        handler.begin(200, kind, {})
        handler.wfile.write(head)
        while not handler.chat.stopped.is_set():
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)

    return answer


def flooding(status: int) -> Answer:
    """Answer with more and more bytes, without an end."""

    def answer(handler: Handler) -> None:
        handler.begin(status, "application/json", {})
        while not handler.chat.stopped.is_set():
            handler.wfile.write(b"x" * 1_000_000)

    return answer


def trickling_head(handler: Handler) -> None:
    """Answer header after header, without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.chat.stopped.is_set():
        handler.wfile.write(b"X")
        handler.wfile.flush()
        time.sleep(0.02)
