"""The steps of a read, as plain frozen data.

Owns what each step binds, keeps or computes, with every name resolved and every direction inferred.
Never computes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.expressions import Aggregate, Comparison, Expression, Predicate
from omnigraph.lang.types import ValueType

Direction = Literal["out", "in", "both"]
BlockValue = Literal["exists", "not"] | Aggregate
"""What a block inside an expression is worth."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Bind a variable to the nodes of a type; with rows already bound, a cross product.

    With ``joins`` only those that equal what the rows have: each has an expression over bound
    variables on its left, and one over this variable alone on its right.
    """

    variable: str
    node_type: str
    where: tuple[Predicate, ...] = ()
    joins: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Each:
    """What holds of every step of a walk: the steps find something for its edge and its node.

    The node is the one that a step enters on the way from left to right.
    """

    edge: str
    node: str
    node_type: str
    steps: tuple[Step, ...]
    uses: tuple[str, ...] = ()
    """Variables of the row that the steps look at."""


@dataclass(frozen=True, slots=True)
class Way:
    """One shortest way for each pair of ends, or every one, or the one of least weight.

    A weight is looked at as ``edge`` and ``node`` of a step.
    """

    variable: str
    node_type: str
    every: bool = False
    weight: Expression | None = None
    edge: str = ""
    node: str = ""


@dataclass(frozen=True, slots=True)
class Expand:
    """Follow an edge from a bound variable.

    ``closes`` means the target is bound already and the step only keeps the rows
    whose two ends are connected. An edge variable gives one row per edge; without
    one each target appears once per source row. ``where`` speaks of the target
    alone, ``edge_where`` of the edge variable alone. Without a largest number of hops
    it goes on until nothing new is found. ``from_right`` tells that it begins at the
    right end of what was written: ways still lead from left to right.
    """

    source: str
    edge_type: str
    direction: Direction
    target: str
    target_type: str
    min_hops: int = 1
    max_hops: int | None = 1
    edge_variable: str | None = None
    closes: bool = False
    where: tuple[Predicate, ...] = ()
    edge_where: tuple[Predicate, ...] = ()
    others: tuple[str, ...] = ()
    """Alternatives to the edge type."""
    way: Way | None = None
    each: Each | None = None
    from_right: bool = False

    @property
    def edge_types(self) -> tuple[str, ...]:
        """The edge type and its alternatives, by name."""
        return tuple(sorted((self.edge_type, *self.others)))


@dataclass(frozen=True, slots=True)
class WalkWay:
    """Bind two variables to the nodes of every distinct step of a way; bound ones are compared."""

    way: str
    left: str
    right: str
    undirected: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows for which every predicate is true."""

    where: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Keep the rows for which the steps find nothing."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Keep the rows for which the steps find something, each once."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Keep the rows for which at least one branch finds something, each once."""

    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Let:
    """Compute a value once for each row."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class ForEach:
    """A row for each element of a list; none for a list that is empty or null."""

    name: str
    items: Expression


@dataclass(frozen=True, slots=True)
class Fold:
    """Compute what the solutions of the steps are worth, for each row."""

    name: str
    value: BlockValue
    steps: tuple[Step, ...]
    is_correlated: bool = True
    """Whether the steps look at the row; else they are run once for all."""


@dataclass(frozen=True, slots=True)
class Optional:
    """Left join: rows without a solution stay once, with the new variables null."""

    steps: tuple[Step, ...]
    introduces: tuple[str, ...]
    values: tuple[tuple[str, ValueType], ...] = ()
    """The values that the steps compute and name."""


Step = (
    Scan | Expand | WalkWay | Filter | AntiJoin | SemiJoin | Union | Let | ForEach | Fold | Optional
)
