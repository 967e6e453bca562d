"""The JSON spelling of what shape and IR have in common, and how it is hashed.

Owns types, annotations, cardinalities and bounds as JSON, compact and pretty
text, and the hash of a document. Field order is part of the contract.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.lang.types import Scalar, ValueType

Json = dict[str, Any]
Bound = int | float | None
PropertyConstraint = Literal["key", "unique", "index"]

PROPERTY_CONSTRAINTS: tuple[PropertyConstraint, ...] = ("key", "unique", "index")


@dataclass(frozen=True, slots=True)
class Note:
    """An annotation as it is kept: its value decoded to text, its options sorted by name."""

    name: str
    value: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> Json:
        """Name and value, and `kwargs` where there are any."""
        document: Json = {"name": self.name, "value": self.value}
        if self.options:
            document["kwargs"] = dict(self.options)
        return document


def note_value(notes: tuple[Note, ...], name: str) -> str | None:
    """The value of the first annotation of this name."""
    return next((note.value for note in notes if note.name == name), None)


def sorted_notes(notes: list[Note]) -> tuple[Note, ...]:
    """Annotations in their canonical order, each once."""
    return tuple(sorted(set(notes), key=lambda note: compact(note.to_json())))


def type_to_json(value_type: ValueType) -> Json:
    """A property type."""
    scalar: Any = value_type.scalar.value
    if value_type.scalar is Scalar.VECTOR:
        scalar = {"Vector": value_type.dimension}
    values = value_type.enum_values
    return {
        "scalar": scalar,
        "nullable": value_type.nullable,
        "list": value_type.is_list,
        "enum_values": None if values is None else sorted(values),
    }


def bound_to_json(bound: Bound) -> Json | None:
    """One side of a `@range`."""
    if bound is None:
        return None
    return {"Integer": bound} if isinstance(bound, int) else {"Float": bound}


def compact(document: Any) -> str:
    """JSON without blanks, fields in the order they were put in."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pretty(document: Mapping[str, Any]) -> str:
    """JSON for people, with a line break at the end."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def digest(document: Mapping[str, Any]) -> str:
    """The hash of a document: SHA-256 over its compact JSON."""
    return "sha256:" + hashlib.sha256(compact(document).encode()).hexdigest()
