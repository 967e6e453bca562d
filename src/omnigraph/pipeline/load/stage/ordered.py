"""Ordered rows: the staged rows of one type written again in an order, in bounded memory.

Owns one task. What it holds is a run of the sort and the rows of one file, whatever the size of the
type. Never changes a row, and leaves out what the check has left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.lang.structural import ID
from omnigraph.pipeline.load.check.key_source import RowList, addresses_in, among
from omnigraph.pipeline.load.stage.decode import MAX_BYTES
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits, in_order
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE, WrittenRows, write_rows
from omnigraph.write.load.row_order import sort_texts
from omnigraph.write.publish.read_set import has_blobs

# The sort is by the column of ids: while it runs, that holds the texts to sort by.
_ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class OrderJob:
    """The staged rows of one type, and the columns to put them in order by."""

    table: Table
    parts: tuple[FragmentPart, ...]
    left_out: tuple[RowList, ...]
    columns: tuple[str, ...]
    limits: SortLimits = DEFAULT_LIMITS


def write_in_order(job: OrderJob) -> list[WrittenRows]:
    """The files of the rows, in order."""
    names = job.table.schema.names
    held: list[pa.RecordBatch] = []
    rows = size = 0
    written: list[WrittenRows] = []

    def write() -> None:
        if held:
            table = pa.Table.from_batches(held).drop_columns([ID])
            restored = table.rename_columns([ID if n == _ASIDE else n for n in table.column_names])
            written.append(write_rows(job.table, None, restored.select(names)))
            held.clear()

    for batch in in_order(_keyed(job), job.limits):
        if held and (rows + batch.num_rows > MAX_ROWS_PER_FILE or size + batch.nbytes > MAX_BYTES):
            write()
            rows = size = 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    write()
    return written


def _keyed(job: OrderJob) -> Iterator[pa.RecordBatch]:
    """The rows that are left, with the texts to sort by for ids."""
    names = job.table.schema.names
    gone = addresses_in(job.left_out)
    scanned = stream_parts(
        job.table, (*names, ROW_ADDRESS), job.parts, with_blobs=has_blobs(job.table.schema)
    )
    for batch in scanned:
        rows = pa.Table.from_batches([batch])
        if len(gone):
            rows = rows.filter(pa.array(~among(gone, rows.column(ROW_ADDRESS))))
        if not rows.num_rows:
            continue
        texts = sort_texts(rows, job.columns)
        renamed = rows.select(names).rename_columns([_ASIDE if n == ID else n for n in names])
        yield from renamed.append_column(ID, texts).combine_chunks().to_batches()
