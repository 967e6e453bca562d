"""The plan: what a query means, as plain frozen data.

Owns the vocabulary the executors run beyond the predicates about one row and the statements of a
mutation: result columns, rankings and the steps of a read. Every name is resolved, every direction
inferred. Never computes anything.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    MATCHED_ROWS,
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
    column_of,
    field_of,
    flat,
)
from omnigraph.lang.query.steps import (
    AntiJoin,
    BlockValue,
    Direction,
    Each,
    Expand,
    Filter,
    Fold,
    ForEach,
    Let,
    Optional,
    Scan,
    SemiJoin,
    Step,
    Union,
    WalkWay,
    Way,
)
from omnigraph.lang.types import Scalar, ValueType

# The words of expressions, of steps and of statements are words of plans.
__all__ = [
    "CONDITION",
    "MATCHED_ROWS",
    "ROW",
    "TEXT",
    "TEXTS",
    "Aggregate",
    "AntiJoin",
    "Arithmetic",
    "ArithmeticOp",
    "Assignment",
    "AtEnd",
    "BlockValue",
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
    "Direction",
    "Each",
    "Either",
    "End",
    "EndsWith",
    "Expand",
    "Expression",
    "Filter",
    "Fixed",
    "Fold",
    "ForEach",
    "InList",
    "InsertEdge",
    "InsertNode",
    "IsNull",
    "Let",
    "ListOf",
    "Loop",
    "Negative",
    "NodeByKey",
    "NodeRef",
    "Not",
    "Now",
    "NullPlace",
    "Optional",
    "ParamRef",
    "Predicate",
    "Property",
    "Scan",
    "SemiJoin",
    "SortKey",
    "StartsWith",
    "Statement",
    "Step",
    "TextMatch",
    "TextMode",
    "Union",
    "UpdateEdges",
    "UpdateMatched",
    "UpdateNodes",
    "WalkWay",
    "Way",
    "column_of",
    "field_of",
    "parts_of",
    "variables_of",
]


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


# -- reads ------------------------------------------------------------------------


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
