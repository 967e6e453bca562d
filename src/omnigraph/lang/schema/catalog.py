"""The catalog: an accepted schema as the rest of the system asks about it.

Owns the typed, read-only view with fast look-ups by name. Built from the IR,
so it knows stable ids. Never parses and never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from omnigraph.errors import NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.type_sets import (
    SEPARATOR,
    InterfaceType,
    TypeSet,
    edge_set,
    members_of,
    node_set,
)
from omnigraph.lang.structural import SRC
from omnigraph.lang.types import ValueType

EntityKind = Literal["node", "edge"]

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Embedding:
    """Where an `@embed` vector comes from."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyDef:
    """One property of a node or edge type.

    ``default`` is the decoded `@default`: text for String, enum, Date and DateTime
    (as written), a number or a bool otherwise; None without one.
    """

    name: str
    property_id: int
    type: ValueType
    default: Scalar | None = None
    embedding: Embedding | None = None
    description: str | None = None

    @property
    def is_required(self) -> bool:
        """Whether a row without it, and without a default or embedding, is refused."""
        return not self.type.nullable and self.default is None


@dataclass(frozen=True, slots=True)
class RangeRule:
    """`@range`: inclusive bounds, either side possibly open."""

    property: str
    minimum: int | float | None
    maximum: int | float | None


@dataclass(frozen=True, slots=True)
class CheckRule:
    """`@check`: a regular expression searched for in the text."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class NodeType:
    """One node type; ``key`` is ordered by stable property id, empty for unkeyed types."""

    name: str
    type_id: int
    incarnation: int
    properties: Mapping[str, PropertyDef]
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[RangeRule, ...] = ()
    checks: tuple[CheckRule, ...] = ()
    implements: tuple[str, ...] = ()
    merge_rows: bool = False
    description: str | None = None
    instruction: str | None = None

    @property
    def kind(self) -> EntityKind:
        """Always "node"."""
        return "node"


@dataclass(frozen=True, slots=True)
class EdgeType:
    """One edge type; key, uniques and indexes may also name `@src` and `@dst`.

    ``key`` is both ends, then properties ordered by stable id; empty for unkeyed types.
    """

    name: str
    type_id: int
    incarnation: int
    source: str
    target: str
    properties: Mapping[str, PropertyDef]
    min_out: int = 0
    max_out: int | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    merge_rows: bool = False
    description: str | None = None
    instruction: str | None = None
    key: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    """The columns of its ends that are interfaces: a node there is told by a reference."""
    end_types: tuple[tuple[int, str], ...] = ()
    """The node types that such an end may be of, by their ids."""

    @property
    def kind(self) -> EntityKind:
        """Always "edge"."""
        return "edge"

    def end(self, column: str) -> str:
        """The type or the interface of the nodes in a column of its ends."""
        return self.source if column == SRC else self.target

    @property
    def is_bounded(self) -> bool:
        """Whether a source cannot have any number of these edges."""
        return self.min_out > 0 or self.max_out is not None


def unknown_type(name: str, known: Iterable[str]) -> NotFound:
    """What is said of a name that no type has: the nearest one, else all of them."""
    names = sorted(set(known))
    hint = did_you_mean(name.rpartition(":")[2], names) or f"the types are {', '.join(names)}"
    return NotFound(f"there is no type {name}: {hint}", details={"type_name": name})


@dataclass(frozen=True, repr=False)
class Catalog:
    """All types of one schema; ``schema_hash`` identifies it for caches."""

    schema_hash: str
    nodes: Mapping[str, NodeType] = field(default_factory=dict)
    edges: Mapping[str, EdgeType] = field(default_factory=dict)
    interfaces: Mapping[str, InterfaceType] = field(default_factory=dict)

    def named(self, name: str) -> tuple[NodeType | None, EdgeType | None]:
        """What `Person`, `node:Person` or `edge:Knows` may mean; an edge in any case."""
        kind, _, bare = name.rpartition(":")
        node = self.nodes.get(bare) if kind in ("", "node") else None
        edge = self.find_edge(bare) if kind in ("", "edge") else None
        return node, edge

    def find(self, name: str) -> NodeType | EdgeType:
        """A type by its name; of a node and an edge type of one name the node type."""
        node, edge = self.named(name)
        found = node or edge
        if found is None:
            raise unknown_type(name, (*self.nodes, *self.edges))
        return found

    @cached_property
    def _edges_folded(self) -> dict[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    def find_edge(self, name: str) -> EdgeType | None:
        """An edge type by its exact name, else by its name in any case."""
        return self.edges.get(name) or self._edges_folded.get(name.lower())

    def nodes_at(self, edge: EdgeType, column: str) -> tuple[NodeType, ...]:
        """The types of the nodes that an edge may have at an end."""
        return tuple(self.nodes[name] for name in members_of(self.nodes_called(edge.end(column))))

    # -- several types as one ----------------------------------------------------------

    def find_nodes(self, name: str) -> NodeType | TypeSet | None:
        """A node type, an interface, or several node types as `Comment|Post`, by name."""
        return self.nodes.get(name) or self._node_sets.get(name) or self._joined_nodes(name)

    def nodes_called(self, name: str) -> NodeType | TypeSet:
        """The same of a name that is known to be one."""
        found = self.find_nodes(name)
        if found is None:
            raise AssertionError(f"no nodes are called {name}")
        return found

    def edges_called(self, names: Sequence[str]) -> EdgeType | TypeSet:
        """An edge type, or several of them as one."""
        if len(names) == 1:
            return self.edges[names[0]]
        key = SEPARATOR.join(names)
        known = self._edge_sets.get(key)
        if known is None:
            known = self._edge_sets[key] = edge_set([self.edges[name] for name in names])
        return known

    def nodes_among(
        self, members: Iterable[str], known: Sequence[NodeType | TypeSet] = ()
    ) -> NodeType | TypeSet | None:
        """Some node types as one: one of the known, if these are they; None if there are none."""
        names = tuple(sorted(set(members)))
        for type_ in sorted(known, key=lambda found: isinstance(found, TypeSet)):
            if members_of(type_) == names:
                return type_
        return self.find_nodes(SEPARATOR.join(names)) if names else None

    @cached_property
    def _node_sets(self) -> dict[str, TypeSet]:
        return {name: self._interface(found) for name, found in self.interfaces.items()}

    @cached_property
    def _edge_sets(self) -> dict[str, TypeSet]:
        return {}

    def _interface(self, interface: InterfaceType) -> TypeSet:
        types = [self.nodes[name] for name in interface.implementers]
        return node_set(interface.name, types, tuple(interface.properties), interface.properties)

    def _joined_nodes(self, name: str) -> TypeSet | None:
        names = name.split(SEPARATOR)
        if len(names) < 2 or any(one not in self.nodes for one in names):
            return None
        types = [self.nodes[one] for one in names]
        common = [
            one.properties
            for one in self.interfaces.values()
            if set(names) <= set(one.implementers)
        ]
        shown = tuple(sorted({property_ for properties in common for property_ in properties}))
        self._node_sets[name] = found = node_set(name, types, shown, {})
        return found

    @cached_property
    def _incident(self) -> dict[str, tuple[EdgeType, ...]]:
        return {
            node: tuple(
                edge
                for _, edge in sorted(self.edges.items())
                if any(
                    node in members_of(self.nodes_called(end)) for end in (edge.source, edge.target)
                )
            )
            for node in self.nodes
        }

    def incident_edges(self, node_type: str) -> tuple[EdgeType, ...]:
        """Every edge type that can touch a node of this type, by name."""
        return self._incident.get(node_type, ())

    # -- for people --------------------------------------------------------------------

    def __repr__(self) -> str:
        from omnigraph.display.schema import summary_of

        return f"<Catalog of {summary_of(self)}>"

    def _repr_html_(self) -> str:
        from omnigraph.display.schema import schema_html

        return schema_html(self)
