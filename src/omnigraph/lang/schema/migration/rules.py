"""Constraints compared: what makes two the same, and what one says about another.

Owns identity by stable ids, whatever members are called, and which constraint follows from
others. Pure functions; never adds a step.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

import msgspec

from omnigraph.lang.schema.catalog import Scalar as Value
from omnigraph.lang.schema.ir.document import Bound
from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    Field,
    IRConstraint,
    MemberConstraint,
    PropertyField,
    RangeConstraint,
)
from omnigraph.lang.schema.ir.shape import (
    MEMBER_RULES,
    Check,
    CheckRule,
    Range,
    RangeRule,
    Rule,
)
from omnigraph.lang.structural import spelling
from omnigraph.lang.types import Scalar, ValueType

Member = int | str
"""A property by its id, or an end of an edge by its role."""
ConstraintKey = tuple[str, frozenset[Member], str]


def member(field: Field) -> Member:
    """What a member of a constraint is, whatever it is called."""
    return field.property_id if isinstance(field, PropertyField) else field.role


def members(constraint: IRConstraint) -> frozenset[Member]:
    """What a constraint is about."""
    return frozenset(map(member, constraint.fields))


def constraint_key(constraint: IRConstraint) -> ConstraintKey:
    """What makes two constraints the same."""
    rest = ""
    if isinstance(constraint, RangeConstraint):
        rest = msgspec.json.encode((constraint.minimum, constraint.maximum)).decode()
    elif isinstance(constraint, CheckConstraint):
        rest = constraint.pattern
    return (constraint.kind, members(constraint), rest)


def rule_of(constraint: IRConstraint, names: Mapping[int, str]) -> Rule:
    """A constraint in the form of the shape; ``names`` are those of properties that stay."""
    if isinstance(constraint, RangeConstraint):
        name = _name(constraint.field, names)
        return RangeRule(Range(name, constraint.minimum, constraint.maximum))
    if isinstance(constraint, CheckConstraint):
        return CheckRule(Check(_name(constraint.field, names), constraint.pattern))
    found = sorted(_name(field, names) for field in constraint.fields)
    return MEMBER_RULES[constraint.kind](tuple(found))


def _name(field: Field, names: Mapping[int, str]) -> str:
    if isinstance(field, PropertyField):
        return names.get(field.property_id, field.property_name)
    return spelling(field.name, set(names.values()))


def is_implied(constraint: IRConstraint, accepted: Iterable[IRConstraint]) -> bool:
    """Whether rows that obey the accepted constraints obey this one too."""
    if isinstance(constraint, RangeConstraint):
        about = members(constraint)
        known = [
            found
            for found in accepted
            if isinstance(found, RangeConstraint) and members(found) == about
        ]
        low, high = bound_value(constraint.minimum), bound_value(constraint.maximum)
        lows = [value for found in known if (value := bound_value(found.minimum)) is not None]
        highs = [value for found in known if (value := bound_value(found.maximum)) is not None]
        # Where there is any range at all, no value is NaN.
        return (
            bool(known)
            and (low is None or (bool(lows) and max(lows) >= low))
            and (high is None or (bool(highs) and min(highs) <= high))
        )
    if constraint.kind == "unique":
        # Rows that differ in some members differ in more of them too.
        return any(
            found.kind in ("key", "unique") and members(found) <= members(constraint)
            for found in accepted
            if isinstance(found, MemberConstraint)
        )
    return False


def range_admits(constraint: RangeConstraint, value: Value, type_: ValueType) -> bool:
    """Whether a number lies in a range once it is stored in a type."""
    if isinstance(value, str):
        return False
    # What is stored in an F32 is compared as the F64 of the same value.
    is_single = type_.scalar is Scalar.F32
    stored = struct.unpack("<f", struct.pack("<f", value))[0] if is_single else value
    low, high = bound_value(constraint.minimum), bound_value(constraint.maximum)
    return (low is None or low <= stored) and (high is None or stored <= high)


def bound_value(bound: Bound | None) -> int | float | None:
    """One side of a range, None when it is open."""
    return None if bound is None else bound.value
