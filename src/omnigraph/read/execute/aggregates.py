"""Aggregates over groups of rows.

Owns count, sum, avg, min and max, each over whole arrays at once. Nulls never count;
a group without any value has count 0 and null for the rest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.plan import AggregateName
from omnigraph.read.execute.bindings import POSITION, Positions
from omnigraph.storage.budget import need


def aggregate_by(
    function: AggregateName, groups: Positions, values: pa.Array | pa.Scalar | None, count: int
) -> pa.Array:
    """One result for each of ``count`` groups; ``values`` None means the rows themselves."""
    if isinstance(values, pa.Scalar):
        values = (
            pa.repeat(values, len(groups))
            if values.is_valid and len(groups)
            else pa.nulls(len(groups), values.type)
        )
    if function == "count":
        return pa.array(_counts(groups, values, count))
    if values is None:
        raise AssertionError(f"{function} needs something to look at")
    if function in ("sum", "avg"):
        return _sums(groups, values, count, mean=function == "avg")
    return _extremes(groups, values, count, largest=function == "max")


def _counts(groups: Positions, values: pa.Array | None, count: int) -> npt.NDArray[np.int64]:
    if values is not None and values.null_count:
        groups = groups[_valid(values)]
    return np.bincount(groups, minlength=count).astype(np.int64)


def _sums(groups: Positions, values: pa.Array, count: int, *, mean: bool) -> pa.Array:
    need(3 * POSITION * len(groups))
    valid = _valid(values)
    numbers = values.filter(pa.array(valid)).cast(pa.float64(), safe=False).to_numpy()
    kept = groups[valid]
    found = np.bincount(kept, minlength=count)
    # Of no numbers at all, NumPy makes integers.
    total = np.bincount(kept, weights=numbers, minlength=count).astype(np.float64)
    if mean:
        total = np.divide(total, found, out=np.zeros(count), where=found > 0)
    return pa.array(total, mask=found == 0)


def _extremes(groups: Positions, values: pa.Array, count: int, *, largest: bool) -> pa.Array:
    """The first value of each group, in the order of values and then of groups."""
    need(5 * POSITION * len(groups) + int(values.get_total_buffer_size()))
    valid = _valid(values)
    kept, found = groups[valid], values.filter(pa.array(valid))
    comparable = found.cast(pa.int8()) if pa.types.is_boolean(found.type) else found
    direction = "descending" if largest else "ascending"
    by_value = pc.array_sort_indices(comparable, order=direction).to_numpy().astype(np.int64)
    order = by_value[np.argsort(kept[by_value], kind="stable")]
    ordered = kept[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    owners = ordered[first]
    chosen = np.zeros(count, dtype=np.int64)
    chosen[owners] = order[first]
    nobody = np.ones(count, dtype=bool)
    nobody[owners] = False
    if not len(found):
        return pa.nulls(count, values.type)
    return found.take(pa.array(chosen, mask=nobody))


def _valid(values: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return valid
