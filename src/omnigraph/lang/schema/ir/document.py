"""Stored JSON documents as structs: read strictly, written canonically, hashed.

Owns the base of every document, its bytes and the complaints about a text that is
none, which name the path to what is wrong; and what shape and IR have in common: types,
annotations, cardinalities and bounds. The order of fields is part of the contract.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NoReturn, TypeVar

import msgspec

from omnigraph.errors import SchemaError
from omnigraph.lang.types import (
    BASE_NAMES,
    MAX_CARDINALITY,
    MAX_VECTOR_DIMENSION,
    Scalar,
    ValueType,
)

Json = dict[str, Any]

MAX_ID = 2**64 - 1

Identity = Annotated[int, msgspec.Meta(ge=1)]
"""A stable id; zero is never one."""
# A lone surrogate can be spelled in JSON, but never stored or hashed.
Text = Annotated[str, msgspec.Meta(pattern="^[^\ud800-\udfff]*$")]

_WORDING = (
    (r"Object contains unknown field (`.*`)", r"unknown field \1"),
    (r"Object missing required field (`.*`)", r"the field \1 is missing"),
    (r"Expected `bool`.*", "expected true or false"),
    (r"Expected `int` >= 1", "an identity is never zero"),
    (r"Expected `str` matching regex .*", "the string is not valid Unicode"),
)
_COMPLAINT = re.compile(r"(?:\.(\w+): )?(.*?)(?: - at (?:.* in )?`\$\.?([^`]*)`)?", re.DOTALL)

PropertyConstraint = Literal["key", "unique", "index"]

PROPERTY_CONSTRAINTS: tuple[PropertyConstraint, ...] = ("key", "unique", "index")
EXPECTED_SCALAR = f"expected one of {', '.join(BASE_NAMES)}"

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_CARDINALITY)]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object: the fields in their order are its contract."""

    def to_json(self) -> Json:
        """The document as plain data."""
        return dict(msgspec.json.decode(msgspec.json.encode(self)))

    def render(self) -> str:
        """The document for people, with a line break at the end."""
        plain = msgspec.to_builtins(self)
        return json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    def digest(self) -> str:
        """The hash of the document: SHA-256 over its compact JSON."""
        text = compact(msgspec.to_builtins(self))
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


_Read = TypeVar("_Read", bound=Document)


def compact(plain: Any) -> str:
    """JSON without blanks, fields in the order they were put in."""
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def misfit(field: str, problem: str) -> ValueError:
    """What a document raises when one of its fields contradicts the others."""
    return ValueError(f".{field}: {problem}")


def read_document(
    text: str | bytes, kind: type[_Read], name: str, choices: Mapping[str, str]
) -> _Read:
    """The document a text holds; SchemaError says what is wrong with any other text.

    ``choices`` words what a field expects that takes only certain values.
    """
    try:
        raw = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"invalid {name}: {error}") from None
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise SchemaError(f"invalid {name}{_worded(str(error), choices)}") from None
    except UnicodeError:
        raise SchemaError(f"invalid {name}: a string is not valid Unicode") from None


def _worded(complaint: str, choices: Mapping[str, str]) -> str:
    """A complaint of the decoder in our words: ` at path: problem`."""
    found = _COMPLAINT.fullmatch(complaint)
    field, problem, path = found.groups() if found else (None, complaint, None)
    where = ".".join(filter(None, (path, field)))
    last = re.search(r"(\w+)(?:\[[^]]*\])*$", where)
    if problem.startswith("Invalid") and last and last[1] in choices:
        problem = choices[last[1]]
    for pattern, wording in _WORDING:
        problem = re.sub(pattern, wording, problem, flags=re.DOTALL)
    problem = problem[:1].lower() + problem[1:]
    return f" at {where}: {problem}" if where else f": {problem}"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field stands twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


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
