"""The functions of lists: their values by place, in order, once each, and summed up.

Owns that positions count from 0 and that what lies outside of a list is null or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.functions import texts
from omnigraph.rows.functions.call import (
    Call,
    Integers,
    Kernel,
    bounded,
    is_true,
    numbers,
    valid,
)
from omnigraph.rows.functions.integers import Signed, column_of, sums, unified
from omnigraph.rows.functions.ragged import Lists, column_of_lists, lists_of, places

_FAR = 2**40


def _size(call: Call) -> pa.Array:
    return pc.list_value_length(call.column(0)).cast(pa.int64())


def _chosen(lists: Lists, place: Integers, known: np.ndarray) -> pa.Array:
    """The value of each list at a place; null outside."""
    inside = known & (place >= 0) & (place < lists.lengths)
    return lists.values.take(pa.array(np.where(inside, lists.starts + place, 0), mask=~inside))


def _first(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    return _chosen(lists, np.zeros(call.count, dtype=np.int64), lists.is_valid)


def _last(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    return _chosen(lists, lists.lengths - 1, lists.is_valid)


def _at(call: Call) -> pa.Array:
    lists, given = lists_of(call.column(0)), call.column(1)
    return _chosen(lists, bounded(given, _FAR), lists.is_valid & valid(given))


def _slice(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    given = [call.column(place) for place in range(1, len(call.arguments))]
    low = np.clip(bounded(given[0], _FAR), 0, lists.lengths)
    high = lists.lengths if len(given) < 2 else np.clip(bounded(given[1], _FAR), low, lists.lengths)
    known = lists.is_valid & valid(*given)
    sizes = np.where(known, high - low, 0)
    values = lists.values.take(pa.array(places(lists.starts + low, sizes)))
    return column_of_lists(values, sizes, known)


def _comparable(values: pa.Array) -> pa.Array:
    """Values that have an order in Arrow, and of which equal ones are one value."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    return pc.add(values, 0.0) if pa.types.is_floating(values.type) else values


def _sort(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    rows = pa.table({"row": lists.parents, "value": _comparable(lists.values)})
    keys = [("row", "ascending", "at_end"), ("value", "ascending", "at_end")]
    order = pc.sort_indices(rows, sort_keys=keys)
    return column_of_lists(lists.values.take(order), lists.lengths, lists.is_valid)


def _unique(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    encoded = _comparable(lists.values).dictionary_encode()
    width = len(encoded.dictionary) + 1
    codes = encoded.indices.fill_null(width - 1).to_numpy().astype(np.int64)
    keys = lists.parents * width + codes
    _, first = np.unique(keys, return_index=True)
    first.sort()
    sizes = np.bincount(lists.parents[first], minlength=call.count).astype(np.int64)
    return column_of_lists(lists.values.take(pa.array(first)), sizes, lists.is_valid)


def _sum_of(call: Call) -> pa.Array:
    lists = lists_of(call.column(0))
    counted = np.concatenate([[0], np.cumsum(valid(lists.values))])
    found = lists.is_valid & (counted[lists.ends] > counted[lists.starts])
    if pa.types.is_integer(lists.values.type):
        total = sums(lists.values, lists.ends, call.name)
        return column_of(Signed(total.negative, total.magnitude), found, call.name)
    amounts = lists.values.cast(pa.float64()).fill_null(0.0).to_numpy()
    total_of = np.full(call.count, np.nan)
    # Between two starts there is nothing but the values of the first.
    total_of[found] = segment_sums(amounts, lists)[found]
    return numbers(total_of)


def segment_sums(amounts: np.ndarray, lists: Lists) -> np.ndarray:
    """The sums of what stands beside the values of each list."""
    total = np.zeros(len(lists.ends))
    some = lists.lengths > 0
    if some.any():
        total[some] = np.add.reduceat(amounts, lists.starts[some])
    return total


def _contains(call: Call) -> pa.Array:
    whole = call.arguments[0]
    if not pa.types.is_list(whole.type) and not pa.types.is_fixed_size_list(whole.type):
        return texts.has_part(call)
    lists, wanted = lists_of(call.column(0)), call.column(1)
    values, repeated = lists.values, wanted.take(pa.array(lists.parents))
    if pa.types.is_integer(values.type) and pa.types.is_integer(repeated.type):
        values, repeated = unified([values, repeated])
    same = is_true(pc.equal(values, repeated))
    found = np.bincount(lists.parents[same], minlength=call.count) > 0
    return pa.array(found, mask=~(lists.is_valid & valid(wanted)))


def _range(call: Call) -> pa.Array:
    first, last = call.column(0), call.column(1)
    known = valid(first, last)
    low, high = bounded(first, 2**62), bounded(last, 2**62)
    sizes = np.where(known, np.maximum(high - low, 0), 0)
    call.need_bytes(int(sizes.astype(np.float64).sum()) * 8)
    return column_of_lists(pa.array(places(low, sizes)), sizes, known)


KERNELS: Mapping[str, Kernel] = {
    "size": _size,
    "first": _first,
    "last": _last,
    "at": _at,
    "slice": _slice,
    "sort": _sort,
    "unique": _unique,
    "sum_of": _sum_of,
    "contains": _contains,
    "range": _range,
}
