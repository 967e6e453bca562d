"""Terms: the values and expressions of `.gq`, exactly as written.

Owns the part of the syntax tree below clauses and statements (syntax.py). Never
resolves a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args
from typing import Literal as OneOf

from omnigraph.lang import expressions, source
from omnigraph.lang.source import Spanned
from omnigraph.lang.structural import EDGE_COLUMNS

if TYPE_CHECKING:
    from omnigraph.lang.query.syntax import Clause

Name = source.Name
AggregateName = expressions.AggregateName
ArithmeticOp = expressions.ArithmeticOp
NullPlace = expressions.NullPlace
ComparisonOp = OneOf["=", "!=", "<", "<=", ">", ">="]
FilterOp = OneOf["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "ends_with"]
TextCallName = OneOf["search", "fuzzy", "match_text"]
InsertVerb = OneOf["insert", "create", "upsert"]
LiteralKind = OneOf["string", "integer", "float", "bool", "date", "datetime", "null"]

COMPARISONS: tuple[ComparisonOp, ...] = (">=", "<=", "!=", ">", "<", "=")
WORD_OPERATORS: tuple[FilterOp, ...] = ("contains", "starts_with", "ends_with")
SUMS: tuple[ArithmeticOp, ...] = ("+", "-")
PRODUCTS: tuple[ArithmeticOp, ...] = ("*", "/", "%")
AGGREGATES: tuple[AggregateName, ...] = get_args(AggregateName)
TEXT_CALLS: tuple[TextCallName, ...] = ("search", "fuzzy", "match_text")
INSERTS: tuple[InsertVerb, ...] = ("insert", "create", "upsert")
ANONYMOUS = "_"
"""The variable `$_`: every occurrence stands for itself."""

SYSTEM_PROPERTIES = EDGE_COLUMNS
"""Structural columns, spelt with `@` so that no property can be called the same."""


@dataclass(frozen=True, slots=True)
class Literal(Spanned):
    """A scalar literal; dates and datetimes keep their text."""

    kind: LiteralKind
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class ListLiteral(Spanned):
    """`[a, b, …]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Variable(Spanned):
    """`$name`: a node, an edge or a parameter; which one the checker finds out."""

    name: str


@dataclass(frozen=True, slots=True)
class Now(Spanned):
    """`now()`."""


@dataclass(frozen=True, slots=True)
class Access(Spanned):
    """`$variable.property`, or `$variable.@id`."""

    variable: Variable
    property: Name


@dataclass(frozen=True, slots=True)
class Alias(Spanned):
    """A bare name: a result column, or in a statement a property of its own rows."""

    name: str


@dataclass(frozen=True, slots=True)
class Nearest(Spanned):
    """`nearest($v.vector, query)`."""

    subject: Access
    query: Expr


@dataclass(frozen=True, slots=True)
class TextCall(Spanned):
    """`search(f, q)`, `match_text(f, q)` or `fuzzy(f, q, edits)`."""

    name: TextCallName
    subject: Expr
    query: Expr
    edits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Bm25(Spanned):
    """`bm25(f, q)`."""

    subject: Expr
    query: Expr


@dataclass(frozen=True, slots=True)
class Rrf(Spanned):
    """`rrf(primary, secondary, k)`; the checker says what may be fused."""

    primary: Expr
    secondary: Expr
    k: Expr | None = None


@dataclass(frozen=True, slots=True)
class Aggregate(Spanned):
    """`count(distinct x)`, `collect(x order y limit 3)`, `collect({ a, b as c })` and their kin."""

    name: AggregateName
    argument: Expr | None = None
    distinct: bool = False
    fraction: Expr | None = None
    order: tuple[Ordering, ...] = ()
    limit: Count | None = None
    fields: tuple[Projection, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockValue(Spanned):
    """`exists { … }`, `not { … }`, or an aggregate of a block: `count { … }`, `sum(x) { … }`."""

    value: OneOf["exists", "not"] | Aggregate
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Projection(Spanned):
    """`expr as alias`."""

    expr: Expr
    alias: Name | None = None


@dataclass(frozen=True, slots=True)
class Ordering(Spanned):
    """`expr asc|desc nulls first|last`; no direction written means ascending."""

    expr: Expr
    descending: bool = False
    nulls: NullPlace | None = None


@dataclass(frozen=True, slots=True)
class NodeKey(Spanned):
    """`Person($n)`, `Flat("Elm Street", 3)`: a node by its type and its key."""

    type_name: Name
    members: tuple[Expr, ...]


# -- operators -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Negative(Spanned):
    """`-x`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Spanned):
    """`a + b - c`: operators of one rank, from left to right."""

    first: Expr
    rest: tuple[tuple[ArithmeticOp, Expr], ...]


@dataclass(frozen=True, slots=True)
class Comparison(Spanned):
    """`left op right`."""

    left: Expr
    op: FilterOp
    right: Expr


@dataclass(frozen=True, slots=True)
class NullTest(Spanned):
    """`x is null` or `x is not null`."""

    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Membership(Spanned):
    """`x in [..]` or `x in $list`."""

    operand: Expr
    choices: Expr


@dataclass(frozen=True, slots=True)
class Negation(Spanned):
    """`not x`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Logical(Spanned):
    """`a and b and c`, or the same with `or`."""

    op: OneOf["and", "or"]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Call(Spanned):
    """`name(a, b)`: a function of the library."""

    name: Name
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Branch(Spanned):
    """`when cond: value` of a `case`."""

    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Case(Spanned):
    """`case { when cond: a … else: b }`."""

    branches: tuple[Branch, ...]
    otherwise: Expr | None = None


Value = Literal | ListLiteral | Variable | Now
Count = Literal | Variable
Ranking = Nearest | Bm25 | Rrf
Condition = Comparison | NullTest | Membership | Negation | Logical
Expr = (
    Value
    | Access
    | Alias
    | NodeKey
    | Nearest
    | TextCall
    | Bm25
    | Rrf
    | Aggregate
    | BlockValue
    | Negative
    | Arithmetic
    | Call
    | Case
    | Condition
)


def parts_of(expr: Expr) -> Iterator[Expr]:
    """What an expression is made of, one level down; what a block is made of is its own."""
    match expr:
        case ListLiteral(items) | Logical(_, items):
            yield from items
        case Negative(operand) | Negation(operand) | NullTest(operand):
            yield operand
        case Arithmetic(first, rest):
            yield first
            yield from (operand for _, operand in rest)
        case Comparison(left, _, right) | Membership(left, right):
            yield from (left, right)
        case Call(_, arguments) | NodeKey(_, arguments):
            yield from arguments
        case Case(branches, otherwise):
            for branch in branches:
                yield from (branch.condition, branch.value)
            if otherwise is not None:
                yield otherwise
        case BlockValue(Aggregate() as aggregate, _):
            yield from parts_of(aggregate)
        case Aggregate():
            yield from (found.expr for found in expr.fields)
            yield from (one for one in (expr.argument, expr.fraction) if one is not None)
            yield from (key.expr for key in expr.order)
        case TextCall(_, subject, query, extra) | Rrf(subject, query, extra):
            yield from (one for one in (subject, query, extra) if one is not None)
        case Nearest(subject, query) | Bm25(subject, query):
            yield from (subject, query)


def within(expr: Expr) -> Iterator[Expr]:
    """An expression and everything in it, but for what is inside blocks."""
    waiting = [expr]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(parts_of(found))


def has_aggregate(expr: Expr) -> bool:
    """Whether it is a value of a group; the aggregate of a block is one of a row."""
    waiting = [expr]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Aggregate):
            return True
        if not isinstance(found, BlockValue):
            waiting.extend(parts_of(found))
    return False
