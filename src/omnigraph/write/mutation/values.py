"""Values of a mutation: from a plan's literals and parameters to columns of rows.

Owns how a value becomes one of the property's type. A value that the type cannot
hold is refused here; which values a property allows is the rules' to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import ValidationError
from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import PropertyDef
from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.rows.filters import arrow_values
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.write.change.change_set import EntityType, type_key
from omnigraph.write.load.columns.cells import BASE64, read_blob
from omnigraph.write.load.columns.typed_rows import default_of
from omnigraph.write.load.ndjson.values import EXTERNAL, NOT_BASE64
from omnigraph.write.rules.row_rules import required_text
from omnigraph.write.rules.violations import Violation, Violations


def absent_array(property_: PropertyDef) -> pa.Array:
    """The value of a property that is left out, as a column of one row."""
    default = default_of(property_, arrow_field("", property_.type).type)
    return property_array(None, property_) if default is None else pa.repeat(default, 1)


def assigned_arrays(
    type_: EntityType, assignments: Iterable[plan.Assignment], values: Values
) -> dict[str, pa.Array]:
    """What an update assigns, each as a column of one row; refused whether or not a row matches."""
    missing = Violations()
    found: dict[str, pa.Array] = {}
    for assignment in assignments:
        property_ = type_.properties[assignment.property]
        found[property_.name] = property_array(values.of(assignment.value), property_)
        is_required = not property_.type.nullable and property_.embedding is None
        if is_required and found[property_.name].null_count:
            text = required_text(property_.name)
            missing.add(Violation("required", text, type_key(type_), property_.name))
    missing.raise_if_any()
    return found


def property_array(value: plan.Constant, property_: PropertyDef) -> pa.Array:
    """One value, as a column of one row."""
    type_ = property_.type
    if value is None:
        return pa.nulls(1, pa.large_binary() if type_.is_blob else arrow_field("", type_).type)
    if type_.is_blob:
        return pa.array([_blob(value, property_.name)], pa.large_binary())
    if type_.is_vector:
        return _vector(value, property_.name, type_)
    items = value if isinstance(value, tuple) else (value,)
    _check_fit(items, property_.name, type_)
    array = arrow_values(items, type_.scalar)
    _check_finite(array, property_.name, type_)
    if not type_.is_list:
        return array
    return pa.ListArray.from_arrays([0, len(array)], array).cast(arrow_field("", type_).type)


def _vector(value: plan.Constant, name: str, type_: ValueType) -> pa.Array:
    array = arrow_values(value if isinstance(value, tuple) else (), Scalar.F32)
    if len(array) != type_.dimension:
        raise _refused(name, f"expected {type_.dimension} numbers, found {len(array)}")
    _check_finite(array, name, type_)
    wanted = arrow_field("", type_).type
    return pa.FixedSizeListArray.from_arrays(array, type_.dimension).cast(wanted)


def _check_fit(items: tuple[Any, ...], name: str, type_: ValueType) -> None:
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
