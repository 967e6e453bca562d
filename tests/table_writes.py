"""Writing rows to one table in one call, the way no part of the engine does."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import (
    ROW_ADDRESS,
    Stamp,
    Table,
    TablePin,
    commit_detached,
    made_by,
    transaction_of,
)
from omnigraph.storage.tables.write_rows import (
    Addresses,
    WrittenRows,
    apply_rows,
    insert_fragments,
    overwrite_fragments,
    stage_fragments,
    write_rows,
)

Rows: TypeAlias = pa.Table | pa.RecordBatchReader


def insert(table: Table, data: Rows, stamp: Stamp | None = None) -> TablePin:
    """Append rows. Columns that are missing become null; keys are not checked."""
    return insert_fragments(table, _staged(table, data), stamp)


def overwrite(table: Table, data: pa.Table, stamp: Stamp | None = None) -> TablePin:
    """Replace all rows; the columns, their ids and the primary key stay, indexes go."""
    return overwrite_fragments(table, WrittenRows(_staged(table, data)), stamp)


def update_rows(
    table: Table,
    updated: pa.Table | None,
    *,
    inserted: pa.Table | None = None,
    deleted: Addresses = (),
    stamp: Stamp | None = None,
) -> TablePin:
    """Replace, insert and delete rows in one version.

    ``updated`` holds whole rows with their ``_rowid`` and ``_rowaddr`` in this
    version, as a scan (with blobs, if there are any) returns them: they keep
    their row ids and the stamp of their creation. ``deleted`` are the addresses
    of rows that go.
    """
    moved = _distinct(() if updated is None else updated.column(ROW_ADDRESS))
    if updated is not None and len(moved) != updated.num_rows:
        raise ValueError("a row cannot be updated twice at once")
    gone = _distinct(deleted)
    if np.intersect1d(moved, gone).size:
        raise ValueError("a row cannot be updated and deleted at once")
    written = write_rows(table, updated, inserted)
    return apply_rows(table, written, np.union1d(moved, gone), stamp)


def upsert(table: Table, data: pa.Table, *, key: str = ID, stamp: Stamp | None = None) -> TablePin:
    """Insert rows, or replace the ones with the same key, which keep their row ids.

    The keys of ``data`` must be distinct: Lance would insert a new key twice.
    """
    if not data.num_rows:
        return table.pin
    if len(data.column(key).unique()) != data.num_rows:
        raise StorageError(f"the rows to upsert repeat a value of {key!r}", kind="permanent")
    with storage_errors(f"upserting into {table.location}"):
        transaction, _ = (
            table.dataset()
            .merge_insert(key)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute_uncommitted(data)
        )
    return commit_detached(table, transaction.operation, stamp)


def stamp_of(table: Table) -> Stamp | None:
    """The stamp a pinned version carries; None when Lance cannot read its transaction."""
    transaction = transaction_of(table)
    return None if transaction is None else made_by(transaction)


def all_files(table: Table) -> set[str]:
    """Every file in the table's directory, whether a version refers to it or not."""
    return set(ControlObjects(table.location).list())


def _staged(table: Table, data: Rows) -> tuple[str, ...]:
    if isinstance(data, pa.Table) and not data.num_rows:
        return ()
    return stage_fragments(table, data)


def _distinct(addresses: Addresses) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    if isinstance(addresses, pa.Array | pa.ChunkedArray):
        addresses = addresses.to_numpy()
    return np.unique(np.asarray(addresses, dtype=np.uint64))
