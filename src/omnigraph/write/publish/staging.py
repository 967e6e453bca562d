"""Staging: from a checked change set to detached table commits.

Owns writing each touched table once and committing it to a base, in parallel. What
it makes is visible to nobody: a staged table that is never published is only files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ReadSetChanged
from omnigraph.storage.tables.detached import Stamp
from omnigraph.storage.tables.row_lookup import find_rows, fragment_maps
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, TablePin
from omnigraph.storage.tables.write_rows import (
    WrittenRows,
    apply_rows,
    overwrite_fragments,
    write_rows,
)
from omnigraph.write.change.change_set import ChangeSet, TypeChange, located_columns
from omnigraph.write.change.type_batch import EntityType
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.publish_plan import TableEffect

CONCURRENCY = 8
_T = TypeVar("_T")
_R = TypeVar("_R")


def stage(changes: ChangeSet, base: Base, stamp: Callable[[], Stamp]) -> tuple[TableEffect, ...]:
    """Write and commit every touched table."""
    touched = [change for change in changes.types.values() if not change.is_empty]
    return tuple(_parallel(lambda change: _stage(change, base, stamp()), touched))


def _stage(change: TypeChange, base: Base, stamp: Stamp) -> TableEffect:
    found = base.table(change.type_key)
    if change.replaces_all:
        written = write_rows(found.table, None, change.rows)
        reach("rows_written", change.type_key)
        pin = overwrite_fragments(found.table, written, stamp)
        reach("table_staged", change.type_key)
        return _staged(found, pin, written, change.ids.slice(0, 0), replaces_all=True)
    updated, inserted = _split(change)
    written = write_rows(found.table, updated, inserted)
    _note(
        change.type,
        found.table,
        written,
        pa.concat_tables([updated.drop_columns([ROW_ID]), inserted]),
    )
    reach("rows_written", change.type_key)
    gone = pa.concat_tables(
        rows.select(["id", ROW_ADDRESS]) for rows in (change.existing, change.deleted)
    )
    pin = apply_rows(found.table, written, gone.column(ROW_ADDRESS), stamp)
    fragment_maps.learn(found.table, found.table.at(pin))
    reach("table_staged", change.type_key)
    return _staged(found, pin, written, gone.column("id").combine_chunks())


def _split(change: TypeChange) -> tuple[pa.Table, pa.Table]:
    """The rows that replace stored ones, with the row ids they keep, and the new ones."""
    if not change.existing.num_rows:
        return change.rows.slice(0, 0).append_column(ROW_ID, pa.array([], pa.uint64())), change.rows
    ids = change.existing.column("id").combine_chunks()
    positions = pc.index_in(change.rows.column("id"), value_set=ids).combine_chunks()
    stored = pc.is_valid(positions)
    row_ids = change.existing.column(ROW_ID).combine_chunks().take(positions.filter(stored))
    updated = change.rows.filter(stored).append_column(ROW_ID, row_ids)
    return updated, change.rows.filter(pc.invert(stored))


def _note(type_: EntityType, table: Table, written: WrittenRows, rows: pa.Table) -> None:
    """Let the next write find these rows without reading them."""
    texts = [*located_columns(type_)]
    texts += [
        members[0]
        for members in type_.uniques
        if len(members) == 1 and pa.types.is_string(rows.schema.field(members[0]).type)
    ]
    fragment_maps.note(table, written, rows.select(list(dict.fromkeys(texts))))


def _staged(
    found: BaseTable,
    pin: TablePin,
    written: WrittenRows,
    gone: pa.Array,
    *,
    replaces_all: bool = False,
) -> TableEffect:
    return TableEffect(
        found.type_key,
        found.identity,
        found.version,
        found.table.pin,
        pin,
        written,
        gone,
        replaces_all,
    )


def restage(
    tables: Sequence[TableEffect], base: Base, stamp: Callable[[], Stamp]
) -> tuple[TableEffect, ...]:
    """Commit the same written rows to the tables of a newer base."""
    return tuple(_parallel(lambda table: _restage(table, base, stamp), tables))


def _restage(staged: TableEffect, base: Base, stamp: Callable[[], Stamp]) -> TableEffect:
    found = base.table(staged.type_key)
    if found.table.pin == staged.base_pin:
        return replace(staged, base_version=found.version)
    if staged.replaces_all:
        pin = overwrite_fragments(found.table, staged.written, stamp())
    else:
        pin = apply_rows(found.table, staged.written, _relocate(staged, found), stamp())
        fragment_maps.learn(found.table, found.table.at(pin))
    reach("table_staged", staged.type_key)
    return replace(staged, base_version=found.version, base_pin=found.table.pin, pin=pin)


def _relocate(staged: TableEffect, found: BaseTable) -> pa.ChunkedArray | Sequence[int]:
    """Where the rows that go lie now. Their ids are found again: addresses move."""
    if not len(staged.gone):
        return ()
    rows = find_rows(found.table, "id", staged.gone, ["id"])
    kept = np.isin(np.array(staged.written.row_ids, dtype=np.uint64), rows.column(ROW_ID))
    if rows.num_rows != len(staged.gone) or not kept.all():
        # The read set stands, so this cannot happen; writing would lose or double rows.
        raise ReadSetChanged(
            f"rows of {staged.type_key} have changed: read again and retry",
            details={"member": f"dataset_identity:{staged.type_key}"},
        )
    return rows.column(ROW_ADDRESS)


def _parallel(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(CONCURRENCY, len(items))) as pool:
        return list(pool.map(work, items))
