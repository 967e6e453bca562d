"""Arrow types: what values of the languages' types are in memory and in tables.

Owns the mapping. Knows types only, never what a column is for.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from omnigraph.lang.types import Scalar, ValueType

SCALARS: Mapping[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    # A time zone: without one, other tools take the values for times of an unknown place.
    Scalar.DATETIME: pa.timestamp("ms", "UTC"),
}


def arrow_type(type_: ValueType) -> pa.DataType:
    """The type of a property's values; blobs have none outside of tables."""
    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32()), type_.dimension)
    scalar = SCALARS[type_.scalar]
    return pa.list_(pa.field("item", scalar)) if type_.is_list else scalar
