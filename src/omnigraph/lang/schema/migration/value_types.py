"""From one type of a property to another: what becomes of stored values.

Owns the table of type changes. Nullability is no part of it. Never looks at data.
"""

from __future__ import annotations

from enum import Enum, auto

from omnigraph.lang.types import Scalar, ValueType

_WIDER = frozenset(
    {
        (Scalar.I32, Scalar.I64),
        (Scalar.I32, Scalar.F64),
        (Scalar.U32, Scalar.U64),
        (Scalar.U32, Scalar.I64),
        (Scalar.U32, Scalar.F64),
        (Scalar.F32, Scalar.F64),
    }
)


class TypeRelation(Enum):
    """How a type relates to the one before."""

    SAME = auto()
    WIDER = auto()
    """A number that holds every former value; the column is written again."""
    MORE_TEXTS = auto()
    """The same column, and every stored text stays allowed."""
    OTHER_TEXTS = auto()
    """The same column, and some stored texts may no longer be allowed."""
    OTHER = auto()
    """No stored value means anything in it."""


def relation(before: ValueType, after: ValueType) -> TypeRelation:
    """What a change from one type to another does, whatever their nullability."""
    before, after = before.without_null, after.without_null
    if before == after:
        return TypeRelation.SAME
    if before.is_text and after.is_text:
        allowed = after.enum_values
        if allowed is None or (
            before.enum_values is not None and set(before.enum_values) <= set(allowed)
        ):
            return TypeRelation.MORE_TEXTS
        return TypeRelation.OTHER_TEXTS
    if before.is_list or after.is_list:
        # Elements are no column of their own, so not even wider ones can be written alone.
        return TypeRelation.OTHER
    if (before.scalar, after.scalar) in _WIDER:
        return TypeRelation.WIDER
    return TypeRelation.OTHER


def keeps_key_text(before: ValueType) -> bool:
    """Whether the values of a type have one text in a key, also in a wider type.

    Whole numbers read the same as floats. The shortest digits of a float32 are not those of
    the float64 of its value, so ids made of them would change.
    """
    return before.scalar is not Scalar.F32
