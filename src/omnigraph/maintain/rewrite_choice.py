"""Rewrite choice: which fragments of a table are worth being written again, and in which order.

Owns the rule from a layout to groups of fragments, each of which becomes few large files. A
table that was written so is left alone by it from then on. Reads no row but to see whether rows
are in order, where somebody wants them to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.indexes.build import VECTOR_KINDS
from omnigraph.storage.indexes.kept_coverage import coverage_of
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.fragments import (
    FragmentPart,
    FragmentSize,
    fragment_sizes,
    stream_parts,
)
from omnigraph.storage.tables.row_ids import in_row_id_order
from omnigraph.storage.tables.table import ROW_ID, Table
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE

FULL_BYTES = 2**30
"""A file of so many bytes is large enough, however few rows it has."""
DELETED = 0.1
"""From this share of deleted rows on, a fragment is written again without them."""
SORTED_ROWS = 4 * MAX_ROWS_PER_FILE
"""So many rows are put in order at once; a larger table is in order by runs of them."""
SORTED_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class FragmentGroup:
    """Fragments whose rows are written again together, in the order of some stored columns."""

    parts: tuple[FragmentPart, ...]
    order_by: tuple[str, ...] = ()


def groups_of(table: Table, cluster_by: Sequence[str] = ()) -> tuple[FragmentGroup, ...]:
    """What is worth writing again; with columns to cluster by, also what is out of their order."""
    sizes = fragment_sizes(table)
    if cluster_by and not _has_blobs(table):
        return tuple(_clustered(table, sizes, cluster_by))
    return tuple(_compacted(table, sizes))


def _compacted(table: Table, sizes: Sequence[FragmentSize]) -> Iterable[FragmentGroup]:
    """Small fragments, and those with deleted rows or forgotten columns, by the file they fill."""
    covered = coverage_of(table, VECTOR_KINDS)
    alike: dict[frozenset[str], list[FragmentSize]] = {}
    for size in sizes:
        if _is_small(size) or _is_spoilt(size):
            # An index of vectors that covers some rows of a file alone would be built again.
            alike.setdefault(covered[size.part.number], []).append(size)
    for poor in alike.values():
        for run in _runs(poor, MAX_ROWS_PER_FILE, FULL_BYTES):
            if len(run) > 1 or any(_is_spoilt(size) for size in run):
                parts = tuple(size.part for size in run)
                yield FragmentGroup(parts, _by_row_id(table, run))


def _by_row_id(table: Table, run: Sequence[FragmentSize]) -> tuple[str, ...]:
    """Row ids that ascend take next to no place; rows that were updated have spoilt that."""
    is_large = sum(size.bytes for size in run) > SORTED_BYTES
    if is_large or _has_blobs(table) or in_row_id_order(table, [size.part for size in run]):
        return ()
    return (ROW_ID,)


def _clustered(
    table: Table, sizes: Sequence[FragmentSize], columns: Sequence[str]
) -> Iterable[FragmentGroup]:
    """Runs of neighbouring fragments that are not in order, or in too many pieces."""
    stored = tuple(table.columns.of(name) for name in columns)
    for run in _runs(sizes, SORTED_ROWS, SORTED_BYTES):
        parts = tuple(size.part for size in run)
        is_cut = sum(_is_small(size) for size in run) > 1
        if is_cut or any(_is_spoilt(size) for size in run) or not _in_order(table, parts, columns):
            yield FragmentGroup(parts, stored)


def _runs(
    sizes: Sequence[FragmentSize], most_rows: int, most_bytes: int
) -> Iterable[Sequence[FragmentSize]]:
    """Fragments in their order, as many at a time as have no more rows and bytes than these."""
    run: list[FragmentSize] = []
    rows = size = 0
    for one in sizes:
        if run and (rows + one.part.rows > most_rows or size + one.bytes > most_bytes):
            yield run
            run, rows, size = [], 0, 0
        run.append(one)
        rows, size = rows + one.part.rows, size + one.bytes
    if run:
        yield run


def _is_small(size: FragmentSize) -> bool:
    return size.part.rows < MAX_ROWS_PER_FILE // 2 and size.bytes < FULL_BYTES // 2


def _is_spoilt(size: FragmentSize) -> bool:
    physical = size.part.rows + size.deleted
    return size.has_retired or size.deleted >= max(1, DELETED * physical)


def _has_blobs(table: Table) -> bool:
    """What would have to be held in memory to be sorted cannot be told beforehand."""
    return any(is_blob(column) for column in table.schema)


def _in_order(table: Table, parts: Sequence[FragmentPart], columns: Sequence[str]) -> bool:
    """Whether rows stand in the order of some text columns."""
    last: pa.Table | None = None
    for batch in stream_parts(table, tuple(columns), parts):
        rows = pa.Table.from_batches([batch]).select(list(columns))
        whole = rows if last is None else pa.concat_tables([last, rows])
        if whole.num_rows > 1 and not _ascends(whole.combine_chunks(), columns):
            return False
        last = rows.slice(rows.num_rows - 1) if rows.num_rows else last
    return True


def _ascends(rows: pa.Table, columns: Sequence[str]) -> bool:
    before, after = rows.slice(0, rows.num_rows - 1), rows.slice(1)
    is_right = pa.repeat(True, before.num_rows)  # noqa: FBT003 - pyarrow's own signature
    for name in reversed(columns):
        one, next_ = before.column(name), after.column(name)
        is_right = pc.or_(pc.less(one, next_), pc.and_(pc.equal(one, next_), is_right))
    return bool(pc.all(is_right).as_py())
