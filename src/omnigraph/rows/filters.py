"""Filters: typed predicates about one row as something a scan can evaluate.

Owns which part storage evaluates and which is left for rows in memory, with the
same verdict either way. Values travel as typed scalars, or as digits where a filter has
to be text, so no text of a user ever becomes part of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.expressions import (
    CompareOp,
    Comparison,
    Constant,
    Contains,
    Either,
    Expression,
    Fixed,
    InList,
    IsNull,
    NodeRef,
    Predicate,
    Property,
    StartsWith,
    is_fixed,
)
from omnigraph.lang.structural import TYPE
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.rows.constants import arrow_scalar, equal_values
from omnigraph.rows.evaluation import constant_of
from omnigraph.rows.numbers import place
from omnigraph.rows.sql_conditions import (
    NEVER,
    Condition,
    SqlColumn,
    SqlCondition,
    SqlText,
    all_of,
    any_of,
)
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.rows.table_rows import Membership, Tested

ValueOf = Callable[[Fixed], Constant]
"""Gives the value of a literal, a parameter or the present moment."""
FieldOf = Callable[[str], Any]
"""Gives what stands for a column: a field of an expression, or a `SqlColumn`, alike to it."""

# Lance cannot evaluate an Arrow expression about a column of these types, but SQL.
_ONLY_IN_SQL = frozenset({Scalar.U32, Scalar.U64})
MOST_TERMS = 64
"""So many terms become one expression: the cost of more grows with their square, or worse."""
_NEVER = pc.scalar(False)  # noqa: FBT003 - pyarrow's own signature


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A conjunction: what the scan evaluates, and what is checked on the rows it returns."""

    pushed: tuple[pc.Expression, ...] = ()
    kept: tuple[pc.Expression, ...] = ()
    memberships: tuple[Membership | Tested, ...] = ()
    kept_columns: tuple[str, ...] = ()
    """The columns that the part left for memory looks at."""
    columns: tuple[str, ...] = ()
    """All columns it looks at."""
    sql: str | None = None
    """The part for the scan as text, where Arrow has no expression that storage understands."""
    stored: tuple[pc.Expression, ...] = ()
    """The part for the scan, about columns as they are stored."""

    @property
    def expression(self) -> pc.Expression | None:
        """The part for the scan, as memory evaluates it."""
        return together(and_, self.pushed) if self.pushed else None

    @property
    def condition(self) -> Condition | None:
        """The part for the scan, as storage evaluates it."""
        if not self.stored:
            return None
        expression = together(and_, self.stored)
        return expression if self.sql is None else SqlCondition(self.sql, expression)

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
            return _is_column(operand)
        case InList(operand, choices):
            return _is_column(operand) and is_fixed(choices)
        case Comparison(left, _, right) | Contains(left, right) | StartsWith(left, right):
            return _is_column(left) and is_fixed(right)
        case Either(groups):
            members = [member for group in groups for member in group]
            return len(members) <= MOST_TERMS and all(
                can_filter(member) and is_pushable(member) for member in members
            )
    return False


def _is_column(operand: Expression | NodeRef) -> bool:
    return isinstance(operand, Property) and operand.name != TYPE


def is_pushable(predicate: Predicate) -> bool:
    """Whether storage itself can decide a predicate about one column."""
    match predicate:
        case IsNull(Property() as left, _):
            return not (left.type.is_vector or left.type.is_blob)
        case Contains(left, _) if left.type.is_list:
            return False
        case Comparison() | InList() | Contains() | StartsWith() | Either():
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


def row_filter(
    predicates: Sequence[Predicate], value_of: ValueOf, names: StoredColumns = AS_NAMED
) -> RowFilter:
    """The filter of predicates that all speak of one row.

    Those of any shape are asked last, in their order: only of rows that have passed the others.
    ``names`` are those of the table that is to be scanned.
    """
    pushed: list[pc.Expression] = []
    kept: list[pc.Expression] = []
    memberships: list[Membership | Tested] = []
    kept_columns: list[str] = []
    columns: list[str] = []
    in_storage: list[Predicate] = []
    decided = iter(pushes([predicate for predicate in predicates if can_filter(predicate)]))
    for predicate in predicates:
        if not can_filter(predicate):
            tested = Tested(predicate, value_of)
            memberships.append(tested)
            kept_columns.extend(tested.columns)
            columns.extend(tested.columns)
            continue
        is_pushed = next(decided)
        condition = _condition(predicate, value_of)
        columns.extend(_columns(predicate))
        if isinstance(condition, Membership):
            memberships.append(condition)
            kept_columns.append(condition.column)
        elif is_pushed:
            pushed.append(condition)
            in_storage.append(predicate)
        else:
            kept.append(condition)
            kept_columns.extend(_columns(predicate))
    needs_sql = any(map(_needs_sql, in_storage))
    return RowFilter(
        tuple(pushed),
        tuple(kept),
        tuple(memberships),
        tuple(dict.fromkeys(kept_columns)),
        tuple(dict.fromkeys(columns)),
        _sql(in_storage, value_of, lambda name: SqlColumn(names.of(name))) if needs_sql else None,
        tuple(_in_storage(in_storage, value_of, names)) if names else tuple(pushed),
    )


def _in_storage(
    predicates: Iterable[Predicate], value_of: ValueOf, names: StoredColumns
) -> Iterator[pc.Expression]:
    for predicate in predicates:
        found = _condition(predicate, value_of, lambda name: pc.field(names.of(name)))
        if isinstance(found, Membership):
            raise AssertionError("storage knows nothing of lists")
        yield found


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


def _needs_sql(predicate: Predicate) -> bool:
    match predicate:
        case Either(groups):
            return any(_needs_sql(member) for group in groups for member in group)
        case IsNull(Property() as left, _) | InList(Property() as left, _):
            return left.type.scalar in _ONLY_IN_SQL
        case Comparison(Property() as left, _, _):
            return left.type.scalar in _ONLY_IN_SQL
    return False


def _sql(predicates: Iterable[Predicate], value_of: ValueOf, field_of: FieldOf) -> str:
    return all_of(_spelled(predicate, value_of, field_of) for predicate in predicates).text


def _spelled(predicate: Predicate, value_of: ValueOf, field_of: FieldOf) -> SqlText:
    if isinstance(predicate, Either):
        return any_of(
            all_of(_spelled(member, value_of, field_of) for member in group)
            for group in predicate.groups
        )
    found: Any = _condition(predicate, value_of, field_of)
    return NEVER if found is _NEVER else found


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
            return [column.name]
        case (
            Comparison(Property() as column, _, _)
            | Contains(Property() as column, _)
            | StartsWith(Property() as column, _)
        ):
            return [column.name]
        case Either(groups):
            return [name for group in groups for member in group for name in _columns(member)]
    raise AssertionError(f"no filter for {predicate}")


def _condition(
    predicate: Predicate, value_of: ValueOf, field_of: FieldOf = pc.field
) -> pc.Expression | Membership:
    match predicate:
        case IsNull(Property() as column, negated):
            tested = field_of(column.name).is_null()
            return ~tested if negated else tested
        case InList(Property() as column, choices):
            return _in_list(column, field_of(column.name), constant_of(choices, value_of))
        case Comparison(Property() as column, op, value):
            return _comparison(column, field_of(column.name), op, constant_of(value, value_of))
        case Contains(Property() as column, value):
            return _contains(column, field_of(column.name), constant_of(value, value_of))
        case StartsWith(Property() as column, value):
            return _starts_with(field_of(column.name), constant_of(value, value_of))
        case Either(groups):
            alternatives = [
                together(and_, [_condition(member, value_of, field_of) for member in group])
                for group in groups
            ]
            return together(or_, alternatives)
    raise AssertionError(f"no filter for {predicate}")


def _starts_with(field: Any, prefix: Constant) -> pc.Expression:
    if prefix is None:
        return _NEVER
    if isinstance(field, SqlColumn):
        return field.starts_with(str(prefix))
    return pc.starts_with(field, prefix)


def _contains(column: Property, field: Any, value: Constant) -> pc.Expression | Membership:
    if value is None:
        return _NEVER
    if column.type.is_list:
        equal = equal_values((value,), column.type.scalar)
        return Membership(column.name, equal[0]) if len(equal) else _NEVER
    if isinstance(field, SqlColumn):
        return field.has_substring(str(value))
    return pc.match_substring(field, value)


def _in_list(column: Property, field: Any, choices: Constant) -> pc.Expression:
    if not isinstance(choices, tuple):
        return _NEVER  # a null list
    equal = equal_values(choices, column.type.scalar)
    return field.isin(equal) if len(equal) else _NEVER


def _comparison(column: Property, field: Any, op: CompareOp, value: Any) -> pc.Expression:
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
