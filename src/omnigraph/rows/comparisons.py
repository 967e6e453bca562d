"""Comparisons by value: numbers of any kind with each other, texts by code point.

Owns the step from two operands to a mask in which unknown is null. Never converts a
number in a way that changes it; a constant beside narrow floats is placed among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.conditions import turned
from omnigraph.lang.expressions import CompareOp
from omnigraph.lang.types import Scalar
from omnigraph.rows.numbers import place

Operand: TypeAlias = pa.Array | pa.Scalar

_COMPARE: Mapping[CompareOp, Callable[[Operand, Operand], Operand]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_WIDE = pa.decimal128(20, 0)


def compare(left: Operand, op: CompareOp, right: Operand) -> Operand:
    """`left op right`, null where either side is."""
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return compare(right, turned(op), left)
    if left.type == pa.float32() and isinstance(right, pa.Scalar):
        return _narrow_to_number(left, op, right)
    if pa.types.is_boolean(left.type):
        left, right = left.cast(pa.int8()), right.cast(pa.int8())
    elif pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        left, right = _same_integers(left, right)
    elif pa.types.is_integer(left.type) and pa.types.is_floating(right.type):
        return _integer_to_float(left, op, right)
    elif pa.types.is_floating(left.type) and pa.types.is_integer(right.type):
        return _integer_to_float(right, turned(op), left)
    elif pa.types.is_floating(left.type) and left.type != right.type:
        left, right = left.cast(pa.float64()), right.cast(pa.float64())
    return _COMPARE[op](left, right)


def _same_integers(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    if left.type == right.type:
        return left, right
    if pa.uint64() in (left.type, right.type):
        return left.cast(_WIDE), right.cast(_WIDE)
    return left.cast(pa.int64()), right.cast(pa.int64())


def _narrow_to_number(left: Operand, op: CompareOp, right: pa.Scalar) -> Operand:
    number = right.as_py()
    if number is None:
        return pa.nulls(len(left), pa.bool_())
    match place(number, Scalar.F32).test(op):
        case (decides, bound):
            return _COMPARE[decides](left, pa.scalar(bound, left.type))
        case always:
            return pc.if_else(pc.is_valid(left), always, pa.scalar(None, pa.bool_()))


def _integer_to_float(integer: Operand, op: CompareOp, number: Operand) -> Operand:
    """By the whole part of the float, which is exact, then by whether it has a fraction."""
    number = number.cast(pa.float64())
    whole = pc.floor(number)
    # Beyond these every integer is smaller, or larger; the cast below must not see them.
    too_large = pc.greater_equal(whole, 2.0**64)
    too_small = pc.less(whole, -(2.0**63))
    inside = pc.if_else(pc.or_(too_large, too_small), 0.0, whole)
    bound = inside.cast(pa.decimal128(38, 0)).cast(_WIDE)
    exact = integer.cast(_WIDE)
    has_fraction = pc.greater(number, whole)
    below = pc.or_(
        too_large,
        pc.or_(pc.less(exact, bound), pc.and_(pc.equal(exact, bound), has_fraction)),
    )
    below = pc.and_(below, pc.invert(too_small))
    same = pc.and_(
        pc.and_(pc.equal(exact, bound), pc.invert(has_fraction)),
        pc.invert(pc.or_(too_large, too_small)),
    )
    match op:
        case "=":
            return same
        case "!=":
            return pc.invert(same)
        case "<":
            return below
        case "<=":
            return pc.or_(below, same)
        case ">":
            return pc.invert(pc.or_(below, same))
        case ">=":
            return pc.invert(below)
