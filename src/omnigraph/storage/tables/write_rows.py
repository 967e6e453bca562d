"""Staging rows: written into data files, then committed as one detached version.

Owns how rows become fragments. Every function takes a table at a pin and gives
the next pin; without any work to do it gives the same one and writes nothing.
Must never check rows: which rows may be written is decided above.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fresh_rows import note_rows
from omnigraph.storage.tables.row_address import (
    distinct_addresses,
    fragments_of,
    row_addresses,
    rows_of,
)
from omnigraph.storage.tables.sealed_files import seal_deletions, write_sealed
from omnigraph.storage.tables.table import (
    BLOB,
    FORMAT,
    ROW_ADDRESS,
    ROW_ID,
    Stamp,
    Table,
    TablePin,
    commit_detached,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    from lance.fragment import FragmentMetadata

Addresses: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[int] | np.ndarray[Any, Any]

# Changing one row costs time in proportion to its fragment, because of the stable row ids.
MAX_ROWS_PER_FILE = 250_000


def insert_fragments(
    table: Table, fragments: Iterable[str], stamp: Stamp | None = None
) -> TablePin:
    """Append rows that were written, here or in another process."""
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    staged = [FragmentMetadata.from_json(fragment) for fragment in fragments]
    if not staged:
        return table.pin
    return commit_detached(table, LanceOperation.Append(staged), stamp)


def delete_addresses(table: Table, addresses: Addresses, stamp: Stamp | None = None) -> TablePin:
    """Delete the rows at these row addresses, which must be of this very version."""
    from lance import LanceOperation

    wanted = _distinct(addresses)
    removed, updated = _without(table, wanted)
    if not removed and not updated:
        return table.pin
    # The text is a record for people; what is deleted stands in the fragments.
    operation = LanceOperation.Delete(updated, removed, f"{len(wanted)} rows by address")
    return commit_detached(table, operation, stamp)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows in data files that no version refers to, and how they belong to stored rows.

    The first ones take over ``row_ids``, the others will be new rows. Plain data,
    good for any version of the table that the replaced rows are found in.
    """

    fragments: tuple[str, ...] = ()
    row_ids: tuple[int, ...] = ()
    count: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """The data files, below the table's directory."""
        return tuple(f"data/{path}" for path, _ in self.sizes)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """The name of each data file, and how many rows it has."""
        return file_rows(self.fragments)


def file_rows(fragments: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The name of each data file of some fragments, and how many rows it has."""
    decoded = (json.loads(fragment) for fragment in fragments)
    return tuple(
        (file["path"], fragment["physical_rows"])
        for fragment in decoded
        for file in fragment["files"]
    )


def write_rows(
    table: Table, updated: pa.Table | None, inserted: pa.Table | None = None
) -> WrittenRows:
    """Write rows without committing: those that replace stored ones, and new ones.

    ``updated`` holds whole rows with the ``_rowid`` they keep.
    """
    row_ids: list[int] = []
    parts: list[pa.Table] = []
    schema = table.schema
    with storage_errors(f"updating {table.location}"):
        if updated is not None and updated.num_rows:
            row_ids = updated.column(ROW_ID).to_pylist()
            rows = updated.drop_columns(
                [name for name in (ROW_ID, ROW_ADDRESS) if name in updated.column_names]
            )
            if missing := set(schema.names) - set(rows.column_names):
                raise StorageError(f"an updated row needs {min(missing)!r} too", kind="permanent")
            # Updated rows come first: row ids are given to the first rows of the new fragments.
            parts.append(conform(rows, schema))
        if inserted is not None and inserted.num_rows:
            parts.append(conform(inserted, schema))
    if not parts:
        return WrittenRows()
    data = table.columns.stored(pa.concat_tables(parts))
    written = WrittenRows(stage_fragments(table, data), tuple(row_ids), data.num_rows)
    note_rows(table, written.sizes, data)
    return written


def write_streams(
    table: Table, updated: Iterable[pa.Table], inserted: Iterable[pa.Table]
) -> WrittenRows:
    """The same for rows that come piece by piece, and are never held all at once."""
    schema = table.schema
    row_ids: list[int] = []
    counted = [0]

    def stored(rows: pa.Table) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = table.columns.stored(conform(rows, schema)).to_batches()
        return batches

    def pieces() -> Iterator[pa.RecordBatch]:
        # Updated rows come first: row ids are given to the first rows of the new fragments.
        for rows in updated:
            row_ids.extend(rows.column(ROW_ID).to_pylist())
            counted[0] += rows.num_rows
            yield from stored(rows.drop_columns([ROW_ID]))
        for rows in inserted:
            counted[0] += rows.num_rows
            yield from stored(rows)

    batches = pieces()
    first = next(batches, None)
    if first is None:
        return WrittenRows()
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    return WrittenRows(stage_fragments(table, reader), tuple(row_ids), counted[0])


def apply_rows(
    table: Table,
    written: WrittenRows,
    gone: Addresses = (),
    stamp: Stamp | None = None,
) -> TablePin:
    """Commit written rows, without the rows at the addresses ``gone``, in one version.

    The addresses are of this very version, and those of the replaced rows are among them.
    """
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    lost = _distinct(gone)
    if not len(lost):
        return insert_fragments(table, written.fragments, stamp)
    if not written.fragments:
        return delete_addresses(table, gone, stamp)
    removed, kept = _without(table, lost)
    with storage_errors(f"updating {table.location}"):
        fields = [field.id() for field in table.dataset().lance_schema.fields()]
    fragments = [FragmentMetadata.from_json(text) for text in written.fragments]
    operation = LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=kept,
        new_fragments=_with_row_ids(fragments, list(written.row_ids)),
        update_mode="rewrite_rows",
        # All of them: an index on a field that is left out would claim the new fragment without
        # having read it, and answer with the old values.
        fields_for_preserving_frag_bitmap=fields,
    )
    return commit_detached(table, operation, stamp)


def overwrite_fragments(table: Table, written: WrittenRows, stamp: Stamp | None = None) -> TablePin:
    """Make written rows the whole table."""
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    if not written.fragments and table.pin.row_count == 0:
        return table.pin
    fragments = [FragmentMetadata.from_json(text) for text in written.fragments]
    schema = table.dataset().lance_schema
    return commit_detached(table, LanceOperation.Overwrite(schema, fragments), stamp)


def stage_fragments(table: Table, data: pa.Table | pa.RecordBatchReader) -> tuple[str, ...]:
    """Write rows, by their stored columns, into data files that no version refers to.

    The fragments are JSON, so that other processes can write and one can commit.
    """
    dataset = table.dataset()
    with storage_errors(f"writing rows of {table.location}"):
        written = write_sealed(
            data,
            dataset,
            table.location,
            max_rows_per_file=MAX_ROWS_PER_FILE,
            data_storage_version=FORMAT,
        )
    return tuple(json.dumps(part.to_json()) for part in written if part.physical_rows)


def _distinct(addresses: Addresses) -> npt.NDArray[np.uint64]:
    if isinstance(addresses, pa.Array | pa.ChunkedArray):
        addresses = addresses.to_numpy()
    return distinct_addresses(np.asarray(addresses, dtype=np.uint64))


def _without(
    table: Table, addresses: npt.NDArray[np.uint64]
) -> tuple[list[int], list[FragmentMetadata]]:
    """The fragments that vanish and those that get a deletion file, without these rows."""
    removed: list[int] = []
    updated: list[FragmentMetadata] = []
    if not len(addresses):
        return removed, updated
    dataset = table.dataset()
    # They are in their order; there may be millions, and no more of them is made than must be.
    owners = np.unique(fragments_of(addresses))
    starts = np.searchsorted(addresses, row_addresses(owners, np.zeros_like(owners)))
    ends = np.append(starts[1:], len(addresses))
    places = zip(owners.tolist(), starts.tolist(), ends.tolist(), strict=True)
    with storage_errors(f"deleting rows of {table.location}"):
        for owner, start, end in places:
            fragment = dataset.get_fragment(owner)
            if fragment is None:
                raise _stale(table)
            metadata = fragment.metadata
            wanted = rows_of(addresses[start:end])
            if wanted[-1] >= metadata.physical_rows:
                raise _stale(table)
            left = fragment.delete_rows(wanted.tolist())
            # A row that is gone already would be counted twice, and an update would revive it.
            if metadata.num_rows - (left.num_rows if left else 0) != len(wanted):
                raise _stale(table)
            if left is None:
                removed.append(owner)
            else:
                updated.append(seal_deletions(table.location, left))
    return removed, updated


def _stale(table: Table) -> StorageError:
    return StorageError(
        f"no such rows in {table.location}: the addresses are of another version", kind="permanent"
    )


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the table's columns in the table's order; missing ones are null."""
    given = set(rows.column_names)
    if unknown := given - set(schema.names):
        raise StorageError(f"the table has no column {min(unknown)!r}", kind="permanent")
    columns: list[Any] = [
        _column(rows.column(field.name), field.type)
        if field.name in given
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _column(values: pa.ChunkedArray, wanted: pa.DataType) -> Any:
    if values.type == wanted:
        return values
    if getattr(wanted, "extension_name", None) == BLOB and pa.types.is_large_binary(values.type):
        from lance import Blob, blob_array

        # Bytes as a scan returns them; without the wrapping, empty would be written as null.
        contents = (
            None if value is None else value or Blob.empty() for value in values.to_pylist()
        )
        return blob_array(list(contents))
    return values.cast(wanted)


def _with_row_ids(fragments: list[FragmentMetadata], row_ids: list[int]) -> list[FragmentMetadata]:
    """The fragments, whose first rows keep these row ids; the others get new ones at commit."""
    from lance.fragment import RowIdSequence

    result: list[FragmentMetadata] = []
    start = 0
    for fragment in fragments:
        kept = row_ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        meta = RowIdSequence(kept).to_inline_metadata() if kept else None
        result.append(dataclasses.replace(fragment, row_id_meta=meta))
    return result
