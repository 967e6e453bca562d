"""The plan: what a query means, as plain frozen data.

Owns the vocabulary the executors run beyond the predicates about one row and the statements of a
mutation: result columns, rankings and the steps of a read. Every name is resolved, every direction
inferred. Never computes anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.expressions import (
    CONDITION,
    Aggregate,
    Arithmetic,
    ArithmeticOp,
    Call,
    Case,
    CompareOp,
    Comparison,
    Computed,
    Const,
    Constant,
    ConstantScalar,
    Contains,
    Either,
    EndsWith,
    Expression,
    Fixed,
    InList,
    IsNull,
    ListOf,
    Negative,
    NodeRef,
    Not,
    Now,
    NullPlace,
    ParamRef,
    Predicate,
    Property,
    SortKey,
    StartsWith,
    TextMatch,
    TextMode,
    parts_of,
    variables_of,
)
from omnigraph.lang.query.statements import (
    ROW,
    TEXT,
    TEXTS,
    Assignment,
    AtEnd,
    BoundEntity,
    BoundNode,
    DeleteEdges,
    DeleteMatched,
    DeleteNodes,
    End,
    InsertEdge,
    InsertNode,
    Loop,
    NodeByKey,
    Statement,
    UpdateEdges,
    UpdateMatched,
    UpdateNodes,
    field_of,
    flat,
)
from omnigraph.lang.types import Scalar, ValueType

# The words of expressions and of statements are words of plans.
__all__ = [
    "CONDITION",
    "ROW",
    "TEXT",
    "TEXTS",
    "Aggregate",
    "Arithmetic",
    "ArithmeticOp",
    "Assignment",
    "AtEnd",
    "BoundEntity",
    "BoundNode",
    "Call",
    "Case",
    "CompareOp",
    "Comparison",
    "Computed",
    "Const",
    "Constant",
    "ConstantScalar",
    "Contains",
    "DeleteEdges",
    "DeleteMatched",
    "DeleteNodes",
    "Either",
    "End",
    "EndsWith",
    "Expression",
    "Fixed",
    "InList",
    "InsertEdge",
    "InsertNode",
    "IsNull",
    "ListOf",
    "Loop",
    "Negative",
    "NodeByKey",
    "NodeRef",
    "Not",
    "Now",
    "NullPlace",
    "ParamRef",
    "Predicate",
    "Property",
    "SortKey",
    "StartsWith",
    "Statement",
    "TextMatch",
    "TextMode",
    "UpdateEdges",
    "UpdateMatched",
    "UpdateNodes",
    "field_of",
    "parts_of",
    "variables_of",
]

Direction = Literal["out", "in", "both"]
BlockValue = Literal["exists", "not"] | Aggregate
"""What a block inside an expression is worth."""

COUNT_TYPE = ValueType(Scalar.I64, nullable=True)
FLOAT_TYPE = ValueType(Scalar.F64, nullable=True)


# -- results ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Score:
    """What a ranking call says about a row."""

    ranking: Ranking
    type: ValueType = FLOAT_TYPE


Output = Expression | NodeRef | Score


# -- rankings --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosine distance of a node's vector to a query vector, or to a text yet to be embedded."""

    variable: str
    node_type: str
    property_name: str
    dimension: int
    query: ParamRef | Const
    model: str | None = None

    @property
    def query_is_text(self) -> bool:
        """Whether the query must be embedded first."""
        return self.query.type.scalar is Scalar.STRING


@dataclass(frozen=True, slots=True)
class Bm25:
    """BM25 score of a node's text."""

    variable: str
    node_type: str
    property_name: str
    query: ParamRef | Const


@dataclass(frozen=True, slots=True)
class Fusion:
    """Reciprocal rank fusion of two rankings; entities are those of the first."""

    primary: Nearest | Bm25
    secondary: Nearest | Bm25
    k: ParamRef | Const

    @property
    def variable(self) -> str:
        """The variable whose entities are ranked."""
        return self.primary.variable


Ranking = Nearest | Bm25 | Fusion


# -- steps of a read -------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes one ranking call chooses from: a type and the filters on its variable alone."""

    variable: str
    node_type: str
    where: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Rank:
    """Cut each arm of a ranking to its best candidates, and order rows by score."""

    ranking: Ranking
    candidates: tuple[Candidates, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One result column."""

    name: str
    value: Output


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A sort key: a result column by name, or an expression over the variables."""

    by: str | Expression
    descending: bool = False
    nulls: NullPlace | None = None


RowCount = int | ParamRef


@dataclass(frozen=True, slots=True)
class LimitPer:
    """At most so many rows for each value of the keys, result columns or expressions."""

    count: RowCount
    keys: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A read: steps bind rows, then rank, project, group, order and cut them."""

    steps: tuple[Step, ...]
    columns: tuple[Column, ...]
    group_by: tuple[str, ...] | None = None
    """Names of the key columns of an aggregate query; None when nothing is aggregated."""
    distinct: bool = False
    rank: Rank | None = None
    order: tuple[OrderKey, ...] = ()
    limit: RowCount | None = None
    offset: RowCount | None = None
    tie_breakers: tuple[str, ...] = ()
    """Variables whose ids break ties, in the order of their id columns' names."""
    per: LimitPer | None = None
    late: tuple[Step, ...] = ()
    """Steps that only columns need, which are run for the rows that are left in the end."""
    branches: tuple[ReadPlan, ...] = ()
    """The parts of a union, whose columns are those of this read."""


# -- mutations ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """Statements that run in order and publish as one commit.

    Those that are fed run for each row of the match; without one there is a single row that binds
    nothing. The columns of the match are those that statements and ``returns`` look at.
    """

    steps: tuple[Statement | Loop, ...]
    match: ReadPlan | None = None
    returns: tuple[Column, ...] = ()
    shown: tuple[BoundEntity, ...] = ()
    """What ``returns`` looks at, as it is after the statements."""

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Every statement once, those for each element of a list too."""
        return tuple(flat(self.steps))

    @property
    def is_fed(self) -> bool:
        """Whether statements give names to what they write, or take what others have bound."""
        named = (InsertNode, InsertEdge)
        return (
            self.match is not None
            or bool(self.returns)
            or any(isinstance(one, named) and one.variable for one in self.statements)
        )


Plan = ReadPlan | MutationPlan
