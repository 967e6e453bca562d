"""Sorted scans: the rows of a table in the order of their ids, in bounded memory.

Owns the scan; the sort is `rows/external_sort.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits, in_order
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import Table


def sorted_batches(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    with_row_address: bool = False,
    limits: SortLimits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """The rows by `id` ascending, byte by byte; the id must be among the columns.

    A blob is a description of where it lies, as in a scan: `blob_text.py` reads
    the bytes when they are needed, so that they are neither sorted nor spilled.
    """
    if table.pin.row_count:
        scanned = _scan(table, columns, limits, with_row_address=with_row_address)
        yield from in_order(scanned, limits)


def _scan(
    table: Table, columns: Sequence[str] | None, limits: SortLimits, *, with_row_address: bool
) -> Iterator[pa.RecordBatch]:
    with storage_errors(f"scanning {table.location}"):
        scanner = table.scanner(
            columns,
            with_row_address=with_row_address,
            # Rows can be wide (vectors), and Lance reads several batches ahead.
            batch_size=limits.batch_rows,
            batch_size_bytes=limits.batch_bytes,
        )
        yield from scanner.to_batches()
