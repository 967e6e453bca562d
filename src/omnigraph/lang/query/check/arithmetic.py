"""Types of arithmetic: what an operator makes of two types.

Owns that table. Never looks at values.
"""

from __future__ import annotations

from omnigraph.lang.expressions import ArithmeticOp
from omnigraph.lang.functions.kinds import number_of
from omnigraph.lang.types import FLOATS, INTEGERS, Scalar, ValueType


def arithmetic_type(op: ArithmeticOp, left: ValueType, right: ValueType) -> ValueType | None:
    """The type of `left op right`, or None where the operator takes no such operands."""
    if left.is_list or right.is_list:
        return None
    found = _of_scalars(op, left, right)
    if found is None:
        return None
    # A division by zero is null, and so is what is no finite number.
    may_be_null = op in ("/", "%") or found.scalar in FLOATS
    return found.or_null(when=may_be_null or left.nullable or right.nullable)


def _of_scalars(op: ArithmeticOp, left: ValueType, right: ValueType) -> ValueType | None:
    if left.is_numeric and right.is_numeric:
        return ValueType(Scalar.F64) if op == "/" else number_of((left, right)).without_null
    if op == "+" and left.is_text and right.is_text:
        return ValueType(Scalar.STRING)
    if left.scalar is Scalar.DATE and right.scalar in INTEGERS and op in ("+", "-"):
        return ValueType(Scalar.DATE)
    if left.scalar in INTEGERS and right.scalar is Scalar.DATE and op == "+":
        return ValueType(Scalar.DATE)
    if left.scalar is right.scalar is Scalar.DATE and op == "-":
        return ValueType(Scalar.I64)
    return None
