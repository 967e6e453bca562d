"""A match block after name resolution, before its steps are put in order.

Owns the hand-over from the checker to lowering: variables with their types,
traversals with their directions, predicates, nested blocks. Plain frozen data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.query import plan


@dataclass(frozen=True, slots=True)
class NodeVariable:
    """A node variable that a block introduces."""

    name: str
    node_type: str


@dataclass(frozen=True, slots=True)
class Each:
    """What holds of every step of a walk: its edge, and the node that it enters."""

    edge: str
    node: str
    node_type: str
    block: ResolvedBlock
    uses: frozenset[str]
    """Outer variables the block looks at."""


@dataclass(frozen=True, slots=True)
class Traversal:
    """A traversal with its direction as seen from ``left``; without a bound it has no maximum."""

    left: NodeVariable
    right: NodeVariable
    edge_type: str
    direction: plan.Direction
    min_hops: int = 1
    max_hops: int | None = 1
    edge_variable: str | None = None
    others: tuple[str, ...] = ()
    """Alternatives to the edge type."""
    way: plan.Way | None = None
    each: Each | None = None


@dataclass(frozen=True, slots=True)
class WayStep:
    """A step of a way, whose nodes ``left`` and ``right`` are."""

    way: str
    left: NodeVariable
    right: NodeVariable
    undirected: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """The bindings and traversals between two optional blocks; their order has no meaning."""

    nodes: tuple[NodeVariable, ...]
    traversals: tuple[Traversal, ...]
    way_steps: tuple[WayStep, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionalBlock:
    """A left-joined block and the variables it brings."""

    block: ResolvedBlock
    introduces: tuple[str, ...]
    values: tuple[str, ...] = ()
    """The values it names."""
    uses: frozenset[str] = frozenset()
    """Outer variables the block looks at."""


@dataclass(frozen=True, slots=True)
class NestedTest:
    """A nested block that keeps or drops rows and binds nothing outside."""

    kind: Literal["not", "exists", "any"]
    groups: tuple[ResolvedBlock, ...]
    uses: frozenset[str]
    """Outer variables the block looks at."""


Test = NestedTest


@dataclass(frozen=True, slots=True)
class Let:
    """A value with a name, computed once for each row."""

    name: str
    value: plan.Expression

    @property
    def uses(self) -> frozenset[str]:
        """What it looks at."""
        return plan.variables_of(self.value)


@dataclass(frozen=True, slots=True)
class ForEach:
    """A row for each element of a list."""

    name: str
    items: plan.Expression

    @property
    def uses(self) -> frozenset[str]:
        """What it looks at."""
        return plan.variables_of(self.items)


@dataclass(frozen=True, slots=True)
class Fold:
    """A block inside an expression, and what is made of its solutions."""

    name: str
    value: plan.BlockValue
    block: ResolvedBlock
    uses: frozenset[str]
    """Outer variables the block looks at; without any, it is computed once."""


Value = Let | ForEach | Fold


@dataclass(frozen=True, slots=True)
class ResolvedBlock:
    """One match block: what it binds in sequence, and what must hold."""

    parts: tuple[Segment | OptionalBlock, ...]
    predicates: tuple[plan.Predicate, ...]
    tests: tuple[Test, ...]
    values: tuple[Value, ...] = ()
