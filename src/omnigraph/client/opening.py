"""Opening: a graph in storage or one on a server, by what its location is.

Owns that choice, the token of a server that nobody has given, and listing what a server has.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from omnigraph import graph as engine
from omnigraph.client.address import ServerAddress, is_server_url
from omnigraph.client.connection import Ask, Connection
from omnigraph.errors import BadRequest
from omnigraph.graph.guard import guarded
from omnigraph.wire.serving import GraphsBody

if TYPE_CHECKING:
    from omnigraph.client.graph import ServedGraph

TOKEN = "OMNIGRAPH_BEARER_TOKEN"  # noqa: S105 - the name of a variable


@overload
def open(  # noqa: A001 - the word everybody expects: `omnigraph.open`
    location: str | Path, *, read_only: bool = False, actor: str | None = None
) -> engine.Graph: ...


@overload
def open(  # noqa: A001 - as above
    location: str, *, graph: str, token: str | None = None, timeout: float | None = None
) -> ServedGraph: ...


@guarded
def open(  # noqa: A001 - as above
    location: str | Path,
    *,
    read_only: bool = False,
    actor: str | None = None,
    graph: str | None = None,
    token: str | None = None,
    timeout: float | None = None,
) -> Any:
    """Open a graph; read-only writes nothing and repairs nothing.

    A location that begins with `http://` or `https://` is a server, ``graph`` one of its graphs
    and ``token`` who you are; ``timeout`` is in seconds, for each answer. Nothing is asked before
    something is wanted of the graph.

    >>> with og.open("film.omni", read_only=True) as graph:
    ...     graph.branches.list()
    ['draft', 'main']
    """
    if not is_server_url(location):
        if (graph, token, timeout) != (None, None, None):
            raise BadRequest(
                f"{location} is no server: graph=, token= and timeout= belong to http(s)://…"
            )
        return engine.open(location, read_only=read_only, actor=actor)
    if read_only or actor is not None:
        raise BadRequest(
            "on a server the token decides who acts, and what may be done: leave read_only= and "
            "actor= out"
        )
    address = ServerAddress.parse(str(location), graph)
    if address.graph is None:
        raise BadRequest(f"{address.base} is a server: which graph? give graph=, or …/graphs/ID")
    return served(address, token, timeout)


def served(
    address: ServerAddress, token: str | None = None, timeout: float | None = None
) -> ServedGraph:
    """A graph at an address; without a token that of the environment."""
    from omnigraph.client.graph import ServedGraph

    return ServedGraph(Connection(address, token or token_of_environment(), timeout))


def list_graphs(
    address: ServerAddress, token: str | None = None, timeout: float | None = None
) -> GraphsBody:
    """The graphs of a server, for those who may list them."""
    server = ServerAddress(address.base)
    connection = Connection(server, token or token_of_environment(), timeout)
    return connection.json(Ask(method="GET", parts=("graphs",)), GraphsBody)


def token_of_environment() -> str | None:
    """The token for any server, if the environment has one."""
    return os.environ.get(TOKEN, "").strip() or None
