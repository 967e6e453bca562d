"""Which types and properties of a graph another library gets.

Owns what names mean, and what is said of those that mean nothing. Reads no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, unknown_type
from omnigraph.lang.structural import DST, SRC
from omnigraph.lang.types import Scalar, ValueType


@dataclass(frozen=True, slots=True)
class Choice:
    """Node types and edge types by name, and the properties that are wanted; None for all."""

    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    properties: frozenset[str] | None

    def properties_of(self, type_: NodeType | EdgeType) -> list[str]:
        """Those of a type; a blob stays where it is."""
        return [
            name
            for name, property_ in type_.properties.items()
            if not property_.type.is_blob and (self.properties is None or name in self.properties)
        ]


def is_numeric(type_: ValueType) -> bool:
    """Whether values are numbers, or yes and no, or vectors."""
    return type_.is_vector or type_.is_numeric or (type_.is_plain and type_.scalar is Scalar.BOOL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Names of types and properties as they are given; everything without any."""

    types: Sequence[str] | None = None
    properties: Sequence[str] | None = None
    numbers_alone: bool = False
    """Whether all properties are those that are numbers."""

    def among(self, catalog: Catalog) -> Choice:
        """What the names mean.

        Named edges bring the nodes at their ends along; named nodes, where no edges are named,
        the edges between them.
        """
        nodes, edges = _types(catalog, _several(self.types))
        types: tuple[NodeType | EdgeType, ...] = (*nodes, *edges)
        every = [one for type_ in types for one in type_.properties.values()]
        if self.numbers_alone:
            return Choice(nodes, edges, frozenset(o.name for o in every if is_numeric(o.type)))
        if self.properties is None:
            return Choice(nodes, edges, None)
        wanted, known = frozenset(_several(self.properties) or ()), {one.name for one in every}
        for name in sorted(wanted - known):
            hint = did_you_mean(name, sorted(known)) or f"there are {', '.join(sorted(known))}"
            raise NotFound(f"no type here has a property {name}: {hint}")
        return Choice(nodes, edges, wanted)


def _several(names: Sequence[str] | None) -> Sequence[str] | None:
    return [names] if isinstance(names, str) else names


def _types(
    catalog: Catalog, types: Sequence[str] | None
) -> tuple[tuple[NodeType, ...], tuple[EdgeType, ...]]:
    nodes, edges = dict(catalog.nodes), dict(catalog.edges)
    if types is not None:
        nodes, edges = {}, {}
        for name in types:
            node, edge = catalog.named(name)
            if node is not None:
                nodes[node.name] = node
            elif edge is not None:
                edges[edge.name] = edge
                ends = (one for end in (SRC, DST) for one in catalog.nodes_at(edge, end))
                nodes |= {one.name: one for one in ends}
            else:
                raise unknown_type(name, (*catalog.nodes, *catalog.edges))
        edges = edges or {
            edge.name: edge
            for edge in catalog.edges.values()
            if all(_meets(catalog, edge, end, nodes) for end in (SRC, DST))
        }
    return (
        tuple(found for _, found in sorted(nodes.items())),
        tuple(found for _, found in sorted(edges.items())),
    )


def _meets(catalog: Catalog, edge: EdgeType, end: str, nodes: dict[str, NodeType]) -> bool:
    return any(one.name in nodes for one in catalog.nodes_at(edge, end))


def library(module: str, package: str) -> Any:
    """A library that is not one of ours; an error that says how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise BadRequest(
            f"{package} is not installed: install it (pip install {package})",
            details={"package": package},
        ) from None
