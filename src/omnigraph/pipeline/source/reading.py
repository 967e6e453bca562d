"""Reading a table on Spark: its parts, and the rows of a part as Arrow batches.

Owns how a pinned table is cut into parts that are read side by side, and blobs as bytes for
columns that can hold nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.pipeline.source.selection import SourceColumn, TypeSelection
from omnigraph.read.output.json_text import within_bytes
from omnigraph.rows.external_sort import DEFAULT_LIMITS
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

ROWS = 500_000
# What Lance writes into a description for a blob that is a reference.
_EXTERNAL = 3


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


@dataclass(frozen=True, slots=True)
class TablePart(Table):
    """Some fragments of a table; the pin counts their rows only."""

    fragments: tuple[int, ...] = ()

    def dataset(self) -> Any:
        """The opened version, of which only the fragments are scanned."""
        # Named: a class with slots is made anew, and `super()` would look for the old one.
        return _Fragments(Table.dataset(self), self.fragments)


class _Fragments:
    """A dataset that scans some fragments; all else is as in the dataset."""

    def __init__(self, dataset: Any, numbers: tuple[int, ...]) -> None:
        self._dataset = dataset
        self._numbers = numbers

    def scanner(self, **options: Any) -> Any:
        """A scanner as the dataset would give it, of the fragments, in their order."""
        fragments = [self._dataset.get_fragment(number) for number in self._numbers]
        return self._dataset.scanner(fragments=fragments, scan_in_order=True, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def parts_of(table: Table, rows: int = ROWS) -> list[TablePart]:
    """A table in parts of neighbouring fragments: up to so many rows, or one fragment."""
    return [
        TablePart(
            table.location,
            replace(table.pin, row_count=sum(part.rows for part in group)),
            tuple(part.number for part in group),
        )
        for group in _groups(layout_of(table).parts, rows)
    ]


def _groups(parts: tuple[FragmentPart, ...], rows: int) -> Iterator[list[FragmentPart]]:
    group: list[FragmentPart] = []
    for part in parts:
        if group and sum(one.rows for one in group) + part.rows > rows:
            yield group
            group = []
        if part.rows:
            group.append(part)
    if group:
        yield group


def blob_bytes(table: Table, rows: pa.RecordBatch, name: str) -> pa.Array:
    """The bytes of a column of descriptions; the rows have their addresses too."""
    descriptions = rows.column(name)
    _refuse_references(descriptions, name)
    present = descriptions.is_valid()
    addresses = rows.column(ROW_ADDRESS).filter(present)
    if not len(addresses):
        return pa.nulls(rows.num_rows, pa.large_binary())
    with storage_errors(f"reading blobs of {table.location}"):
        found = table.dataset().read_blobs(name, addresses=addresses, preserve_order=True)
    contents = pa.array(list(map(itemgetter(1), found)), pa.large_binary())
    places = np.cumsum(present.to_numpy(zero_copy_only=False)) - 1
    return contents.take(pc.if_else(present, pa.array(places), pa.scalar(None, pa.int64())))


def _refuse_references(descriptions: pa.Array, name: str) -> None:
    outside = pc.equal(pc.struct_field(descriptions, "kind"), _EXTERNAL).fill_null(fill_value=False)
    if not pc.any(outside).as_py():
        return
    uri = pc.struct_field(descriptions, "blob_uri").filter(outside)[0].as_py()
    raise BadRequest(
        f"the column {name} has content outside of the graph ({uri}), which a column of bytes"
        " cannot show: leave the column out, or export as jsonl",
        details={"column": name, "uri": uri},
    )
