"""Filters: typed predicates about one row as something a scan can evaluate.

Owns which part storage evaluates and which is left for rows in memory, with the
same verdict either way. Values travel as typed scalars, so no text of a user
ever becomes part of a filter's text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.literals import epoch_days, epoch_millis
from omnigraph.lang.predicates import (
    CompareOp,
    Comparison,
    Constant,
    Contains,
    Either,
    InList,
    IsNull,
    Predicate,
    Property,
    Scalarish,
    StartsWith,
)
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.rows.numbers import floats_equal_to, place

ValueOf = Callable[[Scalarish], Constant]
"""Gives the value of a literal, a parameter or the present moment."""

STRUCTURAL = {"@id": "id", "@src": "src", "@dst": "dst"}
# Lance cannot evaluate an Arrow expression about a column of these types, nor about a vector.
_UNPUSHABLE = frozenset({Scalar.U32, Scalar.U64})
MOST_TERMS = 64
"""So many terms become one expression: the cost of more grows with their square, or worse."""
_NEVER = pc.scalar(False)  # noqa: FBT003 - pyarrow's own signature


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a list column holds a value; Arrow has no expression for it."""

    column: str
    value: pa.Scalar

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """For each row, whether its list holds the value."""
        lists = rows.column(self.column).combine_chunks()
        hits = pc.equal(pc.list_flatten(lists), self.value).fill_null(False)  # noqa: FBT003 - pyarrow
        found = np.zeros(len(lists), dtype=bool)
        found[pc.list_parent_indices(lists).filter(hits).to_numpy()] = True
        return pa.array(found)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A conjunction: what the scan evaluates, and what is checked on the rows it returns."""

    pushed: tuple[pc.Expression, ...] = ()
    kept: tuple[pc.Expression, ...] = ()
    memberships: tuple[Membership, ...] = ()
    kept_columns: tuple[str, ...] = ()
    """The columns that the part left for memory looks at."""
    columns: tuple[str, ...] = ()
    """All columns it looks at."""

    @property
    def expression(self) -> pc.Expression | None:
        """The part for the scan."""
        return together(and_, self.pushed) if self.pushed else None

    def narrow(self, rows: pa.Table) -> pa.Table:
        """Of rows that the scan returned, those that pass the rest."""
        for at in range(0, len(self.kept), MOST_TERMS):
            rows = rows.filter(together(and_, self.kept[at : at + MOST_TERMS]))
        for membership in self.memberships:
            rows = rows.filter(membership.mask(rows))
        return rows

    def select(self, rows: pa.Table) -> pa.Table:
        """Of any rows in memory, those that pass all of it."""
        expression = self.expression
        return self.narrow(rows if expression is None else rows.filter(expression))


def can_filter(predicate: Predicate) -> bool:
    """Whether a predicate compares columns of one row with values, so that a scan may decide it."""
    match predicate:
        case IsNull(operand, _):
            return isinstance(operand, Property)
        case InList(operand, _):
            return isinstance(operand, Property)
        case Comparison(left, _, right) | Contains(left, right) | StartsWith(left, right):
            return isinstance(left, Property) and not isinstance(right, Property)
        case Either(groups):
            members = [member for group in groups for member in group]
            return len(members) <= MOST_TERMS and all(
                can_filter(member) and is_pushable(member) for member in members
            )
    return False


def is_pushable(predicate: Predicate) -> bool:
    """Whether storage itself can decide a predicate about one column."""
    match predicate:
        case IsNull(Property() as left, _):
            opaque = left.type.is_vector or left.type.is_blob
            return not opaque and left.type.scalar not in _UNPUSHABLE
        case Contains(left, _) if left.type.is_list:
            return False
        case Comparison(left, _, _) | InList(left, _):
            return left.type.scalar not in _UNPUSHABLE
        case Contains() | StartsWith():
            return True
        case Either():
            return True
    return False


def pushes(predicates: Iterable[Predicate]) -> Iterator[bool]:
    """Which predicates storage decides: those that it can, as many as one expression has."""
    room = MOST_TERMS
    for predicate in predicates:
        terms = sum(map(len, predicate.groups)) if isinstance(predicate, Either) else 1
        taken = is_pushable(predicate) and terms <= room
        room -= terms if taken else 0
        yield taken


def row_filter(predicates: Sequence[Predicate], value_of: ValueOf) -> RowFilter:
    """The filter of predicates that all speak of one row, one side being a column of it."""
    pushed: list[pc.Expression] = []
    kept: list[pc.Expression] = []
    memberships: list[Membership] = []
    kept_columns: list[str] = []
    columns: list[str] = []
    for predicate, is_pushed in zip(predicates, pushes(predicates), strict=True):
        condition = _condition(predicate, value_of)
        columns.extend(_columns(predicate))
        if isinstance(condition, Membership):
            memberships.append(condition)
            kept_columns.append(condition.column)
        elif is_pushed:
            pushed.append(condition)
        else:
            kept.append(condition)
            kept_columns.extend(_columns(predicate))
    return RowFilter(
        tuple(pushed),
        tuple(kept),
        tuple(memberships),
        tuple(dict.fromkeys(kept_columns)),
        tuple(dict.fromkeys(columns)),
    )


def together(
    joined: Callable[[pc.Expression, pc.Expression], pc.Expression],
    expressions: Sequence[pc.Expression],
) -> pc.Expression:
    """One expression of many, as a tree of little depth: those who walk it do so on their stack."""
    level = list(expressions)
    while len(level) > 1:
        pairs = [joined(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return level[0]


def column_name(property_: Property) -> str:
    """The stored column of a property; `@id` and the like are structural ones."""
    return STRUCTURAL.get(property_.name, property_.name)


def among(column: str, values: pa.Array | pa.ChunkedArray | Sequence[str]) -> pc.Expression:
    """A column's value is one of these."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return pc.field(column).isin(values)


def columns_of(predicates: Iterable[Predicate]) -> tuple[str, ...]:
    """The stored columns that predicates look at, which a scan may decide."""
    return tuple(dict.fromkeys(name for found in predicates for name in _columns(found)))


def _columns(predicate: Predicate) -> list[str]:
    match predicate:
        case IsNull(Property() as column, _) | InList(Property() as column, _):
            return [column_name(column)]
        case (
            Comparison(Property() as column, _, _)
            | Contains(Property() as column, _)
            | StartsWith(Property() as column, _)
        ):
            return [column_name(column)]
        case Either(groups):
            return [name for group in groups for member in group for name in _columns(member)]
    raise AssertionError(f"no filter for {predicate}")


def _condition(predicate: Predicate, value_of: ValueOf) -> pc.Expression | Membership:
    match predicate:
        case IsNull(Property() as column, negated):
            tested = pc.field(column_name(column)).is_null()
            return ~tested if negated else tested
        case InList(Property() as column, choices):
            return _in_list(column, value_of(choices))
        case Comparison(Property() as column, op, value):
            return _comparison(column, op, value_of(value))
        case Contains(Property() as column, value):
            return _contains(column, value_of(value))
        case StartsWith(Property() as column, value):
            prefix = value_of(value)
            field = pc.field(column_name(column))
            return _NEVER if prefix is None else pc.starts_with(field, prefix)
        case Either(groups):
            alternatives = [
                together(and_, [_condition(member, value_of) for member in group])
                for group in groups
            ]
            return together(or_, alternatives)
    raise AssertionError(f"no filter for {predicate}")


def _contains(column: Property, value: Constant) -> pc.Expression | Membership:
    if value is None:
        return _NEVER
    if column.type.is_list:
        equal = equal_values((value,), column.type.scalar)
        return Membership(column_name(column), equal[0]) if len(equal) else _NEVER
    return pc.match_substring(pc.field(column_name(column)), value)


def _in_list(column: Property, choices: Constant) -> pc.Expression:
    if not isinstance(choices, tuple):
        return _NEVER  # a null list
    equal = equal_values(choices, column.type.scalar)
    return pc.field(column_name(column)).isin(equal) if len(equal) else _NEVER


def equal_values(values: Sequence[Any], scalar: Scalar) -> pa.Array:
    """The values of a type that equal one of some others, for a test of membership."""
    if scalar in FLOATS:
        return floats_equal_to(values, scalar)
    if scalar in INTEGERS:
        low, high = INTEGER_RANGE[scalar]
        values = [value for value in values if low <= value <= high and value == int(value)]
    return arrow_values(values, scalar)


def _comparison(column: Property, op: CompareOp, value: Any) -> pc.Expression:
    field = pc.field(column_name(column))
    scalar = column.type.scalar
    if value is None:
        return _NEVER
    if scalar in INTEGERS:
        return _integer_comparison(field, scalar, op, value)
    if scalar not in FLOATS:
        return _compare(field, op, arrow_scalar(value, scalar))
    match place(value, scalar).test(op):
        case (decides, bound):
            return _compare(field, decides, pa.scalar(bound, SCALARS[scalar]))
        case always:
            return field.is_valid() if always else _NEVER


def _integer_comparison(
    field: pc.Expression, scalar: Scalar, op: CompareOp, value: float
) -> pc.Expression:
    """By numeric value: a bound between two integers is moved to the next one that decides."""
    whole = math.floor(value)
    if whole != value:
        if op in ("=", "!="):
            return _NEVER if op == "=" else field.is_valid()
        whole += op in ("<", ">=")
    low, high = INTEGER_RANGE[scalar]
    if low <= whole <= high:
        return _compare(field, op, arrow_scalar(whole, scalar))
    beyond = whole > high
    always = op == "!=" or (op in ("<", "<=") if beyond else op in (">", ">="))
    return field.is_valid() if always else _NEVER


def _compare(field: pc.Expression, op: CompareOp, value: pa.Scalar) -> pc.Expression:
    match op:
        case "=":
            return field == value
        case "!=":
            return field != value
        case "<":
            return field < value
        case "<=":
            return field <= value
        case ">":
            return field > value
        case ">=":
            return field >= value


def arrow_scalar(value: Any, scalar: Scalar) -> pa.Scalar:
    """A value of a language type as a scalar of the type it is stored in."""
    return arrow_values([value], scalar)[0]


def arrow_values(values: Sequence[Any], scalar: Scalar) -> pa.Array:
    """Values of a language type as an array of the type they are stored in."""
    if scalar is Scalar.DATE:
        days = [None if value is None else epoch_days(value) for value in values]
        return pa.array(days, pa.int32()).cast(pa.date32())
    if scalar is Scalar.DATETIME:
        moments = [None if value is None else epoch_millis(value) for value in values]
        return pa.array(moments, SCALARS[scalar])
    if scalar in INTEGERS:
        values = [None if value is None else int(value) for value in values]
    if scalar in FLOATS:
        # An integer constant of a float property is the float of its value.
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, SCALARS[scalar])
