"""The syntax tree of `.gq`: exactly what was written, nothing resolved.

Owns the tree's shape. Spans do not take part in equality, so a tree equals
the tree of its formatted text. Never validates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from omnigraph.lang.source import NOWHERE, Span
from omnigraph.lang.types import ValueType

ComparisonOp = OneOf["=", "!=", "<", "<=", ">", ">="]
FilterOp = OneOf["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]
AggregateName = OneOf["count", "sum", "avg", "min", "max"]
TextCallName = OneOf["search", "fuzzy", "match_text"]
LiteralKind = OneOf["string", "integer", "float", "bool", "date", "datetime", "null"]

COMPARISONS: tuple[ComparisonOp, ...] = (">=", "<=", "!=", ">", "<", "=")
AGGREGATES: tuple[AggregateName, ...] = ("count", "sum", "avg", "min", "max")
TEXT_CALLS: tuple[TextCallName, ...] = ("search", "fuzzy", "match_text")
ANONYMOUS = "_"
"""The variable `$_`: every occurrence stands for itself."""

ID = "@id"
SRC = "@src"
DST = "@dst"
SYSTEM_PROPERTIES = (ID, SRC, DST)
"""Structural columns, spelt with `@` so that no property can be called the same."""


def _span() -> Span:
    return NOWHERE


# -- values and expressions ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A name and where it stands."""

    text: str
    span: Span = field(default_factory=_span, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar literal; dates and datetimes keep their text."""

    kind: LiteralKind
    value: str | int | float | bool | None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """`[a, b, …]`."""

    items: tuple[Literal, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: a node, an edge or a parameter; which one the checker finds out."""

    name: str
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Now:
    """`now()`."""

    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """`$variable.property`, or `$variable.@id`."""

    variable: Variable
    property: Name
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Alias:
    """A bare name: a reference to a result column."""

    name: str
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Nearest:
    """`nearest($v.vector, query)`."""

    subject: Access
    query: Expr
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextCall:
    """`search(f, q)`, `match_text(f, q)` or `fuzzy(f, q, edits)`."""

    name: TextCallName
    subject: Expr
    query: Expr
    edits: Expr | None = None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bm25:
    """`bm25(f, q)`."""

    subject: Expr
    query: Expr
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rrf:
    """`rrf(primary, secondary, k)`; the checker says what may be fused."""

    primary: Expr
    secondary: Expr
    k: Expr | None = None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count(x)` and its kin."""

    name: AggregateName
    argument: Expr
    span: Span = field(default_factory=_span, compare=False, repr=False)


Value = Literal | ListLiteral | Variable | Now
Ranking = Nearest | Bm25 | Rrf
Expr = Value | Access | Alias | Nearest | TextCall | Bm25 | Rrf | Aggregate


# -- clauses of a match block ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside a binding."""

    property: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Binding:
    """`$v: Type { property: value, … }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HopRange:
    """`{min,max}`; a missing maximum is the checker's business."""

    minimum: int
    maximum: int | None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$a edge $b`, `$a <edge> $b`, `$a $w:edge $b`, with or without bounds."""

    left: Variable
    edge: Name
    right: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: HopRange | None = None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Filter:
    """`left op right`."""

    left: Expr
    op: FilterOp
    right: Expr
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NullTest:
    """`x is null` or `x is not null`."""

    operand: Expr
    negated: bool = False
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Membership:
    """`x in [..]` or `x in $list`."""

    operand: Expr
    choices: ListLiteral | Variable
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextPredicate:
    """A text call standing as a clause of its own."""

    call: TextCall
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Counted:
    """`count { … } > 2` or `sum($d.size) { … } >= 100`."""

    aggregate: AggregateName
    argument: Access | None
    clauses: tuple[Clause, ...]
    op: ComparisonOp
    value: Value
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`any { … } or { … }`."""

    groups: tuple[tuple[Clause, ...], ...]
    group_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


Clause = (
    Binding
    | Traversal
    | Filter
    | NullTest
    | Membership
    | TextPredicate
    | Not
    | Exists
    | Counted
    | AnyOf
    | Optional
)


# -- reads -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Projection:
    """`expr as alias`."""

    expr: Expr
    alias: Name | None = None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ordering:
    """`expr asc|desc`; no direction written means ascending."""

    expr: Expr
    descending: bool = False
    span: Span = field(default_factory=_span, compare=False, repr=False)


Count = Literal | Variable


@dataclass(frozen=True, slots=True)
class Read:
    """`match … return … order … limit … offset …`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    ordering: tuple[Ordering, ...] = ()
    limit: Count | None = None
    offset: Count | None = None


# -- mutations -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value`."""

    property: Name
    value: Value


@dataclass(frozen=True, slots=True)
class Compare:
    """`property op value` of a where clause."""

    property: Name
    op: FilterOp
    value: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    """`property is [not] null` of a where clause."""

    property: Name
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsIn:
    """`property in […]` of a where clause."""

    property: Name
    choices: ListLiteral | Variable


Atom = Compare | IsNull | IsIn


@dataclass(frozen=True, slots=True)
class Insert:
    """`insert Type { … }`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Update:
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    where: tuple[Atom, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """`delete Type where …`."""

    type_name: Name
    where: tuple[Atom, ...]
    span: Span = field(default_factory=_span, compare=False, repr=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    """One or more statements that publish together."""

    statements: tuple[Statement, ...]


# -- queries ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param:
    """`$name: Type`; the type stays a bare name when no such type exists."""

    name: str
    type: ValueType | Name
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """One named query."""

    name: Name
    params: tuple[Param, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    span: Span = field(default_factory=_span, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A whole `.gq` file."""

    queries: tuple[Query, ...] = ()
