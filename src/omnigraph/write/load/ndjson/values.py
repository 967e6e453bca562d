"""Values: one JSON value turned into the value that is stored, or told why not.

Owns the strict conversion of single values and its messages. Used where whole
columns were refused; never for input that is right as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from omnigraph.errors import Rule
from omnigraph.lang.cursor import shorten
from omnigraph.lang.literals import parse_date
from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.write.load.columns import cells
from omnigraph.write.load.ndjson.json_text import Decimal, Integer

EXTERNAL = (
    "this graph admits no external blob URIs; give the content itself as"
    ' "base64:" and its standard base64 text'
)
NOT_BASE64 = "what follows `base64:` is not standard base64 with padding"
BYTES = "@bytes"
"""The one member of an object that stands for bytes of Python, which have no JSON."""
_NEAR_F32_MAX = 3.4e38


class ValueTypeError(Exception):
    """A value that its type cannot hold; ``index`` is the element of a list that is wrong."""

    def __init__(self, text: str, *, rule: Rule = "type", index: int | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.rule: Rule = rule
        self.index = index


def convert(kind: ValueType, value: Any) -> Any:
    """The stored form of a JSON value that is not null.

    Dates and times become their numbers; float32 stays text, since only the column
    can round it once.
    """
    if kind.dimension is not None:
        return _vector(kind.dimension, value)
    if not kind.is_list:
        return _SCALARS[kind.scalar](kind.scalar, value)
    if type(value) is not list:
        raise ValueTypeError(f"expected {kind.without_null}, found {describe(value)}")
    return _elements(value, lambda item: _SCALARS[kind.scalar](kind.scalar, item))


def column_of(kind: ValueType, values: list[Any], type_: pa.DataType) -> pa.Array:
    """A column of converted values."""
    if kind.dimension is not None:
        # All texts in one go; rounding each from its text is what the fast path does.
        lists = _float32_lists(values)
        return cells.vectors_of_lists(lists, kind.dimension)
    if kind.scalar is Scalar.F32:
        if kind.is_list:
            return _float32_lists(values)
        return pa.array(values, pa.string()).cast(pa.float32())
    if kind.scalar in (Scalar.DATE, Scalar.DATETIME):
        number = pa.int32() if kind.scalar is Scalar.DATE else pa.int64()
        if kind.is_list:
            to = type_.value_type
            return cells.in_lists(pa.array(values, pa.list_(number)), lambda a: a.cast(to))
        return pa.array(values, number).cast(type_)
    return pa.array(values, type_)


def describe(value: Any) -> str:
    """A JSON value as a message names it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Integer() | Decimal():
            return f"the number {shorten(value)}"
        case str():
            return f"the string {shorten(json.dumps(value, ensure_ascii=False))}"
        case list():
            return "an array"
        case {"@bytes": _}:
            return "bytes"
        case _:
            return "an object"


def _float32_lists(values: list[Any]) -> pa.Array:
    texts = pa.array(values, pa.list_(pa.string()))
    return cells.in_lists(texts, lambda flat: flat.cast(pa.float32()))


def _elements(values: list[Any], convert_one: Callable[[Any], Any]) -> list[Any]:
    converted = []
    for index, value in enumerate(values):
        if value is None:
            raise ValueTypeError("a list has no null elements", index=index)
        try:
            converted.append(convert_one(value))
        except ValueTypeError as misfit:
            raise ValueTypeError(f"element {index + 1}: {misfit.text}", index=index) from None
    return converted


def _vector(dimension: int, value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueTypeError(f"expected an array of {dimension} numbers, found {describe(value)}")
    if len(value) != dimension:
        raise ValueTypeError(f"expected {dimension} numbers, found {len(value)}")
    return _elements(value, lambda item: _float(Scalar.F32, item))


def _text(scalar: Scalar, value: Any) -> str:
    if type(value) is not str:
        raise _wrong(scalar, value)
    return value


def _bool(scalar: Scalar, value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(scalar, value)
    return value


def _integer(scalar: Scalar, value: Any) -> int:
    if type(value) is not Integer:
        raise _wrong(scalar, value)
    least, most = INTEGER_RANGE[scalar]
    return _within(value, least, most, f"fit {scalar.value}")


def _float(scalar: Scalar, value: Any) -> float | str:
    if type(value) is not Integer and type(value) is not Decimal:
        raise _wrong(scalar, value)
    number = float(value)
    if scalar is Scalar.F32 and abs(number) > _NEAR_F32_MAX:
        number = pa.scalar(str(value)).cast(pa.float32()).as_py()
    if not math.isfinite(number):
        raise ValueTypeError(f"{shorten(value)} does not fit {scalar.value}")
    return str(value) if scalar is Scalar.F32 else number


def _date(scalar: Scalar, value: Any) -> int:
    if type(value) is Integer:
        return _within(value, cells.FIRST_DAY, cells.LAST_DAY, "lie in the years 1 to 9999")
    days = cells.read_date(_text(scalar, value))
    if days is None:
        raise ValueTypeError(_bad_date(value))
    return days


def _bad_date(text: str) -> str:
    said = f"invalid Date literal '{shorten(text)}'"
    try:
        parse_date(text[:10])
    except ValueError:
        return f"{said}; write YYYY-MM-DD"
    if cells.read_datetime(text) is None:
        return said
    return f"{said}: a Date has no time of day; write '{text[:10]}'"


def _datetime(scalar: Scalar, value: Any) -> int:
    if type(value) is Integer:
        return _within(value, cells.FIRST_MILLI, cells.LAST_MILLI, "lie in the years 1 to 9999")
    millis = cells.read_datetime(_text(scalar, value))
    if millis is None:
        said = f"invalid DateTime literal '{shorten(value)}'"
        raise ValueTypeError(f"{said}; write it like 2024-05-01T12:00:00Z, with a zone")
    return millis


def _blob(scalar: Scalar, value: Any) -> bytes:
    content = cells.read_blob(_text(scalar, value))
    if content is None:
        if not value.startswith(cells.BASE64):
            raise ValueTypeError(EXTERNAL, rule="format")
        raise ValueTypeError(NOT_BASE64)
    return content


def _within(digits: Integer, least: int, most: int, must: str) -> int:
    # Longer texts than any that fits are not worth converting, and may not be convertible.
    number = int(digits) if len(digits) <= 40 else None
    if number is None or not least <= number <= most:
        raise ValueTypeError(f"{shorten(digits)} does not {must}")
    return number


def _wrong(scalar: Scalar, value: Any) -> ValueTypeError:
    hint = ""
    if scalar in INTEGERS and type(value) is Decimal:
        hint = "; write it without a fraction and an exponent"
    return ValueTypeError(f"expected {scalar.value}, found {describe(value)}{hint}")


_SCALARS: dict[Scalar, Callable[[Scalar, Any], Any]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATETIME: _datetime,
    Scalar.DATE: _date,
}
