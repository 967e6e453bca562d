"""Rows: the last step of decoding, from typed columns to the rows of a batch.

Owns their column order, the defaults of absent properties, the marks of patches, and ids:
derived from a key, taken as given or made afresh. Never checks what was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import PropertyDef
from omnigraph.lang.structural import ID
from omnigraph.lang.types import Scalar
from omnigraph.write.change.change_set import EntityType, TypeBatch, fresh_ids, key_ids, row_columns
from omnigraph.write.load.columns.cells import read_date, read_datetime
from omnigraph.write.rules.violations import SourceMap

# No name of a property has a colon.
_GIVEN = "given:"


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


def marked(given: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict[str, Any]:
    """Which cells of a patch are given, as columns beside those of the values."""
    return {f"{_GIVEN}{name}": marks for name, marks in given.items()}


def _marks_of(columns: pa.Table) -> pa.Table | None:
    names = [name for name in columns.column_names if name.startswith(_GIVEN)]
    if not names:
        return None
    return columns.select(names).rename_columns([name.removeprefix(_GIVEN) for name in names])


def finish(type_: EntityType, columns: pa.Table, places: SourceMap) -> TypeBatch:
    """A batch of columns whose `@id` is null where no id is known yet.

    Columns of marks make it a batch of patches, whose ids are all given.
    """
    schema = row_columns(type_)
    # Not a cast: that would refuse the empty vectors which are still to be embedded.
    rows = pa.Table.from_arrays([columns.column(name) for name in schema.names], schema=schema)
    given = rows.column(ID)
    if (marks := _marks_of(columns)) is not None:
        known = pa.repeat(pa.scalar(value=False), len(rows))
        return TypeBatch(type_, rows, known, places, marks)
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
