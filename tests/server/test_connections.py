"""Connections of a real server: clients that are slow, rude, or want to speak something else."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server import call as calls
from omnigraph.server.connections import protocol, transport
from omnigraph.server.settings import (
    LINGER_BYTES,
    LINGER_SECONDS,
    LONGEST_LINGER,
    SEND_BYTES,
    SEND_SECONDS,
)
from tests.client.running import running
from tests.server.serving import EVERYONE, ROWS, SCHEMA, application

ASKED = json.dumps({"query": EVERYONE}).encode()
TYPE = b"content-type: application/json\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Where a server listens that nobody has a token for but ann and ben."""
    graph = og.init(tmp_path_factory.mktemp("served") / "film.omni", SCHEMA)
    graph.load(ROWS, mode="append")
    with running(application(graph, "default_deny")) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        yield host, int(port)


def request(path: str, *headers: bytes, method: str = "POST", token: bool = True) -> bytes:
    """The head of a request."""
    lines = [f"{method} {path} HTTP/1.1".encode(), b"host: x", *headers]
    if token:
        lines.append(b"authorization: Bearer token-of-ann")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def exchange(address: tuple[str, int], *pieces: bytes, wait: float = 5) -> list[tuple[int, Any]]:
    """The answers to some bytes, to the end of the connection or of patience."""
    with socket.create_connection(address, timeout=wait) as connection:
        for piece in pieces:
            connection.sendall(piece)
        found = b""
        try:
            while piece := connection.recv(65_536):
                found += piece
        except TimeoutError:
            pass
    return list(answers(found))


def answers(data: bytes) -> Iterator[tuple[int, Any]]:
    """The statuses and the bodies that are in what was sent."""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        named = [line.partition(b": ") for line in head.lower().split(b"\r\n")]
        length = next(int(value) for name, _, value in named if name == b"content-length")
        yield int(head.split()[1]), json.loads(rest[:length])
        data = rest[length:]


QUERY = "/graphs/film/query"
LOAD = "/graphs/film/load/ndjson"
OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk"


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_offer_to_speak_something_else_is_declined(
    address: tuple[str, int], split: bool, chunked: bool
) -> None:
    length = b"content-length: %d" % len(ASKED)
    framing = b"transfer-encoding: chunked" if chunked else length
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(ASKED), ASKED) if chunked else ASKED
    head = request(QUERY, TYPE.strip(), framing, OFFER)
    looks = request("/graphs/film/branches", OFFER, method="GET")
    last = request("/graphs/film/branches", b"connection: close", method="GET")
    whole = [head, body, head, body, looks, looks, last]
    if not split:
        whole = [b"".join(whole)]
    found = exchange(address, *whole)
    assert [status for status, _ in found] == [200] * 5
    assert [body["row_count"] for _, body in found[:2]] == [2, 2]
    assert [body["branches"] for _, body in found[2:]] == [["main"]] * 3


@pytest.mark.parametrize(
    ("head", "size", "status"),
    [
        (request(LOAD, b"content-length: 8000000", token=False), 8_000_000, 401),
        (request(LOAD, b"content-length: 8000000"), 8_000_000, 403),
        (request(QUERY, TYPE.strip(), b"content-length: 8000000"), 8_000_000, 413),
        (request("/nothing", b"content-length: 8000000"), 8_000_000, 404),
    ],
)
def test_whoever_is_refused_early_is_told_once(
    address: tuple[str, int], head: bytes, size: int, status: int
) -> None:
    """All of the body is sent before the answer is read, as simple clients do."""
    body = b"x" * 1_000_000
    [(found, told)] = exchange(address, head, *[body] * (size // len(body)))
    assert (found, set(told) >= {"error", "code"}) == (status, True)


def test_what_is_behind_a_body_is_dropped_and_bounded(address: tuple[str, int]) -> None:
    head = request(QUERY, TYPE.strip(), b"transfer-encoding: chunked", token=False)
    body = b"%x\r\n%s\r\n0\r\n" % (len(ASKED), ASKED)
    sneaked = b"authorization: Bearer token-of-ann\r\nconnection: close\r\n\r\n"
    assert [status for status, _ in exchange(address, head, body + sneaked, wait=1)] == [401]
    allowed = request(QUERY, TYPE.strip(), b"transfer-encoding: chunked")
    endless = exchange(address, allowed, body, *[b"x: " + b"y" * 100_000] * 10)
    assert [status for status, _ in endless] == [431]
    garbage = exchange(address, allowed, b"nothing\r\n")
    assert [status for status, _ in garbage] == [400]


def test_a_body_that_drips_is_given_up(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "BODY_SECONDS", 0.6)
    head = request(QUERY, TYPE.strip(), b"content-length: 1000")
    with socket.create_connection(address, timeout=0.2) as connection:
        connection.sendall(head)
        found = b""
        for _ in range(200):
            connection.sendall(b" ")
            try:
                found += connection.recv(65_536)
                break
            except TimeoutError:
                pass
    [(status, told)] = answers(found)
    assert (status, "too slowly" in told["error"]) == (408, True)


class Pipe:
    """A transport that remembers, and a loop whose clock is turned by hand."""

    def __init__(self) -> None:
        self.waiting = 0
        self.did: list[str] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.now = 0.0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.did.append(name)

    def is_closing(self) -> bool:
        return "close" in self.did

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, action: Callable[[], None]) -> Any:
        timer = (self.now + seconds, action)
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: self.timers.remove(timer))

    def go_on(self, seconds: float) -> None:
        self.now += seconds
        for timer in [one for one in self.timers if one[0] <= self.now]:
            self.timers.remove(timer)
            timer[1]()


def patient(pipe: Pipe, *, heard: bool = True) -> transport.PatientTransport:
    anything: Any = pipe
    return transport.PatientTransport(anything, anything, lambda: heard)


def test_a_client_that_takes_nothing_is_left() -> None:
    pipe = Pipe()
    found = patient(pipe)
    pipe.waiting = 1_000_000
    found.watch()
    for _ in range(3):
        pipe.waiting -= SEND_BYTES
        pipe.go_on(SEND_SECONDS)
    assert pipe.did == []
    found.close()
    pipe.waiting -= 10
    pipe.go_on(SEND_SECONDS)
    assert pipe.did == ["close", "abort"]
    # What was taken and made up for is not nothing.
    other = Pipe()
    found = patient(other)
    other.waiting = 100_000
    found.watch()
    found.moved()
    other.go_on(SEND_SECONDS)
    assert other.did == []
    found.lost()
    assert other.timers == []


def test_a_client_that_still_sends_is_heard_out_for_a_while() -> None:
    pipe = Pipe()
    found = patient(pipe, heard=False)
    found.close()
    found.close()
    found.write(b"nobody reads it")
    assert (pipe.did, found.is_closing()) == (["write_eof", "resume_reading"], True)
    while pipe.now < LONGEST_LINGER - 1:
        found.drop(b"x")
        pipe.go_on(LINGER_SECONDS / 2)
    assert "abort" not in pipe.did
    pipe.go_on(1)
    found.drop(b"x")
    assert pipe.did[-1] == "abort"
    other = Pipe()
    found = patient(other, heard=False)
    found.close()
    found.drop(b"x" * (LINGER_BYTES + 1))
    assert other.did[-1] == "abort"
    last = Pipe()
    patient(last, heard=False).close()
    last.go_on(LINGER_SECONDS)
    assert last.did[-1] == "close"


def test_a_head_that_does_not_come_is_not_waited_for(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.2)
    found = exchange(address, b"GET /healthz HTTP/1.1\r\nx: ")
    assert [status for status, _ in found] == [408]


@pytest.mark.slow
def test_an_answer_that_nobody_takes_goes_with_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "SEND_SECONDS", 0.2)
    lost = threading.Event()
    monkeypatch.setattr(transport.PatientTransport, "lost", lambda _: lost.set())
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    rows = [{"type": "Film", "data": {"title": f"{'x' * 20_000}{n}"}} for n in range(200)]
    graph.load(rows, mode="append")
    app = application(graph)
    body = b'{"query": "query all() { match { $f: Film } return { $f.title as t } }"}'
    heads = (
        request(QUERY, TYPE.strip(), b"content-length: %d" % len(body)) + body,
        request("/graphs/film/export", TYPE.strip(), b"content-length: 2") + b"{}",
    )
    with running(app, send_buffer=8_192) as url:
        host, _, port = url.removeprefix("http://").rpartition(":")
        for head in heads:
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                connection.settimeout(20)
                connection.connect((host, int(port)))
                connection.sendall(head)
                assert lost.wait(20)
                lost.clear()
        while app.slots.is_exported("film"):
            time.sleep(0.02)
