"""Columns: the Arrow fields that typed properties are stored in.

Owns the mapping from the languages' types to Arrow. Knows types and names only,
never what a table is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import lance
import pyarrow as pa

from omnigraph.lang.types import Scalar, ValueType
from omnigraph.storage.tables.table import BLOB

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


def arrow_field(name: str, type_: ValueType) -> pa.Field:
    """The column of a property."""
    if type_.is_blob:
        return lance.blob_field(name, nullable=type_.nullable)
    return pa.field(name, _arrow_type(type_), nullable=type_.nullable)


def _arrow_type(type_: ValueType) -> pa.DataType:
    if type_.dimension is not None:
        return pa.list_(pa.field("item", pa.float32()), type_.dimension)
    scalar = SCALARS[type_.scalar]
    return pa.list_(pa.field("item", scalar)) if type_.is_list else scalar


def table_columns(structural: Iterable[str], properties: Mapping[str, ValueType]) -> pa.Schema:
    """Structural text columns first, then the properties by name."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in structural]
    fields += [arrow_field(name, properties[name]) for name in sorted(properties)]
    return pa.schema(fields)


def plain_blobs(schema: pa.Schema) -> pa.Schema:
    """The same columns with blobs as plain bytes."""
    return pa.schema(
        pa.field(column.name, pa.large_binary(), column.nullable) if is_blob(column) else column
        for column in schema
    )


def is_blob(column: pa.Field) -> bool:
    """Whether a column holds blobs."""
    return getattr(column.type, "extension_name", None) == BLOB
