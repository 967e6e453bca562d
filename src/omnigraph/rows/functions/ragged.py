"""Rows of differing length in one flat array: where each lies, and choosing parts of them.

Owns lists of Arrow as offsets into flat values, and the cutting of texts by their characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.functions.call import Flags, Integers, valid

_BATCH = 8 << 20
_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: all values in a row, and where each list ends; null ones are empty."""

    values: pa.Array
    ends: Integers
    is_valid: Flags

    @property
    def lengths(self) -> Integers:
        """How many values each list has."""
        found: Integers = np.diff(self.ends, prepend=0)
        return found

    @property
    def starts(self) -> Integers:
        """Where each list begins."""
        return self.ends - self.lengths

    @property
    def parents(self) -> Integers:
        """Of each value, which list it is in."""
        return cast("Integers", np.repeat(np.arange(len(self.ends)), self.lengths))


def lists_of(column: pa.Array) -> Lists:
    """The lists of a column, of whatever kind of list it is."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    return Lists(column.flatten(), np.cumsum(lengths), valid(column))


def column_of_lists(values: pa.Array, lengths: Integers, is_valid: Flags) -> pa.Array:
    """A column of lists of such lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    field = pa.field("item", values.type)
    mask = None if is_valid.all() else pa.array(~is_valid)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(field), mask=mask)


def places(starts: Integers, lengths: Integers) -> Integers:
    """The places from each start on, so many of each, one after the other."""
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    found = np.arange(total, dtype=np.int64)
    found += np.repeat(starts - (ends - lengths), lengths)
    return found


def cut(texts: pa.Array, first: Integers, last: Integers) -> pa.Array:
    """The characters of each text from one position up to another, without it."""
    texts = texts.cast(pa.string())
    offsets = _offsets(texts)
    parts, start = [], 0
    while start < len(texts):
        size = np.searchsorted(offsets, offsets[start] + _BATCH, side="right")
        end = max(start + 1, int(size) - 1)
        parts.append(_cut(texts.slice(start, end - start), first[start:end], last[start:end]))
        start = end
    return pa.concat_arrays(parts) if parts else texts


def characters(texts: pa.Array) -> pa.Array:
    """The characters of each text, as a list."""
    is_valid = valid(texts)
    filled = texts.cast(pa.string()).fill_null("")
    offsets = _offsets(filled)
    buffer = filled.buffers()[2]
    data = np.frombuffer(buffer, dtype=np.uint8)[offsets[0] : offsets[-1]] if buffer else _NOTHING
    begins = np.append(np.flatnonzero(_begins_one(data)), len(data))
    lengths = np.diff(np.searchsorted(begins, offsets - offsets[0]))
    single = pa.StringArray.from_buffers(
        len(begins) - 1,
        pa.py_buffer(begins.astype(np.int32)),
        pa.py_buffer(np.ascontiguousarray(data)),
    )
    return column_of_lists(single, lengths.astype(np.int64), is_valid)


def _begins_one(data: npt.NDArray[np.uint8]) -> Flags:
    """Which bytes of UTF-8 a character begins with."""
    found: Flags = (data & 0xC0) != 0x80
    return found


def _cut(texts: pa.Array, first: Integers, last: Integers) -> pa.Array:
    offsets = _offsets(texts)
    buffer = texts.buffers()[2]
    if buffer is None or not len(texts):
        return texts
    data = np.frombuffer(buffer, dtype=np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    # Where a character begins; one more for the end of the last.
    begins = np.append(np.flatnonzero(_begins_one(data)), len(data))
    row_first = np.searchsorted(begins, offsets[:-1])
    length = np.searchsorted(begins, offsets[1:]) - row_first
    low = np.clip(first, 0, length)
    high = np.clip(last, low, length)
    start, end = begins[row_first + low], begins[row_first + high]
    sizes = end - start
    made = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    mask = pa.array(valid(texts)).buffers()[1] if texts.null_count else None
    return pa.StringArray.from_buffers(
        len(texts),
        pa.py_buffer(made),
        pa.py_buffer(np.ascontiguousarray(data[places(start, sizes)])),
        mask,
    )


def _offsets(texts: pa.Array) -> Integers:
    buffer = texts.buffers()[1]
    if buffer is None:
        return np.zeros(len(texts) + 1, dtype=np.int64)
    found = np.frombuffer(buffer, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return found.astype(np.int64)
