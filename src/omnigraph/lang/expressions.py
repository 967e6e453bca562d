"""Expressions about rows, as plain frozen data: what a value or a condition is made of.

Owns the one tree that filters, bindings, columns, order, aggregates, mutations and policies share.
Every name is resolved, every literal converted, every type known. Never evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal

from omnigraph.lang.types import Scalar, ValueType

CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]
ArithmeticOp = Literal["+", "-", "*", "/", "%"]
NullPlace = Literal["first", "last"]
AggregateName = Literal[
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "collect",
    "median",
    "percentile",
    "stddev",
    "variance",
    "any_value",
    "bool_and",
    "bool_or",
    "count_if",
]
TextMode = Literal["search", "fuzzy", "match_text"]
ConstantScalar = str | int | float | bool | date | datetime
Constant = ConstantScalar | None | tuple[ConstantScalar | None, ...]

TIMESTAMP = ValueType(Scalar.DATETIME)
CONDITION = ValueType(Scalar.BOOL, nullable=True)
VERDICT = ValueType(Scalar.BOOL)
SMALL = 64
"""An expression of more parts than this is computed once and then named."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a bound variable; `@id`, `@src` and `@dst` are the structural columns."""

    variable: str
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A whole node."""

    variable: str
    node_type: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ParamRef:
    """A declared parameter."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, already of its Python type."""

    value: Constant
    type: ValueType


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of the statement, the same wherever it is read."""

    type: ValueType = TIMESTAMP


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that has a name: of `let` and `for`, of a block, or of a result column."""

    name: str
    type: ValueType


Fixed = ParamRef | Const | Now
"""What is the same for every row."""


# -- what is computed ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Operators of one rank from left to right; null where an operand is."""

    first: Expression
    rest: tuple[tuple[ArithmeticOp, Expression], ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    operand: Expression
    type: ValueType


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the library."""

    name: str
    arguments: tuple[Expression, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that is true, else the last one, or null."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    type: ValueType


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of computed elements."""

    items: tuple[Expression, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class SortKey:
    """What rows are ordered by inside an aggregate; null is the smallest unless told otherwise."""

    by: Expression
    descending: bool = False
    nulls: NullPlace | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value of all rows of a group; without an argument, of the rows themselves.

    ``fields`` are the parts of the objects that `collect({…})` makes.
    """

    function: AggregateName
    argument: Expression | NodeRef | None
    type: ValueType
    distinct: bool = False
    fraction: Expression | None = None
    order: tuple[SortKey, ...] = ()
    limit: Fixed | None = None
    fields: tuple[tuple[str, Expression | NodeRef], ...] = ()


# -- conditions: Bools, null where they are unknown --------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`; unknown when either side is null."""

    left: Expression
    op: CompareOp
    right: Expression
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class Contains:
    """List membership, or exact substring when the left side is text."""

    left: Expression
    right: Expression
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Exact prefix."""

    left: Expression
    right: Expression
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class EndsWith:
    """Exact suffix."""

    left: Expression
    right: Expression
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class InList:
    """Equal to one of the choices."""

    operand: Expression
    choices: Expression
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class IsNull:
    """True or false, never unknown; ``operand`` may be a whole optional node."""

    operand: Expression | NodeRef
    negated: bool = False
    type: ValueType = VERDICT


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A full-text predicate on a node's text."""

    mode: TextMode
    subject: Property
    node_type: str
    query: ParamRef | Const
    edits: ParamRef | Const | None = None
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class Either:
    """At least one group holds; the conditions of a group hold together."""

    groups: tuple[tuple[Expression, ...], ...]
    type: ValueType = CONDITION


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold; unknown stays unknown."""

    operand: Expression
    type: ValueType = CONDITION


Expression = (
    Property
    | Computed
    | Aggregate
    | ParamRef
    | Const
    | Now
    | Arithmetic
    | Negative
    | Call
    | Case
    | ListOf
    | Comparison
    | Contains
    | StartsWith
    | EndsWith
    | InList
    | IsNull
    | TextMatch
    | Either
    | Not
)
Predicate = Expression
"""An expression that is a condition."""


# -- walking ---------------------------------------------------------------------


def parts_of(expression: Expression | NodeRef) -> Iterator[Expression | NodeRef]:
    """What an expression is made of, one level down."""
    match expression:
        case Arithmetic(first, rest, _):
            yield first
            for _, operand in rest:
                yield operand
        case Call(_, parts, _) | ListOf(parts, _):
            yield from parts
        case Case(branches, otherwise, _):
            for branch in branches:
                yield from branch
            if otherwise is not None:
                yield otherwise
        case (
            Comparison(left=left, right=right)
            | Contains(left, right)
            | StartsWith(left, right)
            | EndsWith(left, right)
        ):
            yield from (left, right)
        case InList(operand, choices):
            yield from (operand, choices)
        case Negative(operand) | IsNull(operand) | Not(operand):
            yield operand
        case Aggregate():
            if expression.argument is not None:
                yield expression.argument
            if expression.fraction is not None:
                yield expression.fraction
            yield from (key.by for key in expression.order)
            yield from (value for _, value in expression.fields)
        case TextMatch():
            yield from (expression.subject, expression.query)
            if expression.edits is not None:
                yield expression.edits
        case Either(groups):
            for group in groups:
                yield from group


def leaves_of(expression: Expression | NodeRef) -> Iterator[Expression | NodeRef]:
    """Everything below an expression that has no parts, from left to right."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        parts = list(parts_of(found))
        if parts:
            waiting.extend(reversed(parts))
        else:
            yield found


def variables_of(expression: Expression | NodeRef) -> frozenset[str]:
    """The variables an expression looks at, and the names of computed values."""
    found: set[str] = set()
    for leaf in leaves_of(expression):
        if isinstance(leaf, Property | NodeRef):
            found.add(leaf.variable)
        elif isinstance(leaf, Computed):
            found.add(leaf.name)
    return frozenset(found)


def is_fixed(expression: Expression | NodeRef) -> bool:
    """Whether it is the same for every row."""
    if isinstance(expression, ParamRef | Const | Now):
        return True
    return all(isinstance(leaf, ParamRef | Const | Now | Call) for leaf in leaves_of(expression))


def is_small(expression: Expression | NodeRef) -> bool:
    """Whether it has so few parts that it may stand wherever its value is used."""
    waiting, parts = [expression], 0
    while waiting and parts <= SMALL:
        waiting.extend(parts_of(waiting.pop()))
        parts += 1
    return parts <= SMALL


def rewritten(
    expression: Expression, instead: Callable[[Expression], Expression | None]
) -> Expression:
    """An expression with others in the place of some of its parts, the largest first."""
    found = instead(expression)
    if found is not None:
        return found

    def of(part: Expression) -> Expression:
        return rewritten(part, instead)

    match expression:
        case Arithmetic(first, rest, type_):
            return Arithmetic(of(first), tuple((op, of(one)) for op, one in rest), type_)
        case Call(name, parts, type_):
            return Call(name, tuple(map(of, parts)), type_)
        case ListOf(items, type_):
            return ListOf(tuple(map(of, items)), type_)
        case Case(branches, otherwise, type_):
            pairs = tuple((of(test), of(value)) for test, value in branches)
            return Case(pairs, None if otherwise is None else of(otherwise), type_)
        case Comparison(left, op, right):
            return Comparison(of(left), op, of(right))
        case Contains(left, right) | StartsWith(left, right) | EndsWith(left, right):
            return replace(expression, left=of(left), right=of(right))
        case InList(operand, choices):
            return InList(of(operand), of(choices))
        case Negative() | Not():
            return replace(expression, operand=of(expression.operand))
        case IsNull(operand) if not isinstance(operand, NodeRef):
            return replace(expression, operand=of(operand))
        case Either(groups):
            return Either(tuple(tuple(map(of, group)) for group in groups))
        case _:
            return expression
