"""The functions of numbers: rounding, roots and powers, least and greatest.

Owns that what is no finite number becomes null, and that a half goes away from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.functions.call import Call, Floats, Kernel, bounded, floats, numbers, valid
from omnigraph.rows.functions.integers import (
    Signed,
    column_of,
    quotients,
    signed,
    whole_numbers,
)

_EXACT = 2.0**53
_MOST_DIGITS = 400


def _absolute(call: Call) -> pa.Array:
    values = call.column(0)
    if not pa.types.is_integer(values.type):
        return numbers(np.abs(floats(values)))
    magnitude = signed(values).magnitude
    return column_of(Signed(np.zeros(call.count, dtype=bool), magnitude), valid(values), call.name)


def _sign(call: Call) -> pa.Array:
    return whole_numbers(np.sign(floats(call.column(0))), call.name)


def _whole(rounding: Callable[[Floats], Floats]) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        values = call.column(0)
        if pa.types.is_integer(values.type):
            wide = pa.uint64() if pa.types.is_uint64(values.type) else pa.int64()
            return values.cast(wide)
        return whole_numbers(rounding(floats(values)), call.name)

    return kernel


def half_away(values: Floats) -> Floats:
    """The nearest integers; a half goes away from zero."""
    with np.errstate(invalid="ignore"):
        towards = np.trunc(values)
        found: Floats = towards + np.where(
            np.abs(values - towards) >= 0.5, np.copysign(1.0, values), 0.0
        )
        return found


def _round(call: Call) -> pa.Array:
    if not call.has(1):
        return _whole(half_away)(call)
    values, given = floats(call.column(0)), call.column(1)
    digits = bounded(given, _MOST_DIGITS)
    with np.errstate(all="ignore"):
        scale = 10.0 ** np.abs(digits).astype(np.float64)
        shifted = np.where(digits >= 0, values * scale, values / scale)
        rounded = half_away(shifted)
        found = np.where(digits >= 0, rounded / scale, rounded * scale)
        # Beyond 2**53 there is no fraction left to round; of large digits there is nothing left.
        found = np.where((digits >= 0) & ~(np.abs(shifted) < _EXACT), values, found)
        found = np.where((digits < 0) & (rounded == 0), 0.0, found)
    found[~valid(given)] = np.nan
    return numbers(found + 0.0)


def _of_float(work: Callable[[Floats], Floats]) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        with np.errstate(all="ignore"):
            return numbers(work(floats(call.column(0))))

    return kernel


def _power(call: Call) -> pa.Array:
    base, exponent = call.column(0), call.column(1)
    with np.errstate(all="ignore"):
        found = np.power(floats(base), floats(exponent))
    # NumPy takes 1 to the power of anything for 1, also of what is missing.
    found[~valid(base, exponent)] = np.nan
    return numbers(found)


def _extreme(*, largest: bool) -> Kernel:
    pick = pc.max_element_wise if largest else pc.min_element_wise

    def kernel(call: Call) -> pa.Array:
        columns = [call.column(place) for place in range(len(call.arguments))]
        types = [column.type for column in columns]
        if all(map(pa.types.is_integer, types)):
            return _extreme_integer(columns, call.name, largest=largest)
        if any(map(pa.types.is_floating, types)):
            columns = [column.cast(pa.float64(), safe=False) for column in columns]
        elif all(map(pa.types.is_boolean, types)):
            columns = [column.cast(pa.int8()) for column in columns]
            return pick(*columns, skip_nulls=False).cast(pa.bool_())
        elif all(map(pa.types.is_timestamp, types)):
            # Arrow finds none of two moments with a zone.
            columns = [column.cast(pa.int64()) for column in columns]
            return pick(*columns, skip_nulls=False).cast(types[0])
        return pick(*columns, skip_nulls=False)

    return kernel


def _extreme_integer(columns: list[pa.Array], name: str, *, largest: bool) -> pa.Array:
    def better(one: Signed, other: Signed) -> Signed:
        return one.where(other.is_below(one) == largest, other)

    return column_of(reduce(better, map(signed, columns)), valid(*columns), name)


KERNELS: Mapping[str, Kernel] = {
    "abs": _absolute,
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "round": _round,
    "sqrt": _of_float(np.sqrt),
    "exp": _of_float(np.exp),
    "ln": _of_float(np.log),
    "log10": _of_float(np.log10),
    "pow": _power,
    "sign": _sign,
    "div": quotients,
    "min_of": _extreme(largest=False),
    "max_of": _extreme(largest=True),
}
