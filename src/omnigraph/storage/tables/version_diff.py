"""Rows that one version of a table has and another has not, by where they lie.

Owns finding them without reading the rows the two share: data files are immutable, so
only files that one of them lacks, and rows that the other has deleted, are looked at. A
row that was merely moved differs, too: what it says is compared above.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.rows.stored_columns import AS_NAMED
from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import FragmentPart, layout_of, stream_parts
from omnigraph.storage.tables.handles import open_pin
from omnigraph.storage.tables.row_address import fragments_of, row_addresses, rows_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.storage.tables.write_rows import Addresses

Offsets = npt.NDArray[np.uint32]

PLACE = (ROW_ID, ROW_ADDRESS)

# How many row addresses one filter lists.
LISTED = 1_000
# Of rows this many bytes apart, what is between them is read too: a request costs more.
GAP = 256 * 1024
# From this share of a fragment on, reading it as a whole costs less than picking rows.
DENSE = 64


@dataclass(frozen=True, slots=True)
class FragmentDelta:
    """What happened to the fragments of ``before`` on the way to ``after``."""

    before: Table
    after: Table
    added: tuple[int, ...]
    added_rows: int
    touched: frozenset[int]
    """Fragments of before that are gone, or have lost rows."""
    gone: frozenset[int]
    """Fragments of before that are not there any more."""

    def rows(self, columns: Sequence[str], *, with_row_id: bool = False) -> pa.Table:
        """The rows of the added fragments."""
        dataset = self.after.dataset()
        found = (dataset.get_fragment(number) for number in self.added)
        fragments = [fragment for fragment in found if fragment is not None]
        if not fragments:
            # Lance would take no fragments for all of them.
            fields = [self.after.schema.field(name) for name in columns]
            fields += [pa.field(ROW_ID, pa.uint64())] if with_row_id else []
            return pa.schema(fields).empty_table()
        with storage_errors(f"scanning {self.after.location}"):
            scanner = self.after.scanner(
                columns, fragments=fragments, with_row_id=with_row_id, with_row_address=True
            )
            return scanner.to_table()

    def lost(self, columns: Sequence[str]) -> pa.Table:
        """The rows of before that are not where they were: deleted, replaced or moved."""
        parts = [part for part in layout_of(self.before).parts if part.number in self.touched]
        if not parts:
            return pa.schema([self.before.schema.field(name) for name in columns]).empty_table()
        batches = stream_parts(self.before, (*columns, ROW_ADDRESS), parts)
        rows = pa.Table.from_batches(list(batches))
        kept = [part for part in layout_of(self.after).parts if part.number in self.touched]
        live = [np.empty(0, dtype=np.uint64)]
        if kept:
            live += [
                batch.column(ROW_ADDRESS).to_numpy()
                for batch in stream_parts(self.after, (ROW_ADDRESS,), kept)
                if batch.num_rows
            ]
        known = np.isin(rows.column(ROW_ADDRESS).to_numpy(), np.concatenate(live))
        return rows.filter(pa.array(~known)).select(list(columns))

    def keeps(self, addresses: Addresses) -> bool:
        """Whether the rows that before had at these addresses are untouched in after."""
        wanted = np.asarray(addresses, dtype=np.uint64)
        owners = (wanted >> np.uint64(32)).astype(np.int64)
        if np.isin(owners, list(self.gone)).any():
            return False
        suspects = np.unique(owners[np.isin(owners, list(self.touched))])
        if not len(suspects):
            return True
        dataset = self.after.dataset()
        found = (dataset.get_fragment(int(number)) for number in suspects)
        fragments = [fragment for fragment in found if fragment is not None]
        with storage_errors(f"scanning {self.after.location}"):
            scanner = dataset.scanner(columns=[], fragments=fragments, with_row_address=True)
            live = scanner.to_table().column(ROW_ADDRESS).to_numpy()
        return bool(np.isin(wanted[np.isin(owners, suspects)], live).all())

    def has_same(self, addresses: Addresses) -> bool:
        """Whether the rows that before had at these addresses say in after what they said.

        They may have moved, with all the rows of their fragment.
        """
        wanted = np.unique(np.asarray(addresses, dtype=np.uint64))
        moved = np.isin(fragments_of(wanted), list(self.gone))
        if not self.keeps(wanted[~moved]):
            return False
        old, new = (replace(table, columns=AS_NAMED) for table in (self.before, self.after))
        names = [name for name in old.schema.names if name in new.schema.names]
        for start in range(0, len(places := wanted[moved]), LISTED):
            some = pa.Table.from_batches(
                rows_at(old, places[start : start + LISTED], [*names, ROW_ID], with_blobs=True)
            ).sort_by(ROW_ID)
            listed = ", ".join(map(str, some.column(ROW_ID).to_pylist()))
            with storage_errors(f"reading rows of {new.location}"):
                found = new.scanner(
                    names,
                    f"{ROW_ID} in ({listed})",
                    with_row_id=True,
                    blob_handling="all_binary",
                ).to_table()
            if not some.equals(found.sort_by(ROW_ID).select([*names, ROW_ID])):
                return False
        return True


def fragment_delta(before: Table, after: Table) -> FragmentDelta:
    """Compare two versions of one table."""
    old, new = _fragments(before), _fragments(after)
    same = {number for number in old.keys() & new.keys() if old[number].file == new[number].file}
    added = tuple(sorted(new.keys() - same))
    touched = {number for number in same if old[number] != new[number]}
    gone = old.keys() - same
    return FragmentDelta(
        before,
        after,
        added,
        sum(new[number].rows for number in added),
        frozenset(touched | gone),
        frozenset(gone),
    )


def _fragments(table: Table) -> Mapping[int, FragmentPart]:
    return {part.number: part for part in layout_of(table).parts}


def rows_only_in(
    one: Table, other: Table, columns: Sequence[str], *, with_blobs: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of ``one`` that do not lie in the same place in ``other``, in no order.

    `_rowid` and `_rowaddr` count as columns.
    """
    whole, picked = _apart(one, other)
    if whole:
        yield from stream_parts(one, columns, whole, with_blobs=with_blobs)
    sparse = _sparse(picked)
    for part, lost in picked:
        if not _is_sparse(part, lost):
            yield from _picked(one, columns, part, lost, with_blobs=with_blobs)
    if len(sparse) and set(columns) - set(PLACE) == {ID}:
        yield from _named(one, other, sparse, columns)
    elif len(sparse):
        yield from rows_at(one, sparse, columns, with_blobs=with_blobs)


def rows_among(
    table: Table,
    addresses: npt.NDArray[np.uint64],
    columns: Sequence[str],
    *,
    with_blobs: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows at these addresses, which ascend, few or many, in no order."""
    owners, offsets = fragments_of(addresses), rows_of(addresses).astype(np.uint32)
    picked: list[tuple[FragmentPart, Offsets]] = []
    for part in layout_of(table).parts:
        start, end = np.searchsorted(owners, [part.number, part.number + 1])
        if start < end:
            picked.append((part, offsets[start:end]))
    for part, some in picked:
        if not _is_sparse(part, some):
            yield from _picked(table, columns, part, some, with_blobs=with_blobs)
    sparse = _sparse(picked)
    if len(sparse):
        yield from rows_at(table, sparse, columns, with_blobs=with_blobs)


def _is_sparse(part: FragmentPart, offsets: Offsets) -> bool:
    return len(offsets) * DENSE <= part.rows


def _sparse(picked: Sequence[tuple[FragmentPart, Offsets]]) -> npt.NDArray[np.uint64]:
    """The rows that are picked one by one."""
    found = [row_addresses(part.number, some) for part, some in picked if _is_sparse(part, some)]
    return np.concatenate([np.empty(0, dtype=np.uint64), *found])


def count_only_in(one: Table, other: Table) -> int:
    """How many such rows there are; reads none of them."""
    whole, picked = _apart(one, other)
    return sum(part.rows for part in whole) + sum(len(lost) for _, lost in picked)


def _apart(
    one: Table, other: Table
) -> tuple[list[FragmentPart], list[tuple[FragmentPart, Offsets]]]:
    """The fragments that ``one`` has alone, and the rows that ``other`` has deleted of others."""
    shared = {part.number: part for part in layout_of(other).parts}
    whole: list[FragmentPart] = []
    picked: list[tuple[FragmentPart, Offsets]] = []
    for part in layout_of(one).parts:
        there = shared.get(part.number)
        if there is None or there.file != part.file:
            whole.append(part)
        elif there.deletions != part.deletions:
            gone, before = _deletions_of(other, there), _deletions_of(one, part)
            lost = np.setdiff1d(gone, before, assume_unique=True)
            if len(lost):
                picked.append((part, lost))
    return whole, picked


def rows_at(
    table: Table,
    addresses: npt.NDArray[np.uint64],
    columns: Sequence[str],
    *,
    with_blobs: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows at these addresses, all of which are of this very version."""
    dataset = open_pin(table.location, table.pin.version, GAP)
    for start in range(0, len(addresses), LISTED):
        wanted = addresses[start : start + LISTED].tolist()
        with storage_errors(f"reading rows of {table.location}"):
            rows = dataset.scanner(
                columns=table.columns.of_all([name for name in columns if name not in PLACE]),
                # Numbers of our own: Lance goes straight to these rows.
                filter=f"{ROW_ADDRESS} in ({', '.join(map(str, wanted))})",
                with_row_id=ROW_ID in columns,
                with_row_address=ROW_ADDRESS in columns,
                blob_handling="all_binary" if with_blobs else None,
            ).to_table()
        if rows.num_rows != len(wanted):
            raise StorageError(
                f"rows of {table.location} are not where its manifest says", kind="permanent"
            )
        named = table.columns.named(rows, [name for name in columns if name not in PLACE])
        yield from named.select(list(columns)).to_batches()


def _named(
    one: Table, other: Table, addresses: npt.NDArray[np.uint64], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The ids of rows that ``other`` has deleted from fragments of both.

    A row that it has written again has kept its row id, so the id is read there, in new files
    that lie together. It is the same row: both versions come from the one that wrote the
    fragment, and from there on no row id is given away twice. Of fragments that only one of
    them has, nothing follows.
    """
    places = pa.Table.from_batches(rows_at(one, addresses, PLACE))
    row_ids = places.column(ROW_ID).combine_chunks()
    new, _ = _apart(other, one)
    batches = stream_parts(other, (ID, ROW_ID), new) if new else ()
    written = pa.Table.from_batches(
        (batch.filter(pc.is_in(batch.column(ROW_ID), row_ids)) for batch in batches),
        pa.schema([other.schema.field(ID), places.schema.field(ROW_ID)]).remove_metadata(),
    )
    found = pc.index_in(row_ids, written.column(ROW_ID).combine_chunks())
    ids = written.column(ID).take(found.drop_null())
    named = places.filter(found.is_valid()).append_column(ID, ids)
    yield from named.select(list(columns)).to_batches()
    gone = places.filter(found.is_null()).column(ROW_ADDRESS)
    yield from rows_at(one, gone.to_numpy(), columns)


def _picked(
    table: Table,
    columns: Sequence[str],
    part: FragmentPart,
    offsets: Offsets,
    *,
    with_blobs: bool,
) -> Iterator[pa.RecordBatch]:
    read = tuple(dict.fromkeys([*columns, ROW_ADDRESS]))
    wanted = row_addresses(part.number, offsets)
    for batch in stream_parts(table, read, [part], with_blobs=with_blobs):
        addresses = batch.column(ROW_ADDRESS).to_numpy()
        places = np.searchsorted(wanted, addresses)
        mask = wanted[np.minimum(places, len(wanted) - 1)] == addresses
        if mask.any():
            yield batch.filter(pa.array(mask)).select(list(columns))


# What is kept of a fragment beside the rows themselves.
DELETIONS_BYTES = 500
_deletions: Cache[tuple[str, FragmentPart], Offsets] = Cache(
    "deletions", lambda found: [(found, DELETIONS_BYTES + found.nbytes)], budget
)


def _deletions_of(table: Table, part: FragmentPart) -> Offsets:
    """The rows of a fragment that a version has deleted, by offset, ascending."""
    if not part.deletions:
        return np.empty(0, dtype=np.uint32)
    key = (table.location.uri, part)
    known = _deletions.get(key)
    if known is None:
        _deletions.missed()
        known = _deletions.keep_first(key, _deleted(table, part))
    return known


def _deleted(table: Table, part: FragmentPart) -> Offsets:
    fragment = table.dataset().get_fragment(part.number)
    if fragment is None:
        raise AssertionError("a layout names a fragment that its version does not have")
    file = fragment.metadata.deletion_file
    if file is not None and file.file_type == "array":
        data = ControlObjects(table.location).read(file.path(part.number))
        if data is not None:
            with storage_errors(f"reading the deletions of {table.location}"):
                found = pa.ipc.open_file(io.BytesIO(data)).read_all().column(0)
            return np.sort(found.to_numpy().astype(np.uint32))
    return _missing(table, part, fragment.physical_rows)


def _missing(table: Table, part: FragmentPart, physical: int) -> Offsets:
    """The same where many rows are deleted: those that a scan of addresses leaves out."""
    gone = np.ones(physical, dtype=bool)
    for batch in stream_parts(table, (ROW_ADDRESS,), [part]):
        gone[rows_of(batch.column(ROW_ADDRESS).to_numpy())] = False
    return np.flatnonzero(gone).astype(np.uint32)
