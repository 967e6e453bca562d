"""Constants as Arrow values: literals, parameters and moments in the types they are stored in.

Owns the conversion there and back. Never rounds what a type cannot hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.lang.expressions import Const, Constant, Now, ParamRef
from omnigraph.lang.literals import epoch_days, epoch_millis
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.rows.arrow_types import SCALARS, arrow_type
from omnigraph.rows.numbers import floats_equal_to


def arrow_scalar(value: Any, scalar: Scalar) -> pa.Scalar:
    """A value of a language type as a scalar of the type it is stored in."""
    return arrow_values([value], scalar)[0]


def arrow_values(values: Sequence[Any], scalar: Scalar) -> pa.Array:
    """Values of a language type as an array of the type they are stored in."""
    if scalar is Scalar.DATE:
        days = [None if value is None else epoch_days(value) for value in values]
        return pa.array(days, pa.int32()).cast(pa.date32())
    if scalar is Scalar.DATETIME:
        moments = [None if value is None else epoch_millis(value) for value in values]
        return pa.array(moments, SCALARS[scalar])
    if scalar in INTEGERS:
        values = [None if value is None else int(value) for value in values]
    if scalar in FLOATS:
        # An integer constant of a float property is the float of its value.
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, SCALARS[scalar])


def equal_values(values: Sequence[Any], scalar: Scalar) -> pa.Array:
    """The values of a type that equal one of some others, for a test of membership."""
    if scalar in FLOATS:
        return floats_equal_to(values, scalar)
    if scalar in INTEGERS:
        low, high = INTEGER_RANGE[scalar]
        values = [value for value in values if low <= value <= high and value == int(value)]
    return arrow_values(values, scalar)


def compared_type(value: ParamRef | Const | Now) -> ValueType:
    """The type in which a constant is compared: it keeps all its digits."""
    type_ = value.type
    return replace(type_, scalar=Scalar.F64) if type_.scalar is Scalar.F32 else type_


def constant_scalar(value: Any, type_: ValueType) -> pa.Scalar:
    """A constant as a scalar of the type it has in storage."""
    if value is None:
        return pa.scalar(None, pa.string() if type_.is_blob else arrow_type(type_))
    if not isinstance(value, tuple):
        return arrow_values([value], type_.scalar)[0]
    items = pa.array(value, pa.float32()) if type_.is_vector else arrow_values(value, type_.scalar)
    whole = pa.ListArray.from_arrays([0, len(items)], items)
    stored = arrow_type(type_)
    return whole.cast(stored)[0] if len(items) or not type_.is_vector else pa.scalar(None, stored)


def python_value(found: pa.Scalar) -> Constant:
    """A scalar as the languages hold it."""
    value = found.as_py()
    return tuple(value) if isinstance(value, list) else value
