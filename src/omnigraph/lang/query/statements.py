"""The statements of a mutation, as plain frozen data.

Owns what each kind of statement says with every name resolved: which rows, which values, which
ends. Never computes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.lang.expressions import Expression, Predicate
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.types import Scalar, ValueType

TEXT = ValueType(Scalar.STRING)
TEXTS = ValueType(Scalar.STRING, is_list=True)

MATCHED_ROWS = "@row"
"""A column that every match has: rows count, also where nothing of them is looked at."""

ROW = "row"
"""The variable of the expressions of a statement: the row of its own type."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A property and the value it gets."""

    property: str
    value: Expression


@dataclass(frozen=True, slots=True)
class NodeByKey:
    """A node at an end of an edge, by its key, or by its id where ``is_id``.

    ``node_types`` are those that it may be of: several where its key alone tells which.
    """

    node_types: tuple[str, ...]
    members: tuple[Expression, ...]
    is_id: bool = False


@dataclass(frozen=True, slots=True)
class BoundNode:
    """A node at an end of an edge that the match or an earlier statement has bound.

    Of several ``node_types``, every row says which one it has.
    """

    variable: str
    node_types: tuple[str, ...]


End = NodeByKey | BoundNode


@dataclass(frozen=True, slots=True)
class BoundEntity:
    """What a variable is bound to: entities of some node or edge types."""

    variable: str
    kind: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtEnd:
    """An edge has this node at an end: in a `where`."""

    column: str
    node: NodeByKey


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Add a node; the verb says what becomes of one that has the same key.

    `insert` replaces the whole of it, `create` refuses it, `upsert` changes what is assigned.
    """

    node_type: str
    assignments: tuple[Assignment, ...]
    verb: InsertVerb = "insert"
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """Add an edge between two nodes; the verb is as for nodes."""

    edge_type: str
    source: End
    target: End
    assignments: tuple[Assignment, ...]
    verb: InsertVerb = "insert"
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    """Assign properties of every matching node."""

    node_type: str
    assignments: tuple[Assignment, ...]
    where: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class UpdateEdges:
    """Assign properties of every matching edge."""

    edge_type: str
    assignments: tuple[Assignment, ...]
    where: tuple[Predicate, ...]
    ends: tuple[AtEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Remove every matching node and every edge that touches one."""

    node_type: str
    where: tuple[Predicate, ...]
    cascades: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """Remove every matching edge."""

    edge_type: str
    where: tuple[Predicate, ...]
    ends: tuple[AtEnd, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateMatched:
    """Assign properties of what a variable is bound to."""

    entity: BoundEntity
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class DeleteMatched:
    """Remove what a variable is bound to, and the edges of nodes."""

    entity: BoundEntity


@dataclass(frozen=True, slots=True)
class Loop:
    """Statements for each element of a list: its value, or its fields, are parameters in them."""

    element: str
    over: str
    fields: tuple[str, ...] | None
    """The fields of a record that are used, None for an element that is a value."""
    statements: tuple[Statement | Loop, ...]


Statement = (
    InsertNode
    | InsertEdge
    | UpdateNodes
    | UpdateEdges
    | DeleteNodes
    | DeleteEdges
    | UpdateMatched
    | DeleteMatched
)


def flat(steps: Iterable[Statement | Loop]) -> Iterator[Statement]:
    """Every statement once, those for each element of a list too."""
    for step in steps:
        if isinstance(step, Loop):
            yield from flat(step.statements)
        else:
            yield step


def column_of(variable: str, name: str) -> str:
    """What the match of a mutation calls a property of a variable."""
    return f"{variable}.{name}"


def field_of(element: str, name: str) -> str:
    """What the field of an element is called among parameters, which have no dots."""
    return f"{element}.{name}"
