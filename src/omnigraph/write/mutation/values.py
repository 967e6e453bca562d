"""Values of a mutation: from a plan's literals and parameters to columns of rows.

Owns how a value becomes one of the property's type. A value that the type cannot
hold is refused here; which values a property allows is the rules' to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import PropertyDef
from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.rows.constants import arrow_values
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.write.load.columns.cells import BASE64, read_blob
from omnigraph.write.load.columns.typed_rows import default_of
from omnigraph.write.load.ndjson.values import EXTERNAL, NOT_BASE64


def absent_array(property_: PropertyDef) -> pa.Array:
    """The value of a property that is left out, as a column of one row."""
    default = default_of(property_, arrow_field("", property_.type).type)
    return property_array((None,), property_) if default is None else pa.repeat(default, 1)


def property_array(values: Sequence[plan.Constant], property_: PropertyDef) -> pa.Array:
    """Values of a property, as a column."""
    given = [value for value in values if value is not None]
    if not given:
        type_ = property_.type
        stored = pa.large_binary() if type_.is_blob else arrow_field("", type_).type
        return pa.nulls(len(values), stored)
    dense = _dense_array(given, property_)
    if len(given) == len(values):
        return dense
    places = np.cumsum([value is not None for value in values]) - 1
    return dense.take(pa.array(places, mask=np.array([value is None for value in values])))


def fitting_array(values: pa.Array, property_: PropertyDef) -> pa.Array:
    """Computed values as those of a property; one that it cannot hold is refused."""
    name, type_ = property_.name, property_.type
    wanted = arrow_field("", type_).type
    if type_.is_vector:
        wrong = pc.not_equal(pc.list_value_length(values), type_.dimension)
        if pc.any(wrong).as_py():
            raise _refused(name, f"expected {type_.dimension} numbers")
    try:
        fitting = values.cast(wanted)
    except pa.ArrowInvalid:
        kind = str(type_.without_null)
        raise _refused(name, f"a computed value does not fit {kind}") from None
    items = fitting.flatten() if type_.is_list or type_.is_vector else fitting
    _check_finite(items.drop_null(), name, type_)
    return fitting


def constants_of(values: pa.Array) -> list[plan.Constant]:
    """Computed values as the languages hold them."""
    found = values.to_pylist()
    return [tuple(one) if isinstance(one, list) else one for one in found]


def _dense_array(values: Sequence[plan.Constant], property_: PropertyDef) -> pa.Array:
    name, type_ = property_.name, property_.type
    if type_.is_blob:
        return pa.array([_blob(value, name) for value in values], pa.large_binary())
    if type_.is_vector:
        return _vectors(values, name, type_)
    if not type_.is_list:
        return _scalars(values, name, type_)
    lists = [value if isinstance(value, tuple) else (value,) for value in values]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int32)
    items = _scalars(list(chain.from_iterable(lists)), name, type_)
    return pa.ListArray.from_arrays(pa.array(offsets), items).cast(arrow_field("", type_).type)


def _scalars(values: Sequence[Any], name: str, type_: ValueType) -> pa.Array:
    _check_fit(values, name, type_)
    array = arrow_values(values, type_.scalar)
    _check_finite(array, name, type_)
    return array


def _vectors(values: Sequence[plan.Constant], name: str, type_: ValueType) -> pa.Array:
    rows = [value if isinstance(value, tuple) else () for value in values]
    for row in rows:
        if len(row) != type_.dimension:
            raise _refused(name, f"expected {type_.dimension} numbers, found {len(row)}")
    array = arrow_values(list(chain.from_iterable(rows)), Scalar.F32)
    _check_finite(array, name, type_)
    wanted = arrow_field("", type_).type
    return pa.FixedSizeListArray.from_arrays(array, type_.dimension).cast(wanted)


def _check_fit(items: Sequence[Any], name: str, type_: ValueType) -> None:
    """Integers of a wider parameter may not fit."""
    if type_.scalar not in INTEGERS:
        return
    low, high = INTEGER_RANGE[type_.scalar]
    for item in items:
        if not low <= item <= high:
            raise _refused(name, f"{item} does not fit {type_.scalar.value}")


def _check_finite(array: pa.Array, name: str, type_: ValueType) -> None:
    if pa.types.is_floating(array.type) and not np.isfinite(array.to_numpy(False)).all():  # noqa: FBT003 - pyarrow's own signature
        raise _refused(name, f"a number is too large for {type_}")


def _blob(value: plan.Constant, name: str) -> bytes:
    text = str(value)
    content = read_blob(text)
    if content is None:
        external = not text.startswith(BASE64)
        raise _refused(name, EXTERNAL if external else NOT_BASE64)
    return content


def _refused(name: str, problem: str) -> ValidationError:
    return ValidationError(f"property '{name}': {problem}", rule="type", details={"property": name})
