"""A server of this process on a free port, in a thread: what the tests of the client share."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

import omnigraph as og
from omnigraph.lang.source import Source
from omnigraph.server.app import Application
from omnigraph.server.connections.protocol import GuardedProtocol
from omnigraph.server.served import DefaultDeny, ServedGraph, ServedGraphs
from omnigraph.server.stored_queries import StoredQueries
from omnigraph.server.tokens import Tokens

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    born: Date?
    photo: Blob?
    @range(age, 0..150)
}

node Film {
    title: String @key
    year: I32?
}

edge ActedIn: Person -> Film {
    role: String?
}
"""
ROWS = """\
{"type": "Person", "data": {"name": "Ann", "age": 40, "photo": "base64:aGVsbG8="}}
{"type": "Person", "data": {"name": "Ben", "born": "1980-05-17"}}
{"type": "Film", "data": {"title": "Heat", "year": 1995}}
{"edge": "ActedIn", "from": "Ann", "to": "Heat", "data": {"id": "e1", "role": "Nora"}}
"""
STORED = """\
query person($name: String) {
    match { $p: Person { name: $name } }
    return { $p.name as name, $p.age as age }
}

query grow($name: String) {
    update Person set { age: 41 } where name = $name
}
"""
TOKENS: Mapping[str, str] = {"ann": "token-of-ann", "ben": "token-of-ben"}


class Everyone:
    """A policy that allows everything, to whoever has a token."""

    def authorize(self, actor: str, action: str, branch: str | None, target: str | None) -> None:
        """Allow it."""


def application(graph: og.Graph, *, secured: bool = False) -> Application:
    """A server over one graph, `film`: open to everybody, or to two tokens."""
    queries = StoredQueries.of(iter([Source(STORED, "stored.gq")]))
    queries.check(graph.catalog)
    policy: Any = Everyone() if secured else None
    served = ServedGraph("film", graph, policy, queries)
    graphs = ServedGraphs({"film": served}, server_policy=policy, has_policies=secured)
    tokens = Tokens.of(list(TOKENS.items())) if secured else Tokens()
    return Application(graphs, "policy_enabled" if secured else "open", tokens)


def denying(graph: og.Graph) -> Application:
    """A server whose callers may only look."""
    served = ServedGraph("film", graph, DefaultDeny())
    tokens = Tokens.of(list(TOKENS.items()))
    return Application(ServedGraphs({"film": served}), "default_deny", tokens)


@contextmanager
def running(app: Any, send_buffer: int | None = None) -> Iterator[str]:
    """The address of an application that answers on a free port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    options: Any = {"http": GuardedProtocol, "loop": "uvloop", "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, **options))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


def new_graph(location: Path) -> og.Graph:
    """A graph with some rows."""
    graph = og.init(location, SCHEMA)
    graph.load(ROWS, mode="append")
    return graph
