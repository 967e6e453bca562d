"""Rows: the last step of decoding, from typed columns to the rows of a batch.

Owns their column order, the defaults of absent properties, and ids: derived from a
key, taken as given or made afresh. Never checks what was given.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import PropertyDef
from omnigraph.lang.structural import ID
from omnigraph.lang.types import Scalar
from omnigraph.write.change.change_set import EntityType, TypeBatch, fresh_ids, key_ids, row_columns
from omnigraph.write.load.columns.cells import read_date, read_datetime
from omnigraph.write.rules.violations import SourceMap


def default_of(property_: PropertyDef, type_: pa.DataType) -> pa.Scalar | None:
    """The value of an absent property as it is stored, or None if it has no default."""
    value = property_.default
    if value is None:
        return None
    if isinstance(value, str) and property_.type.scalar is Scalar.DATE:
        return pa.scalar(read_date(value), pa.int32()).cast(type_)
    if isinstance(value, str) and property_.type.scalar is Scalar.DATETIME:
        return pa.scalar(read_datetime(value), pa.int64()).cast(type_)
    return pa.scalar(value, type_)


def derived_ids(type_: EntityType, columns: pa.Table) -> pa.ChunkedArray | None:
    """The ids that a key gives to rows, or None for a type without a key."""
    return pa.chunked_array([key_ids(type_, columns)]) if type_.key else None


def finish(type_: EntityType, columns: pa.Table, places: SourceMap) -> TypeBatch:
    """A batch of columns whose `@id` is null where no id is known yet."""
    schema = row_columns(type_)
    # Not a cast: that would refuse the empty vectors which are still to be embedded.
    rows = pa.Table.from_arrays([columns.column(name) for name in schema.names], schema=schema)
    given = rows.column(ID)
    if given.null_count == len(given):
        # Also the batch without rows.
        return TypeBatch(type_, _with_ids(rows, fresh_ids(len(rows))), None, places)
    fresh = pc.is_null(given).combine_chunks()
    if given.null_count:
        made = fresh_ids(given.null_count)
        filled = pc.replace_with_mask(given.combine_chunks(), fresh, made)
        rows = _with_ids(rows, filled)
    return TypeBatch(type_, rows, fresh, places)


def _with_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.set_column(0, rows.schema.field(ID), ids)
