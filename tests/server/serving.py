"""Serving a small graph in this process: what the tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import omnigraph as og
from omnigraph.errors import PolicyDenied
from omnigraph.graph import Policy
from omnigraph.lang.source import Source
from omnigraph.server.app import Application
from omnigraph.server.served import (
    ServedGraph,
    ServedGraphs,
    State,
    denial,
)
from omnigraph.server.settings import Limits
from omnigraph.server.stored_queries import StoredQueries
from omnigraph.server.tokens import Tokens

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

node Film {
    title: String @key
    year: I32?
    poster: Blob?
}

edge Knows: Person -> Person

edge ActedIn: Person -> Film {
    role: String?
}
"""
ROWS = """\
{"type": "Person", "data": {"name": "Ann", "age": 40}}
{"type": "Person", "data": {"name": "Ben"}}
{"type": "Film", "data": {"title": "Heat", "year": 1995}}
{"edge": "Knows", "from": "Ann", "to": "Ben"}
{"edge": "ActedIn", "from": "Ann", "to": "Heat", "data": {"role": "Nora"}}
"""
QUERIES = """\
query person($name: String) @description("One person.") {
    match {
        $p: Person { name: $name }
    }
    return { $p.name, $p.age }
}

query grow($name: String) {
    update Person set { age: 41 } where name = $name
}
"""
EVERYONE = (
    "query everyone() { match { $p: Person } return { $p.name as name } order { $p.name asc } }"
)
ADD = "query add($name: String) { insert Person { name: $name } }"
TOKENS = {"ann": "token-of-ann", "ben": "token-of-ben"}


class OneMayWrite:
    """A policy: ann does everything, ben reads branches that are not main."""

    def authorize(self, actor: str, action: str, branch: str | None, target: str | None) -> None:
        """Decide."""
        allowed = actor == "ann" or (action == "read" and branch not in (None, "main"))
        if not allowed:
            raise PolicyDenied(denial(actor, action, branch, target))


@dataclass(frozen=True)
class Served:
    """A server, its graph and a client."""

    app: Application
    graph: og.Graph
    client: TestClient

    def post(self, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """A POST below the graph."""
        return self.client.post(f"/graphs/film{path}", json=body or {}, **more)

    def get(self, path: str, **more: Any) -> Any:
        """A GET below the graph."""
        return self.client.get(f"/graphs/film{path}", **more)


def bearer(actor: str) -> dict[str, str]:
    """The header of an actor."""
    return {"Authorization": f"Bearer {TOKENS[actor]}"}


def application(
    graph: og.Graph,
    state: State = "open",
    limits: Limits | None = None,
    policy: Policy | None = None,
) -> Application:
    """A server over a graph; where a policy decides, it is one that is easy to foresee."""
    queries = StoredQueries.of(iter([Source(QUERIES, "stored.gq")]))
    queries.check(graph.catalog)
    may_list = OneMayWrite() if state == "policy_enabled" else None
    policy = policy or may_list
    tokens = Tokens() if state == "open" else Tokens.of(list(TOKENS.items()))
    graphs = ServedGraphs(
        {"film": ServedGraph("film", graph, policy, queries)},
        quarantined={"broken": "there is no graph there"},
        server_policy=may_list,
        has_policies=state == "policy_enabled",
    )
    return Application(graphs, state, tokens, limits)


@contextmanager
def serving(
    location: Path,
    state: State = "open",
    limits: Limits | None = None,
    policy: Policy | None = None,
) -> Iterator[Served]:
    """A server over a new graph, for as long as it is used."""
    graph = og.init(location, SCHEMA)
    graph.load(ROWS, mode="append")
    app = application(graph, state, limits, policy)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Served(app, graph, client)
