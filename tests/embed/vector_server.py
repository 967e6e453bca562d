"""A server in this process that answers like the real providers, or as badly as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embed.local import MockEmbedder

KEY = "sk-very-secret-0123456789abcdef"


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        if "input" in self.body:
            return list(self.body["input"])
        return [self.body["content"]["parts"][0]["text"]]

    @property
    def dimension(self) -> int:
        return int(self.body.get("dimensions") or self.body["outputDimensionality"])


@dataclass(frozen=True)
class Answer:
    """What the server says; ``hangs`` says nothing until the test is over."""

    status: int = 200
    body: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False


Respond = Callable[[Asked], Answer | None]


def error(status: int, message: str, **headers: str) -> Answer:
    """An error in the words of OpenAI."""
    return Answer(status, json.dumps({"error": {"message": message}}), headers)


def vectors_of(texts: list[str], dimension: int, role: str = "") -> list[list[float]]:
    """What the server makes of texts; not of length 1, which is the client's business."""
    made = MockEmbedder().embed([f"{role}{text}" for text in texts], dimension)
    return [[3.0 * number for number in vector] for vector in made.tolist()]


def right(asked: Asked) -> Answer:
    """The answer of a provider that works."""
    if asked.path.endswith("/embeddings"):
        made = vectors_of(asked.texts, asked.dimension)
        data = [{"index": at, "embedding": vector} for at, vector in enumerate(made)]
        return Answer(body=json.dumps({"object": "list", "data": data, "usage": {}}))
    (vector,) = vectors_of(asked.texts, asked.dimension, asked.body["taskType"])
    return Answer(body=json.dumps({"embedding": {"values": vector}}))


class VectorServer:
    """Answers rightly, unless ``respond`` says something or answers are waiting in ``next``."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []
        self.next: list[Answer] = []
        self.respond: Respond = lambda _: None
        self.released = threading.Event()
        self._lock = threading.Lock()

    @property
    def texts(self) -> list[str]:
        return [text for asked in self.asked for text in asked.texts]

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            scripted = self.next.pop(0) if self.next else None
        found = scripted or self.respond(asked) or right(asked)
        if found.hangs:
            self.released.wait(30)
        return found


@contextmanager
def serving() -> Iterator[VectorServer]:
    """A server for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            found = server.answer(Asked(self.path, headers, json.loads(body)))
            if found.hangs:
                return
            content = found.body.encode() if isinstance(found.body, str) else found.body
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = VectorServer(http.server_port)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            http.shutdown()
            thread.join()
