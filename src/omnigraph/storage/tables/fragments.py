"""Layouts: the fragments of one version of a table, and reading columns by fragment.

Owns telling which fragments two versions share, so that a column that was read for one of them
is read again only where they differ. Keeps layouts, never a column.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.storage.cache_budget import Cache, Part, Version, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, NamedScan, Table, column_names

# How many rows a scan hands over at a time.
STREAMED = 32_768
# So many columns are many; others may be read beside them, one for each of so many.
MANY_COLUMNS = 64
# How many row ids one filter lists.
LISTED = 1_000
# What a layout takes, and a fragment in it.
LAYOUT_BYTES = 500
PART_BYTES = 300


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """One fragment: equal parts hold the same rows.

    ``deletions`` names the file of its deleted rows: two branches may delete different
    rows of one fragment, and as many. ``physical`` rows are what its files have, in about so many
    bytes.
    """

    number: int
    file: str
    rows: int
    deletions: str = ""
    physical: int = field(default=0, compare=False)
    size: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Layout:
    """The fragments of a version in the order rows are read."""

    parts: tuple[FragmentPart, ...]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(part.rows for part in self.parts)

    def shares(self, other: Layout) -> bool:
        """Whether another version has any of its fragments as they are."""
        return not set(self.parts).isdisjoint(other.parts)

    def bounds(self) -> list[int]:
        """Where the rows of each fragment begin, and where the last one ends."""
        return [0, *np.cumsum([part.rows for part in self.parts], dtype=np.int64).tolist()]


def layout_of(table: Table) -> Layout:
    """The layout of a version."""
    key = (table.location.uri, table.pin.version)
    known = _layouts.get(key)
    if known is None:
        _layouts.missed()
        known = _listed(table)
        _layouts.keep(key, known)
    return known


def derive_layout(before: Table, after: Table, touched: Container[int] = ()) -> None:
    """Know the layout of a version from that of the one it was made of, cheaply.

    Fragments of the same number are the same, but for those that are ``touched``.
    """
    known = {part.number: part for part in layout_of(before).parts if part.number not in touched}
    with storage_errors(f"listing the fragments of {after.location}"):
        dataset = after.dataset()
        parts = [
            known.get(number) or fragment_part(_found(dataset, number).metadata)
            for number in sorted(dataset.fragment_ids())
        ]
    _layouts.keep((after.location.uri, after.pin.version), Layout(tuple(parts)))


def _listed(table: Table) -> Layout:
    with storage_errors(f"listing the fragments of {table.location}"):
        fragments = sorted(table.dataset().get_fragments(), key=lambda found: found.fragment_id)
        return Layout(tuple(fragment_part(fragment.metadata) for fragment in fragments))


def _weight(layout: Layout) -> list[Part]:
    return [(layout, LAYOUT_BYTES + PART_BYTES * len(layout.parts))]


_layouts: Cache[Version, Layout] = Cache("layouts", _weight, budget, version=lambda key: key)


def fragment_part(metadata: FragmentMetadata) -> FragmentPart:
    """The part that a fragment is."""
    deleted = metadata.deletion_file
    deletions = "" if deleted is None else f"{deleted.read_version}-{deleted.id}"
    # Lance makes a class for every path that it hands out; a plain text is a tenth as large.
    return FragmentPart(
        metadata.id,
        str(metadata.files[0].path),
        metadata.num_rows,
        deletions,
        metadata.physical_rows,
        _size(metadata),
    )


def _size(metadata: FragmentMetadata) -> int:
    """About how many bytes the files of a fragment have.

    The size of a column that was added later is noted nowhere: it counts as much as the rest.
    """
    known = [file.file_size_bytes or 0 for file in metadata.files]
    return sum(known) + known.count(0) * max(known, default=0)


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """What a fragment takes: how many of its rows are deleted, and the bytes of its data files.

    ``has_retired`` says that it holds values of a column that no name leads to.
    """

    part: FragmentPart
    deleted: int
    bytes: int
    has_retired: bool


def fragment_sizes(table: Table) -> list[FragmentSize]:
    """The sizes of all fragments of a version, in the order of its layout; reads none of them."""
    with storage_errors(f"listing the fragments of {table.location}"):
        dataset = table.dataset()
        retired: set[int] = set()
        if table.columns:
            named = set(table.columns.of_all(None) or ())
            fields = dataset.lance_schema.fields()
            retired = {field.id() for field in fields if field.name() not in named}
        found = [fragment.metadata for fragment in dataset.get_fragments()]
        sizes = [
            FragmentSize(
                fragment_part(one),
                one.physical_rows - one.num_rows,
                sum(file.file_size_bytes or 0 for file in one.files),
                any(not retired.isdisjoint(file.fields) for file in one.files),
            )
            for one in found
        ]
    return sorted(sizes, key=lambda size: size.part.number)


def read_parts(
    table: Table,
    columns: Sequence[str],
    parts: Sequence[FragmentPart],
    each: Callable[[int], None] = lambda _: None,
) -> dict[str, list[pa.Array]]:
    """Columns of some fragments, fragment by fragment; `_rowid` counts as a column.

    ``each`` is told, as they come, how many bytes are there.
    """
    if not parts:
        return {column: [] for column in columns}
    batches: list[pa.RecordBatch] = []
    size = 0
    with storage_errors(f"reading {len(columns)} columns of {table.location}"):
        for batch in _scanner(table, columns, parts, may_be_more=True).to_batches():
            batches.append(batch)
            size += batch.nbytes
            each(size)
    # At the end there are two of them, the batches and the whole.
    each(2 * size)
    read = pa.Table.from_batches(batches)
    bounds = Layout(tuple(parts)).bounds()
    return {
        column: [whole.slice(start, part.rows) for start, part in zip(bounds, parts, strict=False)]
        for column in columns
        for whole in [read.column(column).combine_chunks()]
    }


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
    may_be_more: bool = False,
) -> NamedScan:
    dataset = table.dataset()
    return table.scanner(
        _projection(table, columns, may_be_more=may_be_more),
        with_row_id=ROW_ID in columns,
        with_row_address=ROW_ADDRESS in columns,
        fragments=[fragment_of(dataset, part) for part in parts],
        scan_in_order=True,
        batch_size=STREAMED,
        blob_handling="all_binary" if with_blobs else None,
    )


def _projection(table: Table, columns: Sequence[str], *, may_be_more: bool) -> list[str] | None:
    """What Lance is told to read; None for all, where a few small columns more do not matter.

    It looks for each column that it is told among all others: many take longer than the rest.
    """
    wanted = [name for name in columns if name not in (ROW_ID, ROW_ADDRESS)]
    if not may_be_more or len(wanted) < MANY_COLUMNS:
        return wanted
    others = column_names(table).difference(wanted)
    if len(others) * MANY_COLUMNS > len(wanted):
        return wanted
    schema, has_few_rows = table.schema, table.pin.row_count <= LISTED
    types = (schema.field(name).type for name in others)
    is_small = all(
        pa.types.is_primitive(found) or (has_few_rows and pa.types.is_string(found))
        for found in types
    )
    return None if is_small else wanted


def read_rows(
    table: Table, columns: Sequence[str], row_ids: npt.NDArray[np.int64]
) -> list[pa.Array]:
    """Columns of the rows with these row ids, in ascending order of them."""
    wanted = row_ids.tolist()
    read: list[pa.Table] = []
    with storage_errors(f"reading rows of {table.location}"):
        for start in range(0, len(wanted), LISTED):
            # Numbers of our own: Lance goes straight to these rows.
            listed = ", ".join(map(str, wanted[start : start + LISTED]))
            scanner = table.scanner(columns, f"{ROW_ID} in ({listed})", with_row_id=True)
            read.append(scanner.to_table())
    if not read:
        return [pa.array([], table.schema.field(column).type) for column in columns]
    rows = pa.concat_tables(read).sort_by(ROW_ID)
    if rows.num_rows != len(wanted):
        raise AssertionError("a row id leads to no row")
    return [rows.column(column).combine_chunks() for column in columns]


def fragment_of(dataset: lance.LanceDataset, part: FragmentPart) -> lance.LanceFragment:
    """The fragment that a part is of."""
    return _found(dataset, part.number)


def _found(dataset: lance.LanceDataset, number: int) -> lance.LanceFragment:
    found = dataset.get_fragment(number)
    if found is None:
        raise AssertionError("a layout names a fragment that its version does not have")
    return found
