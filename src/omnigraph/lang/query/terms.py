"""Terms: the values and expressions of `.gq`, exactly as written.

Owns the part of the syntax tree below clauses and statements (syntax.py). Spans
do not take part in equality. Never resolves a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from omnigraph.lang.source import NOWHERE, Span

ComparisonOp = OneOf["=", "!=", "<", "<=", ">", ">="]
FilterOp = OneOf["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]
AggregateName = OneOf["count", "sum", "avg", "min", "max"]
TextCallName = OneOf["search", "fuzzy", "match_text"]
InsertVerb = OneOf["insert", "create", "upsert"]
LiteralKind = OneOf["string", "integer", "float", "bool", "date", "datetime", "null"]

COMPARISONS: tuple[ComparisonOp, ...] = (">=", "<=", "!=", ">", "<", "=")
AGGREGATES: tuple[AggregateName, ...] = ("count", "sum", "avg", "min", "max")
TEXT_CALLS: tuple[TextCallName, ...] = ("search", "fuzzy", "match_text")
INSERTS: tuple[InsertVerb, ...] = ("insert", "create", "upsert")
ANONYMOUS = "_"
"""The variable `$_`: every occurrence stands for itself."""

ID = "@id"
SRC = "@src"
DST = "@dst"
SYSTEM_PROPERTIES = (ID, SRC, DST)
"""Structural columns, spelt with `@` so that no property can be called the same."""


def _span() -> Span:
    return NOWHERE


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
