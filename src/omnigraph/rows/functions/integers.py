"""Integers of 64 bits, signed and unsigned together: exact, or an error, and never a wrap.

Owns them as signs and magnitudes, in which every result of two of them can be judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.rows.functions.call import Call, Flags, Floats, Integers, floats, valid

Magnitudes = npt.NDArray[np.uint64]

_HALF = np.uint64(2**63)
_LOW = np.uint64(2**32 - 1)
_BITS = np.uint64(32)


@dataclass(frozen=True, slots=True)
class Signed:
    """Integers from -(2**64 - 1) to 2**64 - 1."""

    negative: Flags
    magnitude: Magnitudes

    def where(self, chosen: Flags, other: Signed) -> Signed:
        """These where they are chosen, others elsewhere."""
        return Signed(
            np.where(chosen, self.negative, other.negative),
            np.where(chosen, self.magnitude, other.magnitude),
        )

    def is_below(self, other: Signed) -> Flags:
        """Whether each is less than another."""
        mine, others = self.negative & (self.magnitude > 0), other.negative & (other.magnitude > 0)
        smaller = np.where(mine, self.magnitude > other.magnitude, self.magnitude < other.magnitude)
        found: Flags = np.where(mine == others, smaller, mine)
        return found


def signed(values: pa.Array) -> Signed:
    """A column of integers; 0 where it is null."""
    if pa.types.is_uint64(values.type):
        found = values.fill_null(0).to_numpy()
        return Signed(np.zeros(len(found), dtype=bool), found)
    whole: Integers = values.cast(pa.int64()).fill_null(0).to_numpy()
    negative = whole < 0
    bits = whole.view(np.uint64)
    return Signed(negative, np.where(negative, np.uint64(0) - bits, bits))


def column_of(values: Signed, is_valid: Flags, name: str) -> pa.Array:
    """A column of I64 if all fit, else of U64 if all fit, else an error."""
    negative = values.negative & (values.magnitude > 0) & is_valid
    if bool((negative & (values.magnitude > _HALF)).any()):
        raise overflow(name)
    if bool((~negative & is_valid & (values.magnitude >= _HALF)).any()):
        if bool(negative.any()):
            raise overflow(name)
        return pa.array(values.magnitude, mask=~is_valid)
    bits = np.where(negative, np.uint64(0) - values.magnitude, values.magnitude)
    return pa.array(bits.view(np.int64), mask=~is_valid)


def overflow(name: str) -> QueryError:
    """What is said about a result that no integer of 64 bits is."""
    return QueryError(
        f"the result of {name} is too large for an integer of 64 bits: "
        "compute with to_float(…), or keep such rows out",
        details={"function": name},
    )


def whole_numbers(values: Floats, name: str) -> pa.Array:
    """Floats without a fraction as integers; null where they are no numbers."""
    is_valid = np.isfinite(values)
    magnitude = np.where(is_valid, np.abs(values), 0.0)
    if bool((magnitude >= 2.0**64).any()):
        raise overflow(name)
    return column_of(Signed(values < 0, magnitude.astype(np.uint64)), is_valid, name)


def quotients(call: Call) -> pa.Array:
    """`div`: rounded down; null where the divisor is 0."""
    left, right = call.column(0), call.column(1)
    if not (pa.types.is_integer(left.type) and pa.types.is_integer(right.type)):
        with np.errstate(all="ignore"):
            return whole_numbers(np.floor(floats(left) / floats(right)), call.name)
    a, b = signed(left), signed(right)
    is_valid = valid(left, right) & (b.magnitude > 0)
    divisor = np.where(b.magnitude > 0, b.magnitude, np.uint64(1))
    negative = a.negative != b.negative
    quotient = a.magnitude // divisor
    quotient += (negative & (a.magnitude % divisor > 0)).astype(np.uint64)
    return column_of(Signed(negative, quotient), is_valid, call.name)


def sums(values: pa.Array, ends: Integers, name: str) -> Signed:
    """Exact sums of the integers up to each end from the one before; nulls count 0."""
    found = signed(values)
    high, low = found.magnitude >> _BITS, found.magnitude & _LOW
    sign = np.where(found.negative, -1, 1)
    high_sums = _sums_between(high.astype(np.int64) * sign, ends)
    low_sums = _sums_between(low.astype(np.int64) * sign, ends)
    high_sums += low_sums >> 32
    rest = (low_sums & 0xFFFFFFFF).astype(np.uint64)
    if bool((np.abs(high_sums) >= 2**32).any()):
        raise overflow(name)
    negative = high_sums < 0
    # high * 2**32 + rest, with high below zero and rest not.
    magnitude = np.abs(high_sums).astype(np.uint64) << _BITS
    return Signed(negative, np.where(negative, magnitude - rest, magnitude + rest))


def _sums_between(values: Integers, ends: Integers) -> Integers:
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    found: Integers = running[ends] - running[starts]
    return found


def unified(columns: list[pa.Array]) -> list[pa.Array]:
    """Columns of integers as columns of one type that holds them all."""
    if all(not pa.types.is_uint64(column.type) for column in columns):
        return [column.cast(pa.int64()) for column in columns]
    try:
        return [column.cast(pa.int64()) for column in columns]
    except pa.ArrowInvalid:
        pass
    try:
        return [column.cast(pa.uint64()) for column in columns]
    except pa.ArrowInvalid:
        raise QueryError(
            "a column cannot hold both negative integers and ones beyond 9223372036854775807: "
            "compute with to_float(…), or keep such rows out"
        ) from None


def any_above(values: pa.Array, limit: int) -> bool:
    """Whether an integer lies above a limit."""
    return bool(pc.any(pc.greater(values, pa.scalar(limit, values.type))).as_py())
