"""Layouts: the fragments of one version of a table, and reading columns by fragment.

Owns telling which fragments two versions share, so that a column that was read for
one of them is read again only where they differ. Keeps layouts, never a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.storage.cache_budget import Cache, Part, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table

# How many rows a scan hands over at a time.
STREAMED = 32_768
# How many row ids one filter lists.
LISTED = 1_000
# What a layout takes, and a fragment in it.
LAYOUT_BYTES = 500
PART_BYTES = 300


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """One fragment: equal parts hold the same rows.

    ``deletions`` names the file of its deleted rows: two branches may delete different
    rows of one fragment, and as many.
    """

    number: int
    file: str
    rows: int
    deletions: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The fragments of a version in the order rows are read."""

    parts: tuple[FragmentPart, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    def bounds(self) -> list[int]:
        """Where the rows of each fragment begin, and where the last one ends."""
        return [0, *np.cumsum([part.rows for part in self.parts], dtype=np.int64).tolist()]


def layout_of(table: Table) -> Layout:
    """The layout of a version."""
    known = _layouts.get(table)
    if known is None:
        _layouts.missed()
        known = _listed(table)
        _layouts.keep(table, known)
    return known


def _listed(table: Table) -> Layout:
    with storage_errors(f"listing the fragments of {table.location}"):
        fragments = sorted(table.dataset().get_fragments(), key=lambda found: found.fragment_id)
        return Layout(tuple(fragment_part(fragment.metadata) for fragment in fragments))


def _weight(layout: Layout) -> list[Part]:
    return [(layout, LAYOUT_BYTES + PART_BYTES * len(layout.parts))]


_layouts: Cache[Table, Layout] = Cache("layouts", _weight, budget)


def fragment_part(metadata: FragmentMetadata) -> FragmentPart:
    """The part that a fragment is."""
    deleted = metadata.deletion_file
    deletions = "" if deleted is None else f"{deleted.read_version}-{deleted.id}"
    # Lance makes a class for every path that it hands out; a plain text is a tenth as large.
    return FragmentPart(metadata.id, str(metadata.files[0].path), metadata.num_rows, deletions)


def read_parts(table: Table, column: str, parts: Sequence[FragmentPart]) -> list[pa.Array]:
    """One column of some fragments, fragment by fragment; `_rowid` counts as a column."""
    if not parts:
        return []
    with storage_errors(f"reading the column {column} of {table.location}"):
        read = _scanner(table, [column], parts).to_table().column(column).combine_chunks()
    bounds = Layout(tuple(parts)).bounds()
    return [read.slice(start, part.rows) for start, part in zip(bounds, parts, strict=False)]


def stream_parts(
    table: Table,
    columns: Sequence[str],
    parts: Sequence[FragmentPart],
    *,
    with_blobs: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Columns of some fragments, in order and piece by piece: the next is read meanwhile.

    `_rowid` and `_rowaddr` count as columns.
    """
    with storage_errors(f"reading {', '.join(columns)} of {table.location}"):
        yield from _scanner(table, columns, parts, with_blobs=with_blobs).to_batches()


def _scanner(
    table: Table,
    columns: Sequence[str],
    parts: Sequence[FragmentPart],
    *,
    with_blobs: bool = False,
) -> lance.LanceScanner:
    dataset = table.dataset()
    return dataset.scanner(
        columns=[name for name in columns if name not in (ROW_ID, ROW_ADDRESS)],
        with_row_id=ROW_ID in columns,
        with_row_address=ROW_ADDRESS in columns,
        fragments=[_fragment(dataset, part) for part in parts],
        scan_in_order=True,
        batch_size=STREAMED,
        blob_handling="all_binary" if with_blobs else None,
    )


def read_rows(table: Table, column: str, row_ids: npt.NDArray[np.int64]) -> pa.Array:
    """One column of the rows with these row ids, in ascending order of them."""
    wanted = row_ids.tolist()
    read: list[pa.Table] = []
    with storage_errors(f"reading rows of {table.location}"):
        for start in range(0, len(wanted), LISTED):
            # Numbers of our own: Lance goes straight to these rows.
            listed = ", ".join(map(str, wanted[start : start + LISTED]))
            scanner = table.dataset().scanner(
                columns=[column], filter=f"{ROW_ID} in ({listed})", with_row_id=True
            )
            read.append(scanner.to_table())
    if not read:
        return pa.array([], table.schema.field(column).type)
    rows = pa.concat_tables(read).sort_by(ROW_ID)
    if rows.num_rows != len(wanted):
        raise AssertionError("a row id leads to no row")
    return rows.column(column).combine_chunks()


def _fragment(dataset: lance.LanceDataset, part: FragmentPart) -> lance.LanceFragment:
    found = dataset.get_fragment(part.number)
    if found is None:
        raise AssertionError("a layout names a fragment that its version does not have")
    return found
