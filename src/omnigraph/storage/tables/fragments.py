"""Layouts: the fragments of one version of a table, and reading columns by fragment.

Owns telling which fragments two versions share, so that a column that was read for one of them
is read again only where they differ, and which row ids a version has. Keeps layouts and runs
of row ids, never a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata, RowIdSequence

from omnigraph.storage.cache_budget import Cache, Part, budget
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
# What runs of row ids take besides their numbers.
RUNS_BYTES = 200

Numbers = npt.NDArray[np.int64]


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


def _listed(table: Table) -> Layout:
    with storage_errors(f"listing the fragments of {table.location}"):
        fragments = sorted(table.dataset().get_fragments(), key=lambda found: found.fragment_id)
        return Layout(tuple(fragment_part(fragment.metadata) for fragment in fragments))


def _weight(layout: Layout) -> list[Part]:
    return [(layout, LAYOUT_BYTES + PART_BYTES * len(layout.parts))]


_layouts: Cache[tuple[str, int], Layout] = Cache("layouts", _weight, budget)


def fragment_part(metadata: FragmentMetadata) -> FragmentPart:
    """The part that a fragment is."""
    deleted = metadata.deletion_file
    deletions = "" if deleted is None else f"{deleted.read_version}-{deleted.id}"
    # Lance makes a class for every path that it hands out; a plain text is a tenth as large.
    return FragmentPart(metadata.id, str(metadata.files[0].path), metadata.num_rows, deletions)


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
        fragments=[_fragment(dataset, part) for part in parts],
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


# -- row ids -----------------------------------------------------------------------


@dataclass(frozen=True)
class RowIds:
    """Row ids in ascending order, as runs of consecutive ones: mostly they are very few.

    The position of a row id is the number of those before it.
    """

    firsts: Numbers
    ends: Numbers
    """One more than the last of each run."""

    @classmethod
    def of(cls, row_ids: Numbers) -> RowIds:
        """From distinct row ids in any order."""
        if not len(row_ids):
            return cls(_NONE, _NONE)
        ordered = np.sort(row_ids)
        starts = np.flatnonzero(np.diff(ordered, prepend=-2) != 1)
        return cls(ordered[starts], ordered[np.append(starts[1:], len(ordered)) - 1] + 1)

    @classmethod
    def joined(cls, several: Sequence[RowIds]) -> RowIds:
        """All that occur in any."""
        firsts = np.concatenate([_NONE, *(found.firsts for found in several)])
        ends = np.concatenate([_NONE, *(found.ends for found in several)])
        order = np.argsort(firsts, kind="stable")
        firsts, reached = firsts[order], np.maximum.accumulate(ends[order])
        starts = np.flatnonzero(np.append(True, firsts[1:] > reached[:-1])[: len(firsts)])
        return cls(firsts[starts], reached[np.append(starts[1:], len(firsts))[: len(starts)] - 1])

    @cached_property
    def _before(self) -> Numbers:
        """How many row ids stand before each run, and how many there are."""
        counts = np.cumsum(self.ends - self.firsts, dtype=np.int64)
        return np.concatenate([np.zeros(1, dtype=np.int64), counts])

    @cached_property
    def _shift(self) -> Numbers:
        """By how much the row ids of each run are ahead of their positions."""
        return self.firsts - self._before[:-1]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self._before[-1])

    @property
    def size(self) -> int:
        """Bytes held."""
        return 4 * self.firsts.nbytes + RUNS_BYTES

    def positions_of(self, row_ids: Numbers) -> Numbers:
        """The positions of row ids that are among these."""
        shift: Numbers = self._shift
        if len(shift) > 1:
            shift = shift[np.searchsorted(self.firsts, row_ids, side="right") - 1]
        return row_ids - shift

    def at(self, positions: Numbers) -> Numbers:
        """The row ids at positions."""
        shift: Numbers = self._shift
        if len(shift) > 1:
            shift = shift[np.searchsorted(self._before, positions, side="right") - 1]
        return positions + shift

    def hold(self, row_ids: Numbers) -> npt.NDArray[np.bool_]:
        """Which row ids are among these."""
        if not len(self.firsts):
            return np.zeros(len(row_ids), dtype=bool)
        run = np.searchsorted(self.firsts, row_ids, side="right") - 1
        held: npt.NDArray[np.bool_] = (run >= 0) & (row_ids < self.ends[run])
        return held

    def meet(self, others: RowIds) -> bool:
        """Whether any row id is among both."""
        return bool(self.hold(others.firsts).any() or others.hold(self.firsts).any())

    def begin_with(self, others: RowIds) -> bool:
        """Whether others are here at the same positions."""
        runs = len(others.firsts)
        if not runs or len(self.firsts) < runs:
            return not runs
        return (
            np.array_equal(self.firsts[:runs], others.firsts)
            and np.array_equal(self.ends[: runs - 1], others.ends[:-1])
            and bool(self.ends[runs - 1] >= others.ends[-1])
        )


_NONE: Numbers = np.empty(0, dtype=np.int64)
_runs: Cache[tuple[str, FragmentPart], RowIds] = Cache(
    "row_ids", lambda found: [(found, found.size)], budget
)


def row_ids_of(table: Table) -> RowIds:
    """The row ids of a version; only fragments that no version before it had are looked at."""
    parts = layout_of(table).parts
    written = RowIds.joined([_written(table, part) for part in parts])
    # A changed row has left one fragment and stands in another under the same id: where no id
    # is missing, none was deleted, and nobody has to look which rows are left.
    if written.count == table.pin.row_count:
        return written
    return RowIds.joined(
        [_left(table, part) if part.deletions else _written(table, part) for part in parts]
    )


def _written(table: Table, part: FragmentPart) -> RowIds:
    """The row ids that a fragment was written with; a version tells them without being read."""
    whole = replace(part, rows=0, deletions="")
    known = _runs.get((table.location.uri, whole))
    if known is None:
        _runs.missed()
        meta = _fragment(table.dataset(), part).metadata.row_id_meta
        if meta is None:
            return _left(table, part)
        with storage_errors(f"reading the row ids of {table.location}"):
            stored = RowIdSequence.from_inline_metadata(meta).to_pyarrow()
        known = RowIds.of(stored.to_numpy().astype(np.int64))
        _runs.keep((table.location.uri, whole), known)
    return known


def _left(table: Table, part: FragmentPart) -> RowIds:
    """The row ids of those rows of a fragment that were not deleted."""
    known = _runs.get((table.location.uri, part))
    if known is None:
        _runs.missed()
        (read,) = read_parts(table, [ROW_ID], [part])[ROW_ID]
        known = RowIds.of(read.to_numpy().astype(np.int64))
        _runs.keep((table.location.uri, part), known)
    return known


def _fragment(dataset: lance.LanceDataset, part: FragmentPart) -> lance.LanceFragment:
    found = dataset.get_fragment(part.number)
    if found is None:
        raise AssertionError("a layout names a fragment that its version does not have")
    return found
