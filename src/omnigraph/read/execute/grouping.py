"""Grouping: rows that are equal in some columns, as numbers of groups in first-seen order.

Owns telling rows apart by any kind of value, lists and null included. Null equals
null here. Used for group keys and for distinct rows alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.execute.bindings import POSITION, Positions
from omnigraph.read.output.json_text import json_text
from omnigraph.storage.budget import need, took

# The bytes of a code, and what telling a value apart takes.
CODE = 4
ENTRY = 130
# Numbers are as good as codes while there are not so many times more of them than rows.
SPARSE = 4
NULL = 0
"""The code of null."""


@dataclass(frozen=True, slots=True)
class Groups:
    """For each row its group, and for each group its first row."""

    of_row: Positions
    first_rows: Positions

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.first_rows)


def group_rows(keys: Sequence[pa.Array | npt.NDArray[np.int64]], count: int) -> Groups:
    """The groups of ``count`` rows by all keys together; without keys, one group."""
    if not keys:
        need(POSITION * count)
        zeros = took(np.zeros(count, dtype=np.int64))
        return Groups(zeros, zeros[:1])
    codes = small_codes(keys[0], count)
    for key in keys[1:]:
        # Numbers of two columns in one; renumbered where they would not stay small.
        more = small_codes(key, count)
        need(2 * POSITION * count)
        width = int(more.max(initial=0)) + 1
        codes = took(codes * width + more)
        del more
        if int(codes.max(initial=0)) > SPARSE * count:
            codes = value_codes(pa.array(codes))
    size = int(codes.max(initial=-1)) + 1
    need(POSITION * (count + 3 * size))
    firsts = np.full(size, count, dtype=np.int64)
    # Written from the back, so that the first row of a group is what stays.
    firsts[codes[::-1]] = np.arange(count - 1, -1, -1)
    order = np.argsort(firsts, kind="stable")
    order = order[: np.count_nonzero(firsts < count)]
    number = np.empty(len(firsts), dtype=np.int64)
    number[order] = np.arange(len(order))
    return Groups(took(number[codes]), took(firsts[order]))


def small_codes(key: pa.Array | npt.NDArray[np.int64], count: int) -> Positions:
    """Codes of values, not many more than there are rows."""
    if isinstance(key, np.ndarray):
        if key.min(initial=0) >= 0 and key.max(initial=0) <= SPARSE * count:
            return key
        key = pa.array(key)
    near = _near_codes(key, SPARSE * count)
    return value_codes(key) if near is None else near


def _near_codes(key: pa.Array, most: int) -> Positions | None:
    """Whole numbers and days that lie close together, by how far they are beyond the least."""
    if pa.types.is_date32(key.type):
        key = key.view(pa.int32())
    if not pa.types.is_integer(key.type) or len(key) == key.null_count:
        return None
    bounds = pc.min_max(key)
    least, largest = bounds["min"].as_py(), bounds["max"].as_py()
    if largest - least >= most:
        return None
    need(3 * POSITION * len(key))
    known = key.fill_null(least) if key.null_count else key
    codes = known.to_numpy().astype(np.int64 if largest < 2**63 else np.uint64)
    codes -= codes.dtype.type(least)
    codes += codes.dtype.type(1)
    if key.null_count:
        codes[key.is_null().to_numpy(zero_copy_only=False)] = NULL
    small: Positions = codes.view(np.int64)
    return took(small)


def encode(values: pa.Array) -> pa.DictionaryArray:
    """Values as numbers in the order of their first appearance; null is none."""
    need(CODE * len(values))
    found = values.dictionary_encode()
    # How many values there are is known only when the table that tells them apart is made.
    need(found.indices.nbytes + 2 * found.dictionary.nbytes + ENTRY * len(found.dictionary))
    return took(found)


def value_codes(key: pa.Array) -> Positions:
    """A number for each distinct value; null is always the same one."""
    if pa.types.is_nested(key.type):
        key = json_text(key)
    if pa.types.is_floating(key.type):
        key = pc.add(key, pa.scalar(0, key.type))  # so that both zeros are one
    found = encode(key).indices
    need(2 * POSITION * len(key))
    if found.null_count:
        found = found.fill_null(NULL - 1)
    codes: Positions = found.to_numpy().astype(np.int64)
    codes += 1
    return took(codes)
