"""Evaluating expressions: the one way from an expression and some rows to values.

Owns the walk over an expression, a whole column at a time, and that a condition keeps the rows
where it is true. What a row is, those who have rows say. Never reads storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.expressions import (
    Aggregate,
    Arithmetic,
    Call,
    Case,
    Comparison,
    Computed,
    Const,
    Constant,
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
    ParamRef,
    Property,
    StartsWith,
    TextMatch,
)
from omnigraph.rows.arithmetic import alike, combine, negative
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.rows.comparisons import compare
from omnigraph.rows.conditions import (
    all_of,
    any_of,
    in_constants,
    in_lists,
    mask_of,
    repeated,
    text_test,
)
from omnigraph.rows.constants import compared_type, constant_scalar, python_value

Operand: TypeAlias = pa.Array | pa.Scalar
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
# What a value takes, roughly, while numbers of two kinds are made alike.
_VALUE = 8


class Rows(Protocol):
    """Rows that an expression looks at."""

    @property
    def count(self) -> int:
        """How many there are."""

    def column(self, found: Property) -> pa.Array:
        """A property of each."""

    def computed(self, value: Computed) -> pa.Array:
        """What was computed for each and has a name."""

    def aggregated(self, value: Aggregate) -> pa.Array:
        """What was made of the group that each stands for."""

    def nobody(self, node: NodeRef) -> pa.Array:
        """Where an optional node is missing."""

    def searched(self, match: TextMatch) -> pa.Array:
        """Where a full-text search finds the node."""

    def fixed(self, value: Fixed) -> Constant:
        """What a literal, a parameter or the present moment stands for."""

    def take(self, chosen: Positions) -> Rows:
        """Some of them."""

    def need(self, size: int, /) -> None:
        """Say that so many bytes are needed for a while."""

    def look(self) -> None:
        """End what nobody waits for."""


def evaluate(expression: Expression, rows: Rows) -> Operand:
    """The values of an expression: one for each row, or one scalar for all."""
    match expression:
        case Property():
            found = rows.column(expression)
            return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        case Const() | ParamRef() | Now():
            return constant_scalar(rows.fixed(expression), compared_type(expression))
        case Computed():
            return rows.computed(expression)
        case Aggregate():
            return rows.aggregated(expression)
        case Arithmetic(first, rest):
            found = evaluate(first, rows)
            for op, operand in rest:
                rows.need(2 * _VALUE * rows.count)
                found = combine(found, op, evaluate(operand, rows))
            return found
        case Negative(operand):
            rows.need(_VALUE * rows.count)
            return negative(evaluate(operand, rows))
        case Call():
            return _called(expression, rows)
        case Case():
            return _chosen(expression, rows)
        case ListOf():
            return _listed(expression, rows)
        case _:
            return _truth(expression, rows)


def values_of(expression: Expression, rows: Rows) -> pa.Array:
    """One value for each row."""
    found = evaluate(expression, rows)
    if isinstance(found, pa.Scalar):
        rows.need(_VALUE * rows.count)
        return repeated(found, rows.count)
    return found


def constant_of(expression: Expression, fixed: Callable[[Fixed], Constant]) -> Constant:
    """What an expression without variables stands for."""
    if isinstance(expression, Const | ParamRef | Now):
        return fixed(expression)
    found = evaluate(expression, _NoRows(fixed))
    return python_value(found if isinstance(found, pa.Scalar) else found[0])


# -- conditions --------------------------------------------------------------------


def passing(conditions: Sequence[Expression], rows: Rows) -> Mask:
    """The rows for which every condition is true."""
    left: Positions | None = None
    for condition in conditions:
        rows.need(2 * _VALUE * rows.count)
        # What others have decided already is not read any more.
        hit = _passes(condition, rows if left is None else rows.take(left))
        if hit.all():
            continue
        left = np.flatnonzero(hit) if left is None else left[hit]
        if not len(left):
            break
    mask = np.full(rows.count, left is None)
    if left is not None:
        mask[left] = True
    return mask


def _passes(condition: Expression, rows: Rows) -> Mask:
    if isinstance(condition, Either):
        mask: Mask = reduce(np.logical_or, (passing(group, rows) for group in condition.groups))
        return mask
    return mask_of(evaluate(condition, rows), rows.count)


def _truth(condition: Expression, rows: Rows) -> Operand:
    match condition:
        case Comparison(left, op, right):
            sides = evaluate(left, rows), evaluate(right, rows)
            rows.need((2 if sides[0].type == sides[1].type else 4 * _VALUE) * rows.count)
            return compare(sides[0], op, sides[1])
        case IsNull(NodeRef() as node, negated):
            nobody = rows.nobody(node)
            return pc.invert(nobody) if negated else nobody
        case IsNull(operand, negated) if not isinstance(operand, NodeRef):
            found = evaluate(operand, rows)
            return pc.is_valid(found) if negated else pc.is_null(found)
        case InList(operand, choices):
            return _member(operand, choices, rows)
        case Contains(left, right):
            if left.type.is_list:
                return _member(right, left, rows)
            return _text_test("contains", left, right, rows)
        case StartsWith(left, right):
            return _text_test("starts", left, right, rows)
        case EndsWith(left, right):
            return _text_test("ends", left, right, rows)
        case TextMatch():
            return rows.searched(condition)
        case Not(operand):
            return pc.invert(evaluate(operand, rows))
        case Either(groups):
            rows.need(2 * rows.count)
            return any_of([all_of([evaluate(one, rows) for one in group]) for group in groups])
    raise AssertionError(f"unknown condition {condition}")


def _text_test(test: str, left: Expression, right: Expression, rows: Rows) -> Operand:
    return text_test(test, evaluate(left, rows), evaluate(right, rows), rows.look)


def _member(wanted: Expression, choices: Expression, rows: Rows) -> Operand:
    values = evaluate(wanted, rows)
    if isinstance(choices, ParamRef | Const):
        return in_constants(values, rows.fixed(choices))
    lists = evaluate(choices, rows)
    if isinstance(lists, pa.Scalar):
        lists = repeated(lists, rows.count)
    return in_lists(values, lists)


# -- values ------------------------------------------------------------------------


def _called(call: Call, rows: Rows) -> Operand:
    # The library is large, and most queries call nothing.
    from omnigraph.rows.functions.evaluate import evaluate as apply

    if call.name == "today":
        return constant_scalar(rows.fixed(Now()), Now().type).cast(pa.date32())
    arguments = [evaluate(argument, rows) for argument in call.arguments]
    rows.need(2 * _VALUE * rows.count)
    rows.look()
    return apply(call.name, arguments, rows.count, call.type, bounds=rows)


def _listed(made: ListOf, rows: Rows) -> Operand:
    items = [values_of(item, rows) for item in made.items]
    rows.need(2 * _VALUE * rows.count * len(items))
    places = np.arange(rows.count * len(items)).reshape(len(items), rows.count).T.reshape(-1)
    values = pa.concat_arrays(alike(items)).take(pa.array(places))
    offsets = np.arange(rows.count + 1, dtype=np.int32) * len(items)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _chosen(case: Case, rows: Rows) -> Operand:
    """For each row the value beside its first true condition; no other is computed for it."""
    left = np.arange(rows.count)
    places: list[Positions] = []
    parts: list[Operand] = []
    for condition, value in case.branches:
        some = rows if len(left) == rows.count else rows.take(left)
        hit = _passes(condition, some)
        _add_part(value, left[hit], rows, places, parts)
        left = left[~hit]
    if case.otherwise is not None:
        _add_part(case.otherwise, left, rows, places, parts)
    elif len(left):
        places.append(left)
        parts.append(pa.nulls(len(left), parts[0].type if parts else arrow_type(case.type)))
    if not parts:
        return pa.nulls(0, arrow_type(case.type))
    rows.need(4 * _VALUE * rows.count)
    whole = pa.concat_arrays(alike(parts))
    order = np.empty(rows.count, dtype=np.int64)
    order[np.concatenate(places)] = np.arange(rows.count)
    return whole.take(pa.array(order))


def _add_part(
    value: Expression,
    chosen: Positions,
    rows: Rows,
    places: list[Positions],
    parts: list[Operand],
) -> None:
    if not len(chosen):
        return
    some = rows if len(chosen) == rows.count else rows.take(chosen)
    places.append(chosen)
    parts.append(values_of(value, some))


@dataclass(frozen=True, slots=True)
class _NoRows:
    """One row that binds nothing."""

    value_of: Callable[[Fixed], Constant]
    count: int = 1

    def column(self, found: Property) -> pa.Array:
        raise AssertionError(f"{found} is a value of rows")

    def computed(self, value: Computed) -> pa.Array:
        raise AssertionError(f"{value} is a value of rows")

    def aggregated(self, value: Aggregate) -> pa.Array:
        raise AssertionError(f"{value} is a value of groups")

    def nobody(self, node: NodeRef) -> pa.Array:
        raise AssertionError(f"{node} is a node of rows")

    def searched(self, match: TextMatch) -> pa.Array:
        raise AssertionError(f"{match} searches rows")

    def fixed(self, value: Fixed) -> Constant:
        return self.value_of(value)

    def take(self, chosen: Positions) -> Rows:
        return _NoRows(self.value_of, len(chosen))

    def need(self, size: int) -> None:
        """Nothing to speak of."""

    def look(self) -> None:
        """Done before anybody could stop waiting."""
