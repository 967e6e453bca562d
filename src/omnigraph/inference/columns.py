"""Columns: the property that each would be, its type, and whether it could be a key.

Owns names, types and what follows from the values. Looks at one table at a time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.types import INTEGER_RANGE, Scalar

_WORD = re.compile(r"[A-Za-z0-9]+")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_IRREGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an input, and the property it would be."""

    source: str
    name: str
    type: str
    values: pa.Array
    has_nulls: bool
    is_unique: bool
    note: str | None = None
    """Why it is not what one might expect."""

    @property
    def spelled(self) -> str:
        """The type as a schema has it."""
        return f"{self.type}?" if self.has_nulls else self.type

    @property
    def can_be_key(self) -> bool:
        """Whether it tells every row from every other."""
        return self.is_unique and not self.has_nulls and self.type in {"String", "I32", "I64"}


def column_of(source: str, values: pa.ChunkedArray, *, is_text: bool = False) -> Column:
    """What a column would be; ``is_text`` where its values are written in a file."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    known = whole.drop_null()
    try:
        is_unique = len(known) > 0 and len(known.unique()) == len(known)
    except pa.ArrowNotImplementedError:  # lists and structures are no keys
        is_unique = False
    type_, note = _type(known), None
    if is_text and pa.types.is_timestamp(known.type) and known.type.tz is None:
        type_, note = "String", "a DateTime is written with its zone: 2026-05-01T12:00:00Z"
    name = property_name(source)
    return Column(source, name, type_, known, whole.null_count > 0, is_unique, note)


def property_name(source: str) -> str:
    """A name that a property can have: as it is if it can be, else in lower case."""
    if re.fullmatch(r"[a-z_][A-Za-z0-9_]*", source):
        return source
    words = [part.lower() for word in _WORD.findall(source) for part in _PARTS.findall(word)]
    name = "_".join(words) or "column"
    return name if name[0].isalpha() else f"_{name}"


def type_name(source: str) -> str:
    """The name of a type for the rows of an input: its words in the singular."""
    words = [part for word in _WORD.findall(source) for part in _PARTS.findall(word)]
    if not words:
        return "Thing"
    words[-1] = singular(words[-1])
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name[0].isalpha() else f"T{name}"


def singular(word: str) -> str:
    """A noun in the singular, as far as its ending tells."""
    low = word.lower()
    if low in _IRREGULAR:
        found = _IRREGULAR[low]
        return found.capitalize() if word[0].isupper() else found
    if low.endswith("ies") and len(low) > 4:
        return f"{word[:-3]}y"
    if low.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _type(values: pa.Array) -> str:
    """The type of a property that holds these values."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_fixed_size_list(type_) and pa.types.is_floating(type_.value_type):
        return f"Vector({type_.list_size})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"[{_type(values.flatten())}]"
    if pa.types.is_boolean(type_):
        return "Bool"
    if pa.types.is_integer(type_):
        return _integer(values)
    if pa.types.is_float32(type_):
        return "F32"
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "F64"
    if pa.types.is_date(type_):
        return "Date"
    if pa.types.is_timestamp(type_):
        return "DateTime"
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return "Blob"
    return "String"


def _integer(values: pa.Array) -> str:
    if not len(values):
        return "I64"
    bounds = pc.min_max(values).as_py()
    for scalar in (Scalar.I32, Scalar.I64):
        least, most = INTEGER_RANGE[scalar]
        if least <= bounds["min"] and bounds["max"] <= most:
            return scalar.value
    return Scalar.U64.value
