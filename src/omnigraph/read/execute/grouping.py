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
    codes = _small_codes(keys[0], count)
    for key in keys[1:]:
        # Numbers of two columns in one; renumbered, they stay small.
        more = _small_codes(key, count)
        need(2 * POSITION * count)
        codes = value_codes(pa.array(codes * (int(more.max(initial=0)) + 1) + more))
        del more
    need(2 * POSITION * count)
    firsts = np.full(int(codes.max(initial=-1)) + 1, count, dtype=np.int64)
    # Written from the back, so that the first row of a group is what stays.
    firsts[codes[::-1]] = np.arange(count - 1, -1, -1)
    order = np.argsort(firsts, kind="stable")
    order = order[: np.count_nonzero(firsts < count)]
    number = np.empty(len(firsts), dtype=np.int64)
    number[order] = np.arange(len(order))
    return Groups(took(number[codes]), took(firsts[order]))


def _small_codes(key: pa.Array | npt.NDArray[np.int64], count: int) -> Positions:
    """Numbers for values, not many more than there are rows."""
    if isinstance(key, np.ndarray):
        if key.min(initial=0) >= 0 and key.max(initial=0) <= 4 * count:
            return key
        key = pa.array(key)
    return value_codes(key)


def encode(values: pa.Array, *, with_null: bool = False) -> pa.DictionaryArray:
    """Values as numbers in the order of their first appearance; null is none, or one of them."""
    need(CODE * len(values))
    found = values.dictionary_encode(null_encoding="encode" if with_null else "mask")
    # How many values there are is known only when the table that tells them apart is made.
    need(found.indices.nbytes + 2 * found.dictionary.nbytes + ENTRY * len(found.dictionary))
    return took(found)


def value_codes(key: pa.Array) -> Positions:
    """A number for each distinct value, in the order of their first appearance; null is one."""
    if pa.types.is_nested(key.type):
        key = json_text(key)
    if pa.types.is_floating(key.type):
        key = pc.add(key, pa.scalar(0, key.type))  # so that both zeros are one
    encoded = encode(key, with_null=True)
    need(POSITION * len(key))
    codes: Positions = encoded.indices.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return took(codes)
