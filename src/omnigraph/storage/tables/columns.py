"""Columns of tables: the fields that typed properties are stored in, blobs among them.

Owns their order and how a column of blobs is told. Never says what a table is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import lance
import pyarrow as pa

from omnigraph.lang.types import ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.storage.tables.table import BLOB


def arrow_field(name: str, type_: ValueType) -> pa.Field:
    """The column of a property."""
    if type_.is_blob:
        return lance.blob_field(name, nullable=type_.nullable)
    return pa.field(name, arrow_type(type_), nullable=type_.nullable)


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
