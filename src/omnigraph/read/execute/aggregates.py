"""Aggregates over groups of rows.

Owns every aggregate but those that make lists, each over whole arrays at once. Nulls never count;
a group without any value has count 0 and null for the rest. Sums of integers are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.lang.expressions import AggregateName
from omnigraph.read.execute.bindings import POSITION, Positions
from omnigraph.read.execute.grouping import NULL, group_rows, small_codes
from omnigraph.read.execute.sorting import stable_order
from omnigraph.storage.budget import need

# Below this no sum of so many integers leaves the range of I64.
_EXACT = 2**62
# Below this every integer is a float.
_EXACT_AS_FLOAT = 2**53
# Pairs of a group and a value are marked off while there are not so many times more than rows.
_MARKED = 16


def aggregate_by(
    function: AggregateName,
    groups: Positions,
    values: pa.Array | pa.Scalar | None,
    count: int,
    *,
    distinct: bool = False,
    fraction: float = 0.5,
) -> pa.Array:
    """One result for each of ``count`` groups; ``values`` None means the rows themselves."""
    if isinstance(values, pa.Scalar):
        values = (
            pa.repeat(values, len(groups))
            if values.is_valid and len(groups)
            else pa.nulls(len(groups), values.type)
        )
    if distinct and values is not None and function == "count":
        return counts_of_codes(groups, small_codes(values, len(groups)), count)
    if distinct and values is not None:
        firsts = group_rows([groups, values], len(groups)).first_rows
        groups, values = groups[firsts], values.take(pa.array(firsts))
    if function == "count":
        return pa.array(_counts(groups, values, count))
    if values is None:
        raise AssertionError(f"{function} needs something to look at")
    match function:
        case "sum" if pa.types.is_integer(values.type):
            return _exact_sums(groups, values, count)
        case "sum" | "avg":
            return _sums(groups, values, count, mean=function == "avg")
        case "min" | "max":
            return _extremes(groups, values, count, largest=function == "max")
        case "median" | "percentile":
            return _percentiles(groups, values, count, fraction)
        case "stddev" | "variance":
            return _spreads(groups, values, count, root=function == "stddev")
        case "any_value":
            return _firsts(groups, values, count)
        case "bool_and" | "bool_or":
            return _extremes(groups, values, count, largest=function == "bool_or")
        case "count_if":
            true = values.fill_null(False)  # noqa: FBT003 - pyarrow's own signature
            return pa.array(_counts(groups[true.to_numpy(zero_copy_only=False)], None, count))
        case _:
            raise AssertionError(f"{function} makes lists")


def counts_of_codes(groups: Positions, codes: Positions, count: int) -> pa.Array:
    """How many different values each group has, null not counted, by their codes."""
    need(2 * POSITION * len(groups))
    known = codes != NULL
    if not known.all():
        groups, codes = groups[known], codes[known]
    width = int(codes.max(initial=0)) + 1
    if count * width <= _MARKED * len(groups):
        need(count * width)
        marks = np.zeros(count * width, dtype=bool)
        marks[codes if count == 1 else groups * width + codes] = True
        return pa.array(marks.reshape(count, width).sum(axis=1, dtype=np.int64))
    firsts = group_rows([groups, codes], len(groups)).first_rows
    return pa.array(np.bincount(groups[firsts], minlength=count).astype(np.int64))


def _counts(groups: Positions, values: pa.Array | None, count: int) -> npt.NDArray[np.int64]:
    if values is not None and values.null_count:
        groups = groups[_valid(values)]
    return np.bincount(groups, minlength=count).astype(np.int64)


def _sums(groups: Positions, values: pa.Array, count: int, *, mean: bool) -> pa.Array:
    kept, numbers = _numbers(groups, values)
    found = np.bincount(kept, minlength=count)
    # Of no numbers at all, NumPy makes integers.
    total = np.bincount(kept, weights=numbers, minlength=count).astype(np.float64)
    if mean:
        total = np.divide(total, found, out=np.zeros(count), where=found > 0)
    return _finite(total, found == 0)


def _numbers(groups: Positions, values: pa.Array) -> tuple[Positions, npt.NDArray[np.float64]]:
    """The groups of the numbers that are known, and these."""
    if values.null_count or values.type != pa.float64():
        # All others stay where they are.
        need(3 * POSITION * len(groups))
    groups, values = _known(groups, values)
    return groups, values.cast(pa.float64(), safe=False).to_numpy()


def _known(groups: Positions, values: pa.Array) -> tuple[Positions, pa.Array]:
    """The groups of the values that there are, and these."""
    if not values.null_count:
        return groups, values
    valid = _valid(values)
    return groups[valid], values.filter(pa.array(valid))


def _finite(found: npt.NDArray[np.float64], nothing: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(found, mask=nothing | ~np.isfinite(found))


def _exact_sums(groups: Positions, values: pa.Array, count: int) -> pa.Array:
    """Sums of integers: I64 if all fit, else U64 if these do."""
    need(4 * POSITION * len(groups))
    kept, numbers = _known(groups, values)
    nothing = np.bincount(kept, minlength=count) == 0
    wide = numbers.cast(pa.uint64()) if pa.types.is_unsigned_integer(values.type) else numbers
    whole: npt.NDArray[Any] = wide.to_numpy(zero_copy_only=False)
    largest = max((abs(int(whole.min())), abs(int(whole.max()))), default=0) if len(whole) else 0
    if largest * max(1, len(whole)) < _EXACT:
        if largest * max(1, len(whole)) < _EXACT_AS_FLOAT:
            # The quickest way to add by group, and none of these sums is rounded.
            total = np.bincount(kept, weights=whole, minlength=count).astype(np.int64)
        else:
            total = np.zeros(count, dtype=np.int64)
            np.add.at(total, kept, whole.astype(np.int64))
        return pa.array(total, mask=nothing)
    # In two halves, neither of which leaves its range.
    halves = [np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)]
    np.add.at(halves[0], kept, (whole >> np.array(32, dtype=whole.dtype)).astype(np.int64))
    np.add.at(halves[1], kept, (whole & np.array(2**32 - 1, dtype=whole.dtype)).astype(np.int64))
    exact = [(int(high) << 32) + int(low) for high, low in zip(*halves, strict=True)]
    sums = [None if none else value for none, value in zip(nothing, exact, strict=True)]
    for type_ in (pa.int64(), pa.uint64()):
        try:
            return pa.array(sums, type_)
        except (pa.ArrowInvalid, OverflowError):
            continue
    raise QueryError("a sum of integers fits neither I64 nor U64; sum `to_float(…)` of them")


def _extremes(groups: Positions, values: pa.Array, count: int, *, largest: bool) -> pa.Array:
    """The first value of each group, in the order of values and then of groups."""
    need(5 * POSITION * len(groups) + int(values.get_total_buffer_size()))
    kept, found = _known(groups, values)
    if not len(found):
        return pa.nulls(count, values.type)
    comparable = found.cast(pa.int8()) if pa.types.is_boolean(found.type) else found
    direction = "descending" if largest else "ascending"
    by_value = pc.array_sort_indices(comparable, order=direction).to_numpy().astype(np.int64)
    order = by_value[stable_order(kept[by_value])]
    return _first_of(kept, found, order, count)


def _firsts(groups: Positions, values: pa.Array, count: int) -> pa.Array:
    """The first value of each group that there is."""
    need(3 * POSITION * len(groups))
    kept, found = _known(groups, values)
    if not len(found):
        return pa.nulls(count, values.type)
    return _first_of(kept, found, stable_order(kept), count)


def _first_of(groups: Positions, values: pa.Array, order: Positions, count: int) -> pa.Array:
    ordered = groups[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    owners = ordered[first]
    chosen = np.zeros(count, dtype=np.int64)
    chosen[owners] = order[first]
    nobody = np.ones(count, dtype=bool)
    nobody[owners] = False
    return values.take(pa.array(chosen, mask=nobody))


def _percentiles(groups: Positions, values: pa.Array, count: int, fraction: float) -> pa.Array:
    """Between the two values that stand nearest to a part of the way, as far as they are apart."""
    kept, numbers = _numbers(groups, values)
    found = np.bincount(kept, minlength=count)
    if not len(numbers):
        return pa.nulls(count, pa.float64())
    need(3 * POSITION * len(kept))
    ordered = numbers[np.lexsort([numbers, kept])]
    begins = np.concatenate([[0], np.cumsum(found)[:-1]])
    place = fraction * np.maximum(found - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(found - 1, 0))
    last = len(ordered) - 1
    low = ordered[np.minimum(begins + below, last)]
    high = ordered[np.minimum(begins + above, last)]
    return _finite(low + (high - low) * (place - below), found == 0)


def _spreads(groups: Positions, values: pa.Array, count: int, *, root: bool) -> pa.Array:
    """Of a sample; null of fewer than two values."""
    kept, numbers = _numbers(groups, values)
    found = np.bincount(kept, minlength=count)
    with np.errstate(all="ignore"):
        mean = np.bincount(kept, weights=numbers, minlength=count) / found
        apart = (numbers - mean[kept]) ** 2
        variance = np.bincount(kept, weights=apart, minlength=count) / (found - 1)
        result = np.sqrt(variance) if root else variance
    return _finite(result.astype(np.float64), found < 2)


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return valid
