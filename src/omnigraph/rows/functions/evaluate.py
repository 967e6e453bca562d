"""Evaluating one function over columns and constants.

Owns finding its kernel, and what holds for all of them: constants give a constant, and where a
function is null if any argument is, nothing is computed of a constant null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.errors import ResourceLimit
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.types import ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.rows.functions import choice, conversion, lists, numbers, texts, times, vectors
from omnigraph.rows.functions.call import Bounds, Call, Kernel, Unbounded

KERNELS: Mapping[str, Kernel] = {
    **choice.KERNELS,
    **numbers.KERNELS,
    **texts.KERNELS,
    **times.KERNELS,
    **lists.KERNELS,
    **conversion.KERNELS,
    **vectors.KERNELS,
}
_UNBOUNDED = Unbounded()


def evaluate(
    name: str,
    args: Sequence[pa.Array | pa.Scalar],
    count: int,
    result: ValueType,
    *,
    bounds: Bounds = _UNBOUNDED,
) -> pa.Array | pa.Scalar:
    """What a function gives: an array of ``count`` values, or a scalar if all arguments are.

    Integers come as int64 if all fit, else as uint64. ``now`` and ``today`` are not here: they
    are the statement's. Raises QueryError for values that there is no result of.
    """
    function = FUNCTIONS[name]
    bounds.look()
    is_constant = all(isinstance(value, pa.Scalar) for value in args)
    nothing = [value for value in args if isinstance(value, pa.Scalar) and not value.is_valid]
    if function.null_if_any and nothing:
        made = arrow_type(result)
        return pa.scalar(None, made) if is_constant else pa.nulls(count, made)
    call = Call(name, args, 1 if is_constant else count, result, bounds)
    try:
        values = KERNELS[name](call)
    except pa.ArrowCapacityError as full:
        raise ResourceLimit(
            f"{name} would make more than a column holds: narrow the query down",
            details={"resource": "column_bytes"},
        ) from full
    return values[0] if is_constant else values
