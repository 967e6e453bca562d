"""Ordering: the rows of a result in their total order, cut to what is wanted of them.

Owns sort keys, ties and limits. Null is smaller than everything. Rows that no key
tells apart are ordered by the ids of their variables, which are read for ties only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.plan import NullPlace
from omnigraph.read.execute.bindings import POSITION, Positions
from omnigraph.read.execute.grouping import encode, group_rows
from omnigraph.read.execute.sorting import stable_order
from omnigraph.read.output.json_text import json_text
from omnigraph.storage.budget import need, took

_LEAST = np.iinfo(np.int64).min
_BITS = 63
_LARGEST = np.iinfo(np.int64).max


def ranks(values: pa.Array, *, descending: bool = False) -> Positions:
    """A number for each row, ascending in the order wanted; equal values have equal numbers."""
    found = _numbers(values)
    if found is None:
        found = _encoded_ranks(json_text(values) if pa.types.is_nested(values.type) else values)
    # Turned round in place: unlike the negative of the least number, that is always one.
    return took(np.invert(found, out=found) if descending else found)


def key_ranks(
    values: pa.Array, *, descending: bool = False, nulls: NullPlace | None = None
) -> list[Positions]:
    """The numbers of a sort key; where nulls stand is a key before it, if that was said."""
    if pa.types.is_struct(values.type):
        # Whole nodes are told apart, and ordered, by their ids.
        values = values.field("@id")
    found = ranks(values, descending=descending)
    if nulls is None:
        return [found]
    unknown = values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
    return [1 - unknown if nulls == "first" else unknown, found]


def that_may_lead(key: Positions, groups: Positions, most: int) -> Positions:
    """Every row that may be among the first so many of its group by this key, ascending."""
    if not most or not len(key):
        return np.empty(0, dtype=np.int64)
    need(5 * key.nbytes)
    least = int(key.min())
    span = int(key.max()) - least
    if span.bit_length() + int(groups.max()).bit_length() > _BITS:
        key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
        least, span = 0, len(key)
    packed = (groups << span.bit_length()) | (key - least)
    sizes = np.bincount(groups)
    ends = np.cumsum(sizes)
    last = np.sort(packed)[np.minimum(ends - sizes + most, ends) - 1]
    return took(np.flatnonzero(packed <= last[groups]))


def leading_rows(rows: Positions, keys: Sequence[pa.Array], most: int) -> Positions:
    """Of rows in order, at most so many for each value of some keys."""
    groups = group_rows([key.take(pa.array(rows)) for key in keys], len(rows)).of_row
    need(4 * rows.nbytes)
    order = stable_order(groups)
    sizes = np.bincount(groups)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows)) - begins[groups[order]]
    return rows[place < most]


def _numbers(values: pa.Array) -> Positions | None:
    """Numbers as they are ordered; None for what is no number, and where none is left for null."""
    type_ = values.type
    need(3 * POSITION * len(values))
    if pa.types.is_floating(type_):
        # Adding zero makes both zeros one; no number comes after all others.
        numbers = _filled(values).astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        bits: Positions = numbers.view(np.int64)
        found = bits ^ ((bits >> 63) & _LARGEST)
    elif pa.types.is_uint64(type_):
        found = (_filled(values) ^ np.uint64(1 << 63)).view(np.int64)
    elif pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_temporal(type_):
        found = _filled(values).astype(np.int64)
    else:
        return None
    if values.null_count:
        if found.min() == _LEAST:
            return None
        found[values.is_null().to_numpy(zero_copy_only=False)] = _LEAST
    return found


def _filled(values: pa.Array) -> npt.NDArray[Any]:
    """Numbers, with any of them where there is none."""
    if values.null_count:
        any_ = False if pa.types.is_boolean(values.type) else 0
        values = values.fill_null(pa.scalar(any_, values.type))
    filled: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return filled


def _encoded_ranks(values: pa.Array) -> Positions:
    """By the order of the distinct values."""
    encoded = encode(values)
    distinct = len(encoded.dictionary)
    need(4 * POSITION * distinct)
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    place = took(np.empty(distinct + 1, dtype=np.int64))
    place[order] = np.arange(1, distinct + 1)
    place[distinct] = 0  # null
    del order
    need(2 * POSITION * len(values))
    codes = encoded.indices.fill_null(distinct).to_numpy(zero_copy_only=False)
    found: Positions = place[codes]
    return found


def ordered_rows(
    keys: Sequence[Positions],
    ties: Sequence[Callable[[Positions], pa.Array]],
    count: int,
    wanted: int | None,
) -> Positions:
    """The first ``wanted`` rows by the keys, then by what ``ties`` say of the rows that tie."""
    need((3 + len(keys)) * POSITION * count)
    rows = took(np.arange(count))
    if wanted is not None and keys and wanted < count:
        rows = took(that_may_come_first(keys[0], wanted))
    if len(keys):
        need((3 + len(keys)) * rows.nbytes)
        rows = took(rows[np.lexsort([key[rows] for key in reversed(keys)])])
    rows = _untied(rows, keys, ties)
    return rows if wanted is None else rows[:wanted]


def that_may_come_first(key: Positions, wanted: int) -> Positions:
    """Every row that may be among the first by this key."""
    if wanted == 0:
        return np.empty(0, dtype=np.int64)
    bound = np.partition(key, wanted - 1)[wanted - 1]
    return np.flatnonzero(key <= bound)


def _untied(
    rows: Positions,
    keys: Sequence[Positions],
    ties: Sequence[Callable[[Positions], pa.Array]],
) -> Positions:
    """Rows in order, with the runs that no key tells apart put into order."""
    if not ties or not len(rows):
        return rows
    need(4 * rows.nbytes)
    changed = np.zeros(len(rows), dtype=bool)
    changed[0] = True
    for key in keys:
        changed[1:] |= np.diff(key[rows]) != 0
    run = np.cumsum(changed)
    size = np.bincount(run)
    tied = np.flatnonzero(size[run] > 1)
    if not len(tied):
        return rows
    subject = rows[tied]
    codes = [ranks(tie(subject)) for tie in ties]
    need(4 * subject.nbytes)
    order = np.lexsort([*reversed(codes), run[tied]])
    result = rows.copy()
    result[tied] = subject[order]
    return result
