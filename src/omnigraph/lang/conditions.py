"""Conditions as scans like them: denied, joined, and taken apart again.

Owns what is true where another condition is not, and which conditions hold together. Never looks
at a row.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.expressions import (
    VERDICT,
    CompareOp,
    Comparison,
    Const,
    Either,
    Expression,
    IsNull,
    Not,
    Property,
)

_TURNED: dict[CompareOp, CompareOp] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_DENIED: dict[CompareOp, CompareOp] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


def turned(op: CompareOp) -> CompareOp:
    """The operator that says the same with its sides exchanged."""
    return _TURNED[op]


def denied(condition: Expression) -> Expression:
    """A condition that is true where this one is false, and unknown where it is unknown."""
    match condition:
        case Comparison(left, op, right):
            return Comparison(left, _DENIED[op], right)
        case IsNull(operand, negated):
            return IsNull(operand, not negated)
        case Not(operand):
            return operand
        case Either((alone,)):
            return either(tuple((denied(one),) for one in alone))
        case Either(groups):
            return Either((tuple(denied(either((group,))) for group in groups),))
        case _:
            return Not(condition)


def either(groups: tuple[tuple[Expression, ...], ...]) -> Expression:
    """Groups as one condition; a single condition is itself."""
    if len(groups) == 1 and len(groups[0]) == 1:
        return groups[0][0]
    return Either(groups)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that hold together where this one does, each as a scan likes it best.

    Only for rows that are kept where it is true: a Bool is compared with true, a value on the
    left of a property changes sides.
    """
    match condition:
        case Either((group,)):
            for one in group:
                yield from conjuncts(one)
        case Either(groups):
            yield Either(
                tuple(tuple(c for one in group for c in conjuncts(one)) for group in groups)
            )
        case Property():
            yield Comparison(condition, "=", Const(value=True, type=VERDICT))
        case Not(Property() as operand):
            yield Comparison(operand, "=", Const(value=False, type=VERDICT))
        case Comparison(left, op, Property() as right) if not isinstance(left, Property):
            yield Comparison(right, _TURNED[op], left)
        case _:
            yield condition
