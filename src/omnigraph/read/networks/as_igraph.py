"""A network as igraph has it: a directed graph of numbered vertices.

Owns the attributes of vertices and edges, which are columns there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from omnigraph.read.networks.choice import library
from omnigraph.read.networks.network import Edges, Network, Nodes, Places, listed


def require_igraph() -> Any:
    """The library."""
    return library("igraph", "igraph")


def to_igraph(network: Network) -> Any:
    """A directed `Graph`; `@type` and `@id` of a vertex say which node it is."""
    graph = require_igraph().Graph(n=network.count, edges=pairs_of(network).tolist(), directed=True)
    graph["commit"] = network.commit_id
    for name, values in attributes_of(network.nodes).items():
        graph.vs[name] = values
    for name, values in attributes_of(network.edges).items():
        graph.es[name] = values
    return graph


def pairs_of(network: Network) -> Places:
    """The two ends of every edge, a row for each, nodes numbered through."""
    parts = [np.stack(network.ends(edges), axis=1) for edges in network.edges]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])


def attributes_of(parts: Sequence[Nodes | Edges]) -> dict[str, list[Any]]:
    """Every attribute of all, one type after the other; None where a type has no such property."""
    names = dict.fromkeys(name for part in parts for name in part.columns.column_names)
    found: dict[str, list[Any]] = {"@type": [], "@id": [], **{name: [] for name in names}}
    for part in parts:
        found["@type"] += [part.type.name] * len(part)
        found["@id"] += listed(part.ids)
        has = set(part.columns.column_names)
        for name in names:
            found[name] += listed(part.columns.column(name)) if name in has else [None] * len(part)
    return found
