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

from omnigraph.read.bindings import Positions
from omnigraph.read.json_text import json_text

Key = pa.Array | Positions


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
    codes = np.zeros(count, dtype=np.int64)
    for key in keys:
        fresh = _codes(key)
        width = int(fresh.max(initial=0)) + 1
        _, codes = np.unique(codes * width + fresh, return_inverse=True)
    _, first, of_row = np.unique(codes, return_index=True, return_inverse=True)
    # Numbers by value become numbers by first appearance.
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Groups(rank[of_row], first[order])


def _codes(key: pa.Array | npt.NDArray[np.int64]) -> Positions:
    """A number for each distinct value, 0 for null."""
    if isinstance(key, np.ndarray):
        return key + 1
    if pa.types.is_nested(key.type):
        key = json_text(key)
    if pa.types.is_floating(key.type):
        key = pc.add(key, pa.scalar(0, key.type))  # so that both zeros are one
    encoded = key.dictionary_encode()
    indices = encoded.indices.cast(pa.int64())
    codes: Positions = pc.add(indices, 1).fill_null(0).to_numpy(zero_copy_only=False)
    return codes
