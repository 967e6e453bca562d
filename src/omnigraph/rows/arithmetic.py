"""Arithmetic over whole columns: numbers, days and texts.

Owns what an operator makes of values: null of null, of a division by zero and of what is no
finite number. An integer that fits no 64-bit type is an error, never another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.lang.expressions import ArithmeticOp
from omnigraph.lang.literals import epoch_days

Operand: TypeAlias = pa.Array | pa.Scalar

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_WIDE = pa.decimal256(20, 0)
_DAYS = (epoch_days(date.min), epoch_days(date.max))
_NAMES = {"+": "a sum", "-": "a difference", "*": "a product", "%": "a remainder"}


def combine(left: Operand, op: ArithmeticOp, right: Operand) -> Operand:
    """`left op right`."""
    if pa.types.is_date32(left.type) or pa.types.is_date32(right.type):
        return _days(left, op, right)
    if pa.types.is_string(left.type):
        return pc.binary_join_element_wise(left, right, "")
    if op == "/" or pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return _floats(left, op, right)
    return _integers(left, op, right)


def negative(operand: Operand) -> Operand:
    """`-operand`."""
    if pa.types.is_floating(operand.type):
        return pc.negate(operand.cast(pa.float64()))
    return _integers(pa.scalar(0, pa.int64()), "-", operand)


def finite(numbers: Operand) -> Operand:
    """Floats, null where they are no number."""
    known = pc.is_finite(numbers)
    if isinstance(known, pa.Array) and known.true_count == len(known):
        return numbers
    return pc.if_else(known, numbers, pa.scalar(None, pa.float64()))


def alike(values: Sequence[Operand]) -> list[Operand]:
    """Values of one kind in one type: numbers in the narrowest that holds all of them."""
    types = {value.type for value in values}
    if len(types) == 1:
        return list(values)
    if all(pa.types.is_integer(type_) for type_ in types):
        for type_ in (pa.int64(), pa.uint64()):
            try:
                return [value.cast(type_) for value in values]
            except pa.ArrowInvalid:
                continue
        raise QueryError("integers below 0 and beyond 9223372036854775807 fit no common type")
    if all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types):
        return [value.cast(pa.float64(), safe=False) for value in values]
    first = next((t for t in types if not pa.types.is_null(t)), pa.null())
    return [value.cast(first) for value in values]


# -- integers ----------------------------------------------------------------------


def _integers(left: Operand, op: ArithmeticOp, right: Operand) -> Operand:
    if op == "%":
        return _remainder(left, right)
    if pa.uint64() not in (left.type, right.type):
        try:
            return _CHECKED[op](left.cast(pa.int64()), right.cast(pa.int64()))
        except pa.ArrowInvalid:
            pass  # some result is larger; it may still fit an unsigned one
    return _narrowed(_PLAIN[op](left.cast(_WIDE), right.cast(_WIDE)), op)


def _narrowed(wide: Operand, op: ArithmeticOp) -> Operand:
    """Exact integers as I64 if all fit, else as U64 if these do."""
    for type_ in (pa.int64(), pa.uint64()):
        try:
            return wide.cast(type_)
        except pa.ArrowInvalid:
            continue
    raise QueryError(
        f"{_NAMES[op]} of integers fits neither I64 nor U64; `to_float(…)` of an operand makes "
        "it a float"
    )


def _remainder(left: Operand, right: Operand) -> Operand:
    """The remainder with the sign of the divisor."""
    if pa.uint64() in (left.type, right.type):
        try:
            left, right = left.cast(pa.int64()), right.cast(pa.int64())
        except pa.ArrowInvalid:
            return _exact_remainder(left, right)
    left, right = left.cast(pa.int64()), right.cast(pa.int64())
    none = pa.scalar(None, pa.int64())
    divisor = pc.if_else(pc.equal(right, 0), none, right)
    # The least integer has no opposite; what it leaves divided by -1 is 0, as divided by 1.
    divisor = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, pa.int64()), divisor)
    left_over = pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))
    apart = pc.and_(
        pc.not_equal(left_over, 0), pc.not_equal(pc.less(left_over, 0), pc.less(divisor, 0))
    )
    return pc.if_else(apart, pc.add(left_over, divisor), left_over)


def _exact_remainder(left: Operand, right: Operand) -> Operand:
    """Of integers beyond I64, which are rare enough for one after the other."""
    count = len(left) if isinstance(left, pa.Array) else len(right) if _is_array(right) else 1
    pairs = zip(_listed(left, count), _listed(right, count), strict=True)
    found = [None if a is None or not b else a % b for a, b in pairs]
    whole = pa.array(found, pa.decimal256(20, 0))
    narrowed = _narrowed(whole, "%")
    return narrowed if _is_array(left) or _is_array(right) else narrowed[0]


def _is_array(value: Operand) -> bool:
    return isinstance(value, pa.Array)


def _listed(value: Operand, count: int) -> list[Any]:
    return value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * count


# -- floats ------------------------------------------------------------------------


def _floats(left: Operand, op: ArithmeticOp, right: Operand) -> Operand:
    left = left.cast(pa.float64(), safe=False)
    right = right.cast(pa.float64(), safe=False)
    if op != "%":
        return finite(_PLAIN[op](left, right))
    both = [
        value if _is_array(value) else pa.array([value], pa.float64()) for value in (left, right)
    ]
    numbers = [value.fill_null(np.nan).to_numpy(zero_copy_only=False) for value in both]
    with np.errstate(all="ignore"):
        found = pa.array(np.mod(*numbers), from_pandas=True)
    found = finite(found)
    return found if _is_array(left) or _is_array(right) else found[0]


# -- days --------------------------------------------------------------------------


def _days(left: Operand, op: ArithmeticOp, right: Operand) -> Operand:
    counts = [
        value.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(value.type) else value
        for value in (left, right)
    ]
    found = _integers(counts[0], op, counts[1])
    if left.type == right.type:
        return found
    first, last = _DAYS
    outside = pc.or_(pc.less(found, first), pc.greater(found, last))
    if pc.any(outside).as_py() if _is_array(outside) else outside.as_py():
        raise QueryError("a Date lies outside the years 1 to 9999")
    return found.cast(pa.int32()).cast(pa.date32())
