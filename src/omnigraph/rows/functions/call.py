"""One call of a function: its arguments as columns or constants, and the bounds it works in.

Owns how arguments are looked at. A kernel takes a call and gives a column of as many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimit
from omnigraph.lang.types import ValueType
from omnigraph.rows.arrow_types import arrow_type

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_FALSE = pa.scalar(value=False)

MOST_BYTES = 2**31 - 1
"""Arrow's texts and lists have 32-bit offsets: a column of them holds no more."""


class Bounds(Protocol):
    """What work may take: somebody may want it no more, and memory is asked for first."""

    def look(self) -> None:
        """Stop if nobody wants the result any more."""

    def need(self, more: int, /) -> None:
        """Stop if so many bytes more are too many."""


class Unbounded:
    """Whatever it takes."""

    def look(self) -> None:
        """Go on."""

    def need(self, more: int, /) -> None:
        """Take it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function's name, its arguments, how many rows there are, and what comes out."""

    name: str
    arguments: Sequence[pa.Array | pa.Scalar]
    count: int
    result: ValueType
    bounds: Bounds

    def column(self, place: int) -> pa.Array:
        """An argument as a column of all rows."""
        value = self.arguments[place]
        if isinstance(value, pa.Array):
            return value
        if not value.is_valid or not self.count:
            return pa.nulls(self.count, value.type)
        self.bounds.need(self.count * 8)
        return pa.repeat(value, self.count)

    def constant(self, place: int) -> pa.Scalar | None:
        """An argument that is the same in every row; None when it is a column."""
        value = self.arguments[place]
        return value if isinstance(value, pa.Scalar) else None

    def has(self, place: int) -> bool:
        """Whether an optional argument was given."""
        return len(self.arguments) > place

    def need_bytes(self, size: int) -> None:
        """Ask for memory for texts or lists, and whether one column can hold them."""
        self.bounds.need(size)
        if size > MOST_BYTES:
            raise ResourceLimit(
                f"{self.name} would make {size:,} bytes at once, more than the {MOST_BYTES:,} "
                "that a column holds: narrow the query down",
                details={"resource": "column_bytes", "limit": MOST_BYTES, "actual": size},
            )


Kernel = Callable[[Call], pa.Array]


def floats(values: pa.Array) -> Floats:
    """Numbers as float64; NaN where there is none."""
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return cast("Floats", found)


def numbers(values: Floats) -> pa.Array:
    """Floats as a column: null where they are none, or none that can be written."""
    return pa.array(values, mask=~np.isfinite(values))


def bounded(values: pa.Array, limit: int) -> Integers:
    """Integers as int64, no farther from 0 than a limit that is beyond all that matters."""
    least, most = pa.scalar(-limit, pa.int64()), pa.scalar(limit, pa.int64())
    if pa.types.is_uint64(values.type):
        within = pc.min_element_wise(values, pa.scalar(limit, pa.uint64()), skip_nulls=False)
    else:
        wide = values.cast(pa.int64())
        within = pc.max_element_wise(
            pc.min_element_wise(wide, most, skip_nulls=False), least, skip_nulls=False
        )
    return cast("Integers", within.cast(pa.int64()).fill_null(0).to_numpy())


def valid(*columns: pa.Array) -> Flags:
    """The rows in which no column is null."""
    count = len(columns[0])
    found = np.ones(count, dtype=bool)
    for column in columns:
        if column.null_count:
            found &= pc.is_valid(column).to_numpy(zero_copy_only=False)
    return found


def is_true(conditions: pa.Array) -> Flags:
    """The rows in which a condition holds: neither false nor unknown."""
    known = conditions.fill_null(_FALSE)
    return cast("Flags", known.to_numpy(zero_copy_only=False))


def by_constant(call: Call, place: int, work: Callable[[pa.Array, object], pa.Array]) -> pa.Array:
    """The first argument worked on with another one, once for each of that one's values.

    Patterns, formats and separators are nearly always one constant; where they come from rows,
    the rows of each are done together.
    """
    texts, one = call.column(0), call.constant(place)
    if one is not None:
        return work(texts, one.as_py())
    encoded = call.column(place).dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary) + 1))
    parts, start = [], 0
    for value, end in zip(encoded.dictionary.to_pylist(), ends.tolist(), strict=False):
        call.bounds.look()
        parts.append(work(texts.take(pa.array(order[start:end])), value))
        start = end
    parts.append(pa.nulls(call.count - start, arrow_type(call.result)))
    back = np.empty(call.count, dtype=np.int64)
    back[order] = np.arange(call.count)
    return pa.concat_arrays(parts).take(pa.array(back))
