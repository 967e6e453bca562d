"""The types of properties, parameters and result columns.

Owns scalars, lists, vectors, enums and which of them go together. Shared by
both languages; knows nothing of Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Scalar(StrEnum):
    """The base types; the value is the spelling in both languages."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATETIME = "DateTime"
    DATE = "Date"
    VECTOR = "Vector"


BASE_NAMES: tuple[str, ...] = tuple(s.value for s in Scalar if s is not Scalar.VECTOR)
INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMERIC = INTEGERS | FLOATS

INTEGER_RANGE: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}

MAX_VECTOR_DIMENSION = 2**31 - 1
MAX_CARDINALITY = 2**32 - 1


@dataclass(frozen=True, slots=True)
class ValueType:
    """One type: a scalar, possibly a list, an enum, a vector, possibly nullable."""

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    dimension: int | None = None
    enum_values: tuple[str, ...] | None = None
    is_object: bool = False
    """Whether its values have fields, which nothing looks at but who gets the result."""

    def __str__(self) -> str:
        if self.enum_values is not None:
            core = f"enum({', '.join(self.enum_values)})"
        elif self.scalar is Scalar.VECTOR:
            core = f"Vector({self.dimension})"
        else:
            core = "object" if self.is_object else self.scalar.value
        if self.is_list:
            core = f"[{core}]"
        return f"{core}?" if self.nullable else core

    @property
    def is_vector(self) -> bool:
        """Whether it is a `Vector(n)`."""
        return self.scalar is Scalar.VECTOR

    @property
    def is_blob(self) -> bool:
        """Whether it is a `Blob`."""
        return self.scalar is Scalar.BLOB

    @property
    def is_plain(self) -> bool:
        """Whether it is one comparable scalar: no list, vector or blob."""
        return not (self.is_list or self.is_vector or self.is_blob)

    @property
    def is_numeric(self) -> bool:
        """Whether it is one number."""
        return self.scalar in NUMERIC and not self.is_list

    @property
    def is_text(self) -> bool:
        """Whether it is one String (enums included)."""
        return self.scalar is Scalar.STRING and not self.is_list

    def or_null(self, *, when: bool = True) -> ValueType:
        """The same type, nullable too when the condition holds."""
        return replace(self, nullable=True) if when and not self.nullable else self

    @property
    def without_null(self) -> ValueType:
        """The same type, never null."""
        return replace(self, nullable=False) if self.nullable else self

    def element(self) -> ValueType:
        """The type of a list's elements."""
        return replace(self, is_list=False, nullable=False)


@dataclass(frozen=True, slots=True)
class RecordList:
    """A parameter that is a list of records: the fields of each, by name."""

    fields: tuple[tuple[str, ValueType], ...]
    nullable: bool = False

    def __str__(self) -> str:
        listed = ", ".join(f"{name}: {type_}" for name, type_ in self.fields)
        return f"[{{ {listed} }}]{'?' if self.nullable else ''}"

    def field(self, name: str) -> ValueType | None:
        """The type of a field; None for one that there is not."""
        return dict(self.fields).get(name)


def compatible(left: ValueType, right: ValueType) -> bool:
    """Whether values of the two types can be compared or assigned.

    Same list-ness, and the same scalar or both numeric; an enum is a String.
    """
    if left.is_list != right.is_list:
        return False
    if left.scalar in NUMERIC and right.scalar in NUMERIC:
        return True
    return left.scalar is right.scalar and left.dimension == right.dimension
