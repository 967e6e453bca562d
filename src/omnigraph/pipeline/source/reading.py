"""Reading: the rows of a part as Arrow batches of the types that are asked for.

Owns bounded batches and the conversion of whole columns. Used by Spark tasks; knows
nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipeline.source.blobs import blob_bytes
from omnigraph.pipeline.source.selection import SourceColumn, TypeSelection
from omnigraph.read.output.blob_text import within_bytes
from omnigraph.rows.external_sort import DEFAULT_LIMITS
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import Table


def read_rows(
    selection: TypeSelection, wanted: pa.Schema, where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows that pass a filter, the columns converted to the wanted types."""
    table = selection.table
    blobs = selection.blobs
    with storage_errors(f"scanning {table.location}"):
        scanner = table.dataset().scanner(
            columns=[column.name for column in selection.columns if column.is_stored],
            filter=where,
            with_row_address=bool(blobs),
            # Rows can be wide (vectors), and Lance reads several batches ahead.
            batch_size=DEFAULT_LIMITS.batch_rows,
            batch_size_bytes=DEFAULT_LIMITS.batch_bytes,
        )
        for batch in scanner.to_batches():
            for rows in within_bytes(batch, blobs):
                yield converted(selection, rows, wanted)


def converted(selection: TypeSelection, rows: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Rows as they are stored, with the wanted types."""
    columns = [_values(selection.table, column, rows) for column in selection.columns]
    cast = [values.cast(field.type) for values, field in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=wanted)


def _values(table: Table, column: SourceColumn, rows: pa.RecordBatch) -> pa.Array:
    if not column.is_stored:
        return pa.nulls(rows.num_rows)
    if column.type.is_blob:
        return blob_bytes(table, rows, column.name)
    return rows.column(column.name)
