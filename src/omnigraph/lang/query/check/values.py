"""Typing literals and scalar operands.

Owns the step from a literal to a constant of its Python type, and whether a
literal fits a property. Which operands an operator takes is decided elsewhere.
"""

from __future__ import annotations

from typing import cast

from omnigraph.lang.literals import parse_date, parse_datetime
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.params import F32_OVERFLOW
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, NUMERIC, Scalar, ValueType, compatible

_SCALAR_OF_KIND = {
    "string": Scalar.STRING,
    "integer": Scalar.I64,
    "float": Scalar.F64,
    "bool": Scalar.BOOL,
    "date": Scalar.DATE,
    "datetime": Scalar.DATETIME,
}


def constant(checker: Checker, literal: terms.Literal | terms.ListLiteral) -> plan.Const | None:
    """A literal as a typed constant, or None after reporting what is wrong with it."""
    if isinstance(literal, terms.ListLiteral):
        return _constant_list(checker, literal)
    if literal.kind == "null":
        # The parser admits null only as an assigned value, which never comes here.
        return plan.Const(None, ValueType(Scalar.STRING, nullable=True))
    return _constant_scalar(checker, literal)


def _constant_scalar(checker: Checker, literal: terms.Literal) -> plan.Const | None:
    value: plan.ConstantScalar = cast("plan.ConstantScalar", literal.value)
    try:
        if literal.kind == "date":
            value = parse_date(str(value))
        elif literal.kind == "datetime":
            value = parse_datetime(str(value))
    except ValueError as invalid:
        checker.error(literal.span, str(invalid), "T3")
        return None
    return plan.Const(value, ValueType(_SCALAR_OF_KIND[literal.kind]))


def _constant_list(checker: Checker, literal: terms.ListLiteral) -> plan.Const | None:
    items = [
        _constant_scalar(checker, item) for item in literal.items if isinstance(item, terms.Literal)
    ]
    known = [item for item in items if item is not None]
    if len(known) != len(items):
        return None
    scalars = {item.type.scalar for item in known}
    if len(scalars) > 1 and not scalars <= NUMERIC:
        checker.error(literal.span, "a list literal holds values of one kind")
        return None
    # Mixed integers and floats are a list of floats.
    scalar = Scalar.F64 if len(scalars) > 1 else next(iter(scalars), Scalar.STRING)
    values = tuple(cast("plan.ConstantScalar", item.value) for item in known)
    return plan.Const(values, ValueType(scalar, is_list=True))


def describe(value: plan.Output | None) -> str:
    """The type of an operand as messages name it."""
    if isinstance(value, plan.NodeRef):
        return f"node {value.node_type}"
    return str(value.type) if value is not None else "unknown"


def fit_literal(
    checker: Checker,
    literal: terms.Literal | terms.ListLiteral,
    target: ValueType,
    what: str,
    *,
    storing: bool,
) -> plan.Const | None:
    """A literal as a value of a property's type, or None after reporting T3.

    Stored values must be of the property's type; compared ones may be any number
    where the property is a number.
    """
    if isinstance(literal, terms.Literal) and literal.kind == "null":
        if target.nullable:
            return plan.Const(None, target)
        checker.error(literal.span, f"{what} is not nullable", "T3")
        return None
    const = constant(checker, literal)
    if const is None:
        return None
    complaint = _misfit(const, target, storing=storing)
    if complaint is not None:
        checker.error(literal.span, f"{what}: {complaint}", "T3")
        return None
    if storing and target.scalar in FLOATS and not target.is_list:
        return plan.Const(float(cast("float", const.value)), target)
    if storing and (target.scalar in FLOATS or target.is_vector):
        values = tuple(float(item) for item in cast("tuple[float, ...]", const.value))
        return plan.Const(values, target)
    return plan.Const(const.value, target if storing else const.type)


def _misfit(const: plan.Const, target: ValueType, *, storing: bool) -> str | None:
    """Why a constant is no value of a type, or None when it is one."""
    if target.is_blob:
        return "a Blob is given as a parameter, never as a literal"
    if target.is_vector:
        return _vector_misfit(const, target)
    values = const.value if isinstance(const.value, tuple) else (const.value,)
    if const.type.is_list and target.is_list and not values:
        return None
    if not compatible(const.type, target):
        return f"expected {target.without_null}, found {const.type}"
    if target.enum_values is not None:
        wrong = [value for value in values if value not in target.enum_values]
        if wrong:
            return f"{wrong[0]!r} is not one of {', '.join(target.enum_values)}"
    if storing and target.scalar in INTEGER_RANGE:
        if const.type.scalar in FLOATS:
            return f"expected {target.without_null}, found {const.type}"
        low, high = INTEGER_RANGE[target.scalar]
        if any(not low <= cast("int", value) <= high for value in values):
            return f"out of range for {target.scalar}"
    return narrow_misfit(values) if storing and target.scalar is Scalar.F32 else None


def narrow_misfit(values: tuple[plan.Constant, ...]) -> str | None:
    """Whether a number is too large for the 32 bits of a float or of a vector's component."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if any(abs(number) >= F32_OVERFLOW for number in numbers):
        return "a number is out of range for F32"
    return None


def _vector_misfit(const: plan.Const, target: ValueType) -> str | None:
    if not isinstance(const.value, tuple) or (const.value and const.type.scalar not in NUMERIC):
        return f"expected {target.without_null}, found {const.type}"
    if len(const.value) != target.dimension:
        return f"expected {target.dimension} numbers, found {len(const.value)}"
    return narrow_misfit(const.value)
