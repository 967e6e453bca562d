"""A network as networkx has it: a directed graph with parallel edges.

Owns what nodes and edges are called there, and their attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import repeat
from typing import Any

from omnigraph.read.networks.choice import library
from omnigraph.read.networks.network import Edges, Network, Nodes, listed


def require_networkx() -> Any:
    """The library."""
    return library("networkx", "networkx")


def to_networkx(network: Network) -> Any:
    """A `MultiDiGraph`: a node's key is its id, beside its type where there are several types."""
    graph = require_networkx().MultiDiGraph(commit=network.commit_id)
    is_one = len(network.nodes) == 1
    keys: dict[str, list[Hashable]] = {}
    for nodes in network.nodes:
        name = nodes.type.name
        ids = listed(nodes.ids)
        keys[name] = ids if is_one else [(name, id_) for id_ in ids]
        graph.add_nodes_from(zip(keys[name], _attributes(nodes), strict=True))
    for edges in network.edges:
        starts, stops = keys[edges.source], keys[edges.target]
        graph.add_edges_from(
            zip(
                map(starts.__getitem__, edges.sources.tolist()),
                map(stops.__getitem__, edges.targets.tolist()),
                listed(edges.ids),
                _attributes(edges),
                strict=True,
            )
        )
    return graph


def _attributes(part: Nodes | Edges) -> Iterator[dict[str, Any]]:
    """What is told of each; `@id` and `@type` are no names of properties."""
    columns = [listed(part.columns.column(name)) for name in part.columns.column_names]
    names = ("@type", "@id", *part.columns.column_names)
    for row in zip(repeat(part.type.name, len(part)), listed(part.ids), *columns, strict=True):
        yield dict(zip(names, row, strict=True))
