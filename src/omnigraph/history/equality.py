"""Equality of stored values, column by column.

Owns what counts as the same value: null equals null, floats are compared bit by bit,
lists and vectors item by item. Works on whole columns.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = pa.Array | pa.ChunkedArray

_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def differing(first: Values, second: Values) -> Mask:
    """Which of the values are not the same; both columns are of one type and length."""
    one, other = _array(first), _array(second)
    is_list = pa.types.is_list(one.type) or pa.types.is_fixed_size_list(one.type)
    return _differing_lists(one, other) if is_list else _differing_scalars(one, other)


def any_differs(first: pa.Table, second: pa.Table, columns: list[str]) -> Mask:
    """Which of the rows differ in any of the columns."""
    found = np.zeros(first.num_rows, dtype=bool)
    for name in columns:
        found |= differing(first.column(name), second.column(name))
    return found


def _differing_scalars(one: pa.Array, other: pa.Array) -> Mask:
    if (bits := _BITS.get(one.type)) is not None:
        one, other = one.view(bits), other.view(bits)
    unequal = pc.not_equal(one, other).fill_null(fill_value=False)
    return _mask(pc.or_(unequal, pc.xor(one.is_valid(), other.is_valid())))


def _differing_lists(one: pa.Array, other: pa.Array) -> Mask:
    found = _differing_scalars(pc.list_value_length(one), pc.list_value_length(other))
    alike = np.flatnonzero(~found & _mask(one.is_valid()))
    if not len(alike):
        return found
    picked = pa.array(alike)
    first, second = one.take(picked), other.take(picked)
    items = differing(pc.list_flatten(first), pc.list_flatten(second))
    lengths = pc.list_value_length(first).to_numpy(zero_copy_only=False)
    found[np.repeat(alike, lengths)[items]] = True
    return found


def _array(values: Values) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _mask(values: pa.Array) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False).astype(bool)
    return mask
