"""The functions of vectors and of places on the globe.

Owns their formulas, in float64 whatever the width of the components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from omnigraph.errors import QueryError
from omnigraph.rows.functions.call import Call, Floats, Kernel, floats, numbers, valid
from omnigraph.rows.functions.lists import segment_sums
from omnigraph.rows.functions.ragged import lists_of

EARTH_RADIUS_KM = 6371.0088
_BATCH = 4096

Formula = Callable[[Floats, Floats, Callable[[Floats], Floats]], Floats]


def _of_two(formula: Formula) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        found = np.full(call.count, np.nan)
        for start in range(0, call.count, _BATCH):
            call.bounds.look()
            size = min(_BATCH, call.count - start)
            left, right = (_part(value, start, size) for value in call.arguments)
            found[start : start + size] = _values(formula, left, right, call.name)
        return numbers(found)

    return kernel


def _part(value: pa.Array | pa.Scalar, start: int, size: int) -> pa.Array:
    return value.slice(start, size) if isinstance(value, pa.Array) else pa.repeat(value, size)


def _values(formula: Formula, left: pa.Array, right: pa.Array, name: str) -> Floats:
    both = valid(left, right)
    found = np.full(len(both), np.nan)
    kept = pa.array(np.flatnonzero(both))
    one, other = lists_of(left.take(kept)), lists_of(right.take(kept))
    differs = one.lengths != other.lengths
    if bool(differs.any()):
        row = int(np.flatnonzero(differs)[0])
        raise QueryError(
            f"{name} needs two vectors of as many numbers, found {one.lengths[row]} and "
            f"{other.lengths[row]}",
            details={"function": name},
        )
    with np.errstate(all="ignore"):
        found[both] = formula(
            floats(one.values), floats(other.values), lambda each: segment_sums(each, one)
        )
    return found


def _dot(left: Floats, right: Floats, total: Callable[[Floats], Floats]) -> Floats:
    return total(left * right)


def _l2(left: Floats, right: Floats, total: Callable[[Floats], Floats]) -> Floats:
    found: Floats = np.sqrt(total((left - right) ** 2))
    return found


def _cosine(left: Floats, right: Floats, total: Callable[[Floats], Floats]) -> Floats:
    lengths = np.sqrt(total(left * left)) * np.sqrt(total(right * right))
    found: Floats = np.clip(total(left * right) / lengths, -1.0, 1.0)
    return found


def _distance(call: Call) -> pa.Array:
    lat1, lon1, lat2, lon2 = (np.radians(floats(call.column(place))) for place in range(4))
    with np.errstate(all="ignore"):
        half = (
            np.sin((lat2 - lat1) / 2) ** 2
            + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
        )
        return numbers(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))))


KERNELS: Mapping[str, Kernel] = {
    "cosine": _of_two(_cosine),
    "dot": _of_two(_dot),
    "l2": _of_two(_l2),
    "distance_km": _distance,
}
