"""What shape and IR have in common: types, annotations, cardinalities and bounds.

Owns their JSON. Field order is part of the contract.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from omnigraph.lang.schema.ir.document import MAX_ID, Document, Text, compact, misfit
from omnigraph.lang.types import (
    BASE_NAMES,
    MAX_CARDINALITY,
    MAX_VECTOR_DIMENSION,
    Scalar,
    ValueType,
)

PropertyConstraint = Literal["key", "unique", "index"]

PROPERTY_CONSTRAINTS: tuple[PropertyConstraint, ...] = ("key", "unique", "index")
EXPECTED_SCALAR = f"expected one of {', '.join(BASE_NAMES)}"

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_CARDINALITY)]


class Note(Document, frozen=True, omit_defaults=True):
    """An annotation as it is kept: its value decoded to text, its options sorted by name."""

    name: Text
    value: Text | None
    kwargs: dict[Text, Text] = msgspec.field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.value))


def note_value(notes: tuple[Note, ...], name: str) -> str | None:
    """The value of the first annotation of this name."""
    return next((note.value for note in notes if note.name == name), None)


def sorted_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Annotations in their canonical order, each once."""
    return tuple(sorted(set(notes), key=lambda note: compact(note.to_json())))


def check_notes(notes: tuple[Note, ...]) -> None:
    """Refuse annotations out of their canonical order."""
    if len(notes) > 1 and notes != sorted_notes(notes):
        raise misfit("annotations", "annotations must be sorted and distinct")


class Vector(Document, frozen=True):
    """The scalar of a `Vector(n)`."""

    dimension: int = msgspec.field(name="Vector")

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= MAX_VECTOR_DIMENSION:
            raise misfit("Vector", f"{self.dimension} is out of range")


class PropertyType(Document, frozen=True):
    """A property type as it is kept."""

    scalar: Scalar | Vector
    nullable: bool
    is_list: bool = msgspec.field(name="list")
    enum_values: tuple[Text, ...] | None

    def __post_init__(self) -> None:
        values = self.enum_values
        if values is not None:
            if not values or list(values) != sorted(set(values)):
                problem = "enum values must be sorted, distinct and at least one"
                raise misfit("enum_values", problem)
            if self.scalar is not Scalar.STRING or self.is_list:
                raise misfit("enum_values", "only a String has enum values")
        if self.scalar is Scalar.VECTOR:
            raise misfit("scalar", EXPECTED_SCALAR)
        if self.is_list and (isinstance(self.scalar, Vector) or self.scalar is Scalar.BLOB):
            raise misfit("list", f"there are no lists of {self.value_type.scalar.value}")

    @property
    def value_type(self) -> ValueType:
        """The type it stands for."""
        if isinstance(self.scalar, Vector):
            return ValueType(Scalar.VECTOR, self.nullable, self.is_list, self.scalar.dimension)
        return ValueType(self.scalar, self.nullable, self.is_list, enum_values=self.enum_values)


def property_type(value_type: ValueType) -> PropertyType:
    """How a type is kept: its enum values sorted, since their order has no meaning."""
    dimension, values = value_type.dimension, value_type.enum_values
    return PropertyType(
        value_type.scalar if dimension is None else Vector(dimension),
        value_type.nullable,
        value_type.is_list,
        None if values is None else tuple(sorted(values)),
    )


class Bound(Document, frozen=True, omit_defaults=True):
    """One side of a `@range`: an integer or a float, as it was written."""

    integer: int | None = msgspec.field(default=None, name="Integer")
    real: float | None = msgspec.field(default=None, name="Float")

    def __post_init__(self) -> None:
        if (self.integer is None) == (self.real is None):
            raise ValueError("expected an integer or a float")
        if self.integer is not None and not -(2**63) <= self.integer <= MAX_ID:
            raise misfit("Integer", f"{self.integer} is out of range")
        if self.real is not None and not math.isfinite(self.real):
            raise misfit("Float", "expected a finite number")

    @property
    def value(self) -> int | float | None:
        """The number; never None."""
        return self.integer if self.real is None else self.real


def bound(value: float | None) -> Bound | None:
    """One side of a `@range`, None when it is open."""
    if value is None:
        return None
    return Bound(integer=value) if isinstance(value, int) else Bound(real=value)


class Cardinality(Document, frozen=True):
    """How many edges a source may have."""

    minimum: _Count = msgspec.field(name="min")
    maximum: _Count | None = msgspec.field(name="max")
