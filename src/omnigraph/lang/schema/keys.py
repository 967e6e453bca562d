"""Canonical text of scalars, and the ids of keyed rows made of it.

Owns how a stored value becomes part of an identity, so that two spellings of one
value never name two rows. Pure functions; never reads a row by itself.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

from omnigraph.errors import ValidationError
from omnigraph.lang.literals import epoch_days, epoch_millis
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir.document import compact
from omnigraph.lang.structural import ENDPOINTS
from omnigraph.lang.types import FLOATS, INTEGERS, Scalar

_MOST_F32_DIGITS = 9
"""So many digits always tell two neighbouring float32 values apart."""


def canonical_scalar(value: Any, scalar: Scalar) -> str:
    """The canonical text of one stored value.

    Date and DateTime values may come as calendar values or as their stored number.
    """
    if scalar in FLOATS and isinstance(value, (int, float)) and not isinstance(value, bool):
        return canonical_float(value, 32 if scalar is Scalar.F32 else 64)
    if isinstance(value, bool):
        if scalar is Scalar.BOOL:
            return "true" if value else "false"
    elif isinstance(value, int):
        if scalar in INTEGERS or scalar in (Scalar.DATE, Scalar.DATETIME):
            return str(value)
    elif isinstance(value, datetime):
        if scalar is Scalar.DATETIME and value.tzinfo is not None:
            return str(epoch_millis(value))
    elif isinstance(value, date):
        if scalar is Scalar.DATE:
            return str(epoch_days(value))
    elif isinstance(value, str) and scalar is Scalar.STRING:
        return value
    raise _unidentifiable(f"{value!r} is no {scalar.value}")


def canonical_float(value: float, width: Literal[32, 64]) -> str:
    """The shortest decimal that reads back as the same float, without an exponent."""
    try:
        stored = float(value) if width == 64 else _to_f32(value)
    except OverflowError:
        stored = math.inf
    if not math.isfinite(stored):
        raise _unidentifiable(f"the float {value} is not finite")
    if stored == 0:
        return "0"
    text = repr(stored) if width == 64 else _shortest_f32(stored)
    plain = format(Decimal(text), "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def keyed_id(parts: Sequence[str]) -> str:
    """The id of a keyed row from its key's canonical texts, in the catalog's order.

    Those of an edge begin with the ids of its source and its destination.
    """
    return parts[0] if len(parts) == 1 else compact(list(parts))


def keyed_node_id(node: NodeType, row: Mapping[str, Any]) -> str:
    """The id the key of a node type gives to one row of typed values."""
    return keyed_id(_parts(node, row))


def keyed_edge_id(edge: EdgeType, row: Mapping[str, Any]) -> str:
    """The id the key of an edge type gives to one row, its ends under `@src` and `@dst`."""
    return keyed_id(_parts(edge, row))


def _parts(type_: NodeType | EdgeType, row: Mapping[str, Any]) -> list[str]:
    parts = []
    for name in type_.key:
        value = row.get(name)
        if value is None:
            raise _unidentifiable(f"the key `{name}` of `{type_.name}` is missing")
        scalar = Scalar.STRING if name in ENDPOINTS else type_.properties[name].type.scalar
        parts.append(canonical_scalar(value, scalar))
    return parts


def _unidentifiable(problem: str) -> ValidationError:
    return ValidationError(f"cannot identify an entity: {problem}", rule="type")


def _to_f32(value: float) -> float:
    """The nearest float32, as the float64 of the same value."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _shortest_f32(stored: float) -> str:
    """The fewest digits that lie nearer to this float32 than to its neighbours."""
    exact = Decimal(abs(stored))
    low, high, closed = _rounding_interval(abs(stored))
    for digits in range(1, _MOST_F32_DIGITS + 1):
        # Next to a power of two the nearest decimal may read back as the lower neighbour
        # while the one on the other side does not, so both are tried.
        candidates = {
            Context(prec=digits, rounding=rounding).plus(exact)
            for rounding in (ROUND_FLOOR, ROUND_CEILING)
        }
        fitting = [
            candidate
            for candidate in candidates
            if low < Fraction(candidate) < high or (closed and Fraction(candidate) in (low, high))
        ]
        if fitting:
            # Of two that are equally near the even one counts, as for float64.
            best = min(fitting, key=lambda found: (_distance(found, exact), _last_digit(found) % 2))
            return f"-{best}" if stored < 0 else str(best)
    raise AssertionError("nine digits identify every float32")


def _distance(left: Decimal, right: Decimal) -> Fraction:
    # Exact: the arithmetic of Decimal rounds as the caller's context says.
    return abs(Fraction(left) - Fraction(right))


def _last_digit(number: Decimal) -> int:
    return number.as_tuple().digits[-1]


def _rounding_interval(positive: float) -> tuple[Fraction, Fraction, bool]:
    """What rounds to a positive float32: both ends, and whether they belong to it."""
    (bits,) = struct.unpack("<I", struct.pack("<f", positive))
    exact = Fraction(positive)
    below = Fraction(_from_bits(bits - 1))
    # Above the largest value lies infinity; its half-way point is where the next step would be.
    last = bits == 0x7F7FFFFF
    above = 2 * exact - below if last else Fraction(_from_bits(bits + 1))
    return (below + exact) / 2, (exact + above) / 2, bits % 2 == 0


def _from_bits(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])
