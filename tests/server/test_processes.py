"""Real servers: how they begin and end, what they stand, and several processes over one graph."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest

import omnigraph as og
from tests.server.processes import PROGRAM, Running, running
from tests.server.serving import ADD, EVERYONE, QUERIES, ROWS, SCHEMA

pytestmark = [pytest.mark.slow]

COUNT = "query count() { match { $p: Person } return { count($p) as people } }"


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served") / "film.omni"
    og.init(found, SCHEMA).load(ROWS, mode="append")
    return found


@pytest.fixture(scope="module")
def server(location: Path) -> Iterator[Running]:
    """One process, with short patience for clients that are slow."""
    with running(location) as found:
        yield found


def exchange(server: Running, *pieces: bytes, wait: float = 10) -> bytes:
    """What comes back for some bytes, to the end of the connection."""
    with socket.create_connection(server.address, timeout=wait) as connection:
        for piece in pieces:
            connection.sendall(piece)
        found = b""
        try:
            while piece := connection.recv(65_536):
                found += piece
        except TimeoutError:
            pass
        return found


def test_a_server_that_would_let_anybody_in_does_not_start(location: Path) -> None:
    arguments = [str(PROGRAM), str(location), "--bind", "127.0.0.1:0"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OMNIGRAPH_SERVER")}
    found = subprocess.run(
        arguments, env=clean, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 1
    assert found.stdout == ""
    assert "--unauthenticated" in found.stderr


def test_what_is_no_request_is_answered_all_the_same(server: Running) -> None:
    garbage = exchange(server, b"\x16\x03\x01\x00\xa5 nothing\r\n\r\n")
    assert garbage.startswith(b"HTTP/1.1 400")
    assert json.loads(garbage.partition(b"\r\n\r\n")[2])["code"] == "bad_request"
    headers = b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(100))
    large = exchange(server, b"GET /healthz HTTP/1.1\r\nhost: x\r\n", headers, b"\r\n")
    assert large.startswith(b"HTTP/1.1 431")
    raw = exchange(
        server, b"GET /graphs/film/../x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    assert raw.startswith(b"HTTP/1.1 404")


def test_a_slow_client_keeps_nobody_waiting(server: Running) -> None:
    slow = [socket.create_connection(server.address) for _ in range(50)]
    for connection in slow:
        connection.sendall(b"POST /graphs/film/query HTTP/1.1\r\nhost: x\r\n")
    with server.client() as client:
        assert client.post("/query", json={"query": EVERYONE}).status_code == 200
    for connection in slow:
        connection.close()


def test_a_thousand_idle_connections_cost_nobody_anything(server: Running) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4_000:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4_000), hard))
    idle = [socket.create_connection(server.address) for _ in range(1_000)]
    try:
        with server.client() as client:
            for _ in range(5):
                assert client.post("/query", json={"query": EVERYONE}).status_code == 200
    finally:
        for connection in idle:
            connection.close()


def test_a_client_that_leaves_takes_its_stream_along(server: Running) -> None:
    with server.client() as client:
        for _ in range(12):
            # More than there is room for, each left after its first piece.
            with client.stream("POST", "/export", json={}) as answer:
                assert answer.status_code in (200, 413)
                next(answer.iter_raw(1), b"")
        deadline = time.monotonic() + 20
        while client.post("/export", json={}).status_code != 200:
            assert time.monotonic() < deadline


def test_the_log_says_who_did_what_and_no_secret(location: Path) -> None:
    tokens = json.dumps({"ann": "very-secret"})
    with running(location, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=tokens) as server:
        with server.client() as client:
            client.headers["Authorization"] = "Bearer very-secret"
            assert client.post("/query?secret=1", json={"query": EVERYONE}).status_code == 200
            # There is no policy: whoever has a token may look, and no more.
            denied = client.post("/mutate", json={"query": ADD, "params": {"name": "Zoe"}})
            assert denied.status_code == 403
            client.headers["Authorization"] = "Bearer other-secret"
            assert client.get("/schema").status_code == 401
        assert server.stop() == 0
        log = server.log.read_text()
    assert all(line.startswith("{") for line in log.splitlines()), log
    entries = [json.loads(line) for line in log.splitlines()]
    [asked] = [entry for entry in entries if entry.get("operation") == "query"]
    assert (asked["actor"], asked["graph"], asked["status"]) == ("ann", "film", 200)
    assert asked["commit"] == og.open(location, read_only=True).snapshot().commit_id
    assert "secret" not in log


def test_a_policy_file_decides(location: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        """\
version: 1
groups: { readers: [ann], writers: [ben] }
rules:
  - id: look
    allow: { actors: { group: readers }, actions: [read] }
  - id: ask
    allow: { actors: { group: readers }, actions: [invoke_query], queries: [person] }
  - id: write
    allow: { actors: { group: writers }, actions: [read, change] }
"""
    )
    queries = tmp_path / "stored.gq"
    queries.write_text(QUERIES)
    tokens = json.dumps({"ann": "token-of-ann", "ben": "token-of-ben"})
    more = ("--policy", str(policy), "--queries", str(queries))
    with (
        running(location, *more, OMNIGRAPH_SERVER_BEARER_TOKENS_JSON=tokens) as server,
        server.client() as client,
    ):
        ann, ben = ({"Authorization": f"Bearer token-of-{name}"} for name in ("ann", "ben"))
        grow = {"query": 'query grow() { update Person set { age: 7 } where name = "Ann" }'}
        assert client.post("/query", json={"query": EVERYONE}, headers=ann).status_code == 200
        denied = client.post("/mutate", json=grow, headers=ann)
        assert denied.json()["error"] == (
            "policy denied action 'change' on branch 'main' for actor 'ann'"
        )
        assert client.post("/mutate", json=grow, headers=ben).json()["actor_id"] == "ben"
        named = {"params": {"name": "Ann"}}
        assert client.post("/queries/person", json=named, headers=ann).status_code == 200
        for query, who in (("grow", ann), ("person", ben), ("nothing", ann)):
            unknown = client.post(f"/queries/{query}", json=named, headers=who)
            assert unknown.json() == {"error": "stored query not found", "code": "not_found"}


def test_a_server_ends_what_it_has_begun(location: Path) -> None:
    with running(location) as server, server.client() as client, ThreadPoolExecutor(1) as pool:
        cursor = client.get("/changes").json()["cursor"]
        following = pool.submit(client.get, "/changes", params={"cursor": cursor, "wait": 30})
        time.sleep(0.5)
        assert server.stop() == 0
        # Whoever waits for changes is told that there are none yet.
        assert following.result().json()["caught_up"]
        with pytest.raises(httpx.HTTPError):
            client.get("/schema")


def test_several_processes_count_as_one_while_they_die(tmp_path: Path) -> None:
    """Eight clients, four processes, conflicting increments, and one process killed under them."""
    schema = "node Counter {\n    name: String @key\n    value: I64\n}\n"
    location = tmp_path / "film.omni"
    graph = og.init(location, schema)
    graph.load('{"type": "Counter", "data": {"name": "c", "value": 0}}', mode="append")
    read = 'query now() { match { $c: Counter { name: "c" } } return { $c.value as value } }'
    write = 'query put($v: I64) { update Counter set { value: $v } where name = "c" }'
    each, done = 6, [0] * 8

    def count(number: int, url: str) -> None:
        with httpx.Client(base_url=f"{url}/graphs/film", timeout=60) as client:
            while done[number] < each:
                look = client.build_request("POST", "/query", json={"query": read})
                seen = _answered(client, look).json()
                commit, value = seen["graph_commit_id"], seen["rows"][0]["value"]
                asked = client.build_request(
                    "POST",
                    "/mutate/if-graph-commit",
                    json={"query": write, "params": {"v": value + 1}},
                    headers={
                        "Omnigraph-If-Graph-Commit": commit,
                        # Whether a process that is gone has done it, the key tells.
                        "Idempotency-Key": f"{number}-{done[number]}-{commit}",
                    },
                )
                answer = _answered(client, asked)
                assert answer.status_code in (200, 409, 412), answer.text
                done[number] += answer.status_code == 200

    with running(location, "--workers", "4") as server:
        deadline = time.monotonic() + 120
        while len(server.children()) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        threads = [
            threading.Thread(target=count, args=(number, server.url)) for number in range(len(done))
        ]
        for thread in threads:
            thread.start()
        while sum(done) < len(done):
            time.sleep(0.05)
        os.kill(server.children()[0], signal.SIGKILL)
        for thread in threads:
            thread.join(240)
        assert server.stop() == 0
    assert done == [each] * len(done)
    value = og.open(location, read_only=True).query(read).rows[0]["value"]
    assert value == each * len(done)
    assert og.open(location).verify().is_sound


def _answered(client: httpx.Client, asked: httpx.Request) -> httpx.Response:
    """The answer to a request, once there is somebody to give it."""
    while True:
        try:
            return client.send(asked)
        except httpx.HTTPError:
            time.sleep(0.05)
