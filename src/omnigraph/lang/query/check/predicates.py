"""Typing comparisons: which operands each operator takes.

Owns those rules (T7), for the clauses of a match block and for the where clause of a mutation
alike, and that a text beside a time stands for one (T3).
"""

from __future__ import annotations

from omnigraph.lang.literals import parse_date, parse_datetime
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.operands import Operand
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.check.values import describe
from omnigraph.lang.source import Span
from omnigraph.lang.types import Scalar, ValueType, compatible

_TIMES = (Scalar.DATE, Scalar.DATETIME)


def membership(
    checker: Checker, span: Span, left: plan.Expression, choices: Operand
) -> plan.InList | None:
    """`left in choices`."""
    if not left.type.is_plain:
        checker.error(
            span,
            f"the left side of `in` is one value, found {describe(left)}",
            "T7",
            hint="use `contains` for a list property" if left.type.is_list else None,
        )
        return None
    if isinstance(choices, plan.NodeRef) or not choices.type.is_list:
        checker.error(span, f"the right side of `in` is a list, found {describe(choices)}", "T7")
        return None
    if isinstance(choices, plan.Const) and left.type.scalar in _TIMES:
        read = as_time(checker, span, choices, left.type.scalar)
        if read is None:
            return None
        choices = read
    empty = choices == plan.Const((), choices.type)
    if not empty and not compatible(left.type, choices.type.element()):
        checker.error(span, f"cannot look for {describe(left)} in {describe(choices)}", "T7")
        return None
    return plan.InList(left, choices)


def comparison(
    checker: Checker, span: Span, left: plan.Expression, op: terms.FilterOp, right: plan.Expression
) -> plan.Predicate | None:
    """`left op right` for the operators of a filter."""
    match op:
        case "contains":
            return _contains(checker, span, left, right)
        case "starts_with" | "ends_with":
            if left.type.is_text and right.type.is_text:
                made = plan.StartsWith if op == "starts_with" else plan.EndsWith
                return made(left, right)
            checker.error(
                span,
                f"`{op}` compares two Strings, found {describe(left)} and {describe(right)}",
                "T7",
            )
            return None
    for side in (left, right):
        if not side.type.is_plain:
            kind = "list" if side.type.is_list else "vector"
            checker.error(
                span,
                f"`{op}` does not compare a {kind}",
                "T7",
                hint="use `contains` for membership" if side.type.is_list else None,
            )
            return None
    sides = _same_times(checker, span, left, right)
    if sides is None:
        return None
    left, right = sides
    if not compatible(left.type, right.type):
        checker.error(span, f"cannot compare {describe(left)} with {describe(right)}", "T7")
        return None
    return plan.Comparison(left, op, right)


def _same_times(
    checker: Checker, span: Span, left: plan.Expression, right: plan.Expression
) -> tuple[plan.Expression, plan.Expression] | None:
    """The sides of a comparison, a text beside a time read as one; None where it is none."""
    if isinstance(right, plan.Const) and left.type.scalar in _TIMES:
        read = as_time(checker, span, right, left.type.scalar)
        return None if read is None else (left, read)
    if isinstance(left, plan.Const) and right.type.scalar in _TIMES:
        read = as_time(checker, span, left, right.type.scalar)
        return None if read is None else (read, right)
    return left, right


def as_time(checker: Checker, span: Span, const: plan.Const, wanted: Scalar) -> plan.Const | None:
    """A constant beside a Date or a DateTime: its texts are read as such (T3)."""
    if const.type.scalar is not Scalar.STRING or const.value is None:
        return const
    texts = const.value if isinstance(const.value, tuple) else (const.value,)
    try:
        times = tuple(_time(str(text), wanted) for text in texts)
    except ValueError as invalid:
        checker.error(span, str(invalid), "T3")
        return None
    value = times if const.type.is_list else times[0]
    return plan.Const(value, ValueType(wanted, is_list=const.type.is_list))


def _time(text: str, wanted: Scalar) -> plan.ConstantScalar:
    if wanted is Scalar.DATE:
        return parse_date(text)
    try:
        day = parse_date(text)
    except ValueError:
        return parse_datetime(text)
    return parse_datetime(f"{day.isoformat()}T00:00:00Z")


def _contains(
    checker: Checker, span: Span, left: plan.Expression, right: plan.Expression
) -> plan.Contains | None:
    if left.type.is_list and right.type.is_plain:
        if isinstance(right, plan.Const) and left.type.scalar in _TIMES:
            read = as_time(checker, span, right, left.type.scalar)
            if read is None:
                return None
            right = read
        if compatible(left.type.element(), right.type):
            return plan.Contains(left, right)
    if left.type.is_text and right.type.is_text:
        return plan.Contains(left, right)
    checker.error(
        span,
        "`contains` looks for a value in a list or a String in a String, "
        f"found {describe(left)} and {describe(right)}",
        "T7",
    )
    return None
