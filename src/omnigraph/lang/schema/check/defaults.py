"""`@default`: which literal fits which type, and what value it stands for.

Owns both directions of that question: checking what was written, decoding what
the IR stored. Never applies a default to a row.
"""

from __future__ import annotations

import struct

from omnigraph.lang.cursor import shorten
from omnigraph.lang.literals import float_value, integer_value, parse_date, parse_datetime
from omnigraph.lang.schema.catalog import Scalar as DefaultValue
from omnigraph.lang.schema.syntax.tree import Argument
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar, ValueType


def default_misfit(argument: Argument, value_type: ValueType) -> str | None:
    """Why a written default does not fit a type, or None when it does."""
    wanted = value_type.without_null
    if not value_type.is_plain:
        return f"a property of type {wanted} takes no default"
    if argument.kind not in _literal_kinds(value_type.scalar):
        shown = f'"{argument.text}"' if argument.kind == "string" else argument.text
        hint = "; write it in quotes" if value_type.scalar is Scalar.STRING else ""
        return f"expected a default of type {wanted}, found `{shorten(shown)}`{hint}"
    try:
        decode_default(argument.text, value_type)
    except ValueError as error:
        return str(error)
    return None


def decode_default(text: str, value_type: ValueType) -> DefaultValue:
    """The value a stored default stands for; ValueError when it does not fit the type."""
    scalar = value_type.scalar
    shown = shorten(text)
    if scalar in INTEGERS:
        return _integer(text, shown, scalar)
    if scalar in FLOATS:
        return _float(text, shown, scalar)
    if scalar is Scalar.BOOL:
        if text not in ("true", "false"):
            raise ValueError(f"`{shown}` is no Bool")
        return text == "true"
    if scalar is Scalar.DATE:
        parse_date(text)
    elif scalar is Scalar.DATETIME:
        parse_datetime(text)
    elif value_type.enum_values is not None and text not in value_type.enum_values:
        raise ValueError(f"`{shown}` is not among {value_type.without_null}")
    return text


def _integer(text: str, shown: str, scalar: Scalar) -> int:
    low, high = INTEGER_RANGE[scalar]
    value = integer_value(text) if text.removeprefix("-").isdecimal() else None
    if value is None or not low <= value <= high:
        raise ValueError(f"`{shown}` does not fit {scalar.value}")
    return value


def _float(text: str, shown: str, scalar: Scalar) -> float:
    value = float_value(text)
    try:
        if value is not None and scalar is Scalar.F32:
            struct.pack("<f", value)
    except OverflowError:
        value = None
    if value is None:
        raise ValueError(f"`{shown}` does not fit {scalar.value}")
    return value


def _literal_kinds(scalar: Scalar) -> tuple[str, ...]:
    if scalar in INTEGERS:
        return ("integer",)
    if scalar in FLOATS:
        return ("integer", "float")
    if scalar is Scalar.BOOL:
        return ("bool",)
    if scalar is Scalar.STRING:
        return ("string", "name")
    return ("string",)
