"""Staging: from a checked change set to detached table commits.

Owns the one shape of a table effect, from staging to the publish request, what every table
commit says about itself, and moving an effect to a newer base. Never makes anything visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ReadSetChanged
from omnigraph.lang.structural import ID
from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.publish_request import AdvanceTable
from omnigraph.storage.tables.fragments import derive_layout
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.rewrite import Rewritten
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.row_lookup import find_rows, fragment_maps
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Stamp, Table, TablePin
from omnigraph.storage.tables.write_rows import (
    Addresses,
    WrittenRows,
    apply_rows,
    overwrite_fragments,
    write_rows,
)
from omnigraph.write.change.change_set import ChangeSet, EntityType, TypeChange, located_columns
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.folding import commit_folded, fold

CONCURRENCY = 8
_T = TypeVar("_T")
_R = TypeVar("_R")

OperationClass = Literal["logical", "maintenance", "schema"]
_COMMIT = "omnigraph.commit"
_OPERATION = "omnigraph.operation"
_CLASS = "omnigraph.class"
_BUILT_FROM = "omnigraph.built_from"


def stage(changes: ChangeSet, base: Base, stamp: Callable[[], Stamp]) -> tuple[TableEffect, ...]:
    """Write and commit every touched table."""
    touched = [change for change in changes.types.values() if not change.is_empty]
    return tuple(_parallel(lambda change: _stage(change, base, stamp()), touched))


def _stage(change: TypeChange, base: Base, stamp: Stamp) -> TableEffect:
    found = base.table(change.type_key)
    if change.replaces_all:
        written = write_rows(found.table, None, change.rows)
        reach("rows_written", change.type_key)
        return commit_rows(found, written, stamp, replaces_all=True)
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
        rows.select([ID, ROW_ADDRESS]) for rows in (change.existing, change.deleted)
    )
    effect = commit_rows(found, written, stamp, gone)
    fragment_maps.learn(found.table, found.table.at(effect.pin))
    return effect


def commit_rows(
    found: BaseTable,
    written: WrittenRows,
    stamp: Stamp,
    gone: pa.Table | GoneRows | None = None,
    *,
    replaces_all: bool = False,
    adopted: TablePin | None = None,
) -> TableEffect:
    """Commit written rows to a table of a base, visible to nobody.

    ``gone`` has the ids of the stored rows that go, and their addresses. With ``adopted``
    another version of the table takes the place of the base's, before anything else. Small
    fragments that were there before are folded, if there are too many.
    """
    start = found.table if adopted is None else found.table.at(adopted)
    if isinstance(gone, pa.Table):
        gone = HeldGoneRows(gone.column(ID).combine_chunks(), gone.column(ROW_ADDRESS))
    addresses = () if gone is None else gone.addresses()
    folded: tuple[Rewritten, ...] = ()
    if replaces_all:
        pin = overwrite_fragments(start, written, stamp)
    else:
        pin = apply_rows(start, written, addresses, stamp)
        if pin != start.pin:
            touched = _touched(addresses)
            derive_layout(start, start.at(pin), touched)
            folded = fold(start, touched)
            pin = commit_folded(start.at(pin), folded, stamp)
    reach("table_staged", found.type_key)
    return TableEffect(
        found.type_key,
        found.identity,
        found.version,
        found.table.pin,
        pin,
        written,
        gone,
        replaces_all,
        folded,
    )


def _touched(addresses: Addresses) -> frozenset[int]:
    """The fragments of some rows."""
    if isinstance(addresses, pa.Array | pa.ChunkedArray):
        addresses = addresses.to_numpy()
    return frozenset(fragments_of(np.asarray(addresses, dtype=np.uint64)).tolist())


def _split(change: TypeChange) -> tuple[pa.Table, pa.Table]:
    """The rows that replace stored ones, with the row ids they keep, and the new ones."""
    if not change.existing.num_rows:
        return change.rows.slice(0, 0).append_column(ROW_ID, pa.array([], pa.uint64())), change.rows
    ids = change.existing.column(ID).combine_chunks()
    positions = pc.index_in(change.rows.column(ID), value_set=ids).combine_chunks()
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


def restage(
    effects: Sequence[TableEffect], base: Base, stamp: Callable[[], Stamp]
) -> tuple[TableEffect, ...]:
    """Commit the same written rows to the tables of a newer base."""
    return tuple(_parallel(lambda effect: _restage(effect, base, stamp), effects))


def _restage(effect: TableEffect, base: Base, stamp: Callable[[], Stamp]) -> TableEffect:
    found = base.table(effect.type_key)
    if found.table.pin == effect.base_pin:
        return replace(effect, base_version=found.version)
    if effect.replaces_all:
        pin = overwrite_fragments(found.table, effect.written, stamp())
    else:
        gone, made = _relocate(effect, found), stamp()
        pin = apply_rows(found.table, effect.written, gone, made)
        if pin != found.table.pin:
            derive_layout(found.table, found.table.at(pin), _touched(gone))
            pin = commit_folded(found.table.at(pin), effect.folded, made, found.table)
        fragment_maps.learn(found.table, found.table.at(pin))
    handles.forget_lost(found.table.location, effect.pin.version)
    reach("table_staged", effect.type_key)
    return replace(effect, base_version=found.version, base_pin=found.table.pin, pin=pin)


def _relocate(effect: TableEffect, found: BaseTable) -> pa.ChunkedArray | Sequence[int]:
    """Where the rows that go lie now. Their ids are found again: addresses move."""
    ids = pa.array([], pa.string()) if effect.gone is None else effect.gone.ids()
    if not len(ids):
        return ()
    rows = find_rows(found.table, ID, ids, [ID])
    kept = np.isin(np.array(effect.written.row_ids, dtype=np.uint64), rows.column(ROW_ID))
    if rows.num_rows != len(ids) or not kept.all():
        # The read set stands, so this cannot happen; writing would lose or double rows.
        raise ReadSetChanged(
            f"rows of {effect.type_key} have changed: read again and retry",
            details={"member": f"dataset_identity:{effect.type_key}"},
        )
    return rows.column(ROW_ADDRESS)


def _parallel(work: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(CONCURRENCY, len(items))) as pool:
        return list(pool.map(work, items))


class GoneRows(Protocol):
    """Stored rows that are replaced or deleted; there may be too many of them to be held."""

    def addresses(self) -> pa.ChunkedArray:
        """Where they lie in the version that they were found in."""

    def ids(self) -> pa.Array:
        """By which they are found elsewhere."""


@dataclass(frozen=True, slots=True)
class HeldGoneRows:
    """The same in memory."""

    held_ids: pa.Array
    held_addresses: pa.ChunkedArray

    def addresses(self) -> pa.ChunkedArray:
        """As they are."""
        return self.held_addresses

    def ids(self) -> pa.Array:
        """As they are."""
        return self.held_ids


@dataclass(frozen=True, slots=True)
class TableEffect:
    """One table before and after: the version it was built on, and the one that was made.

    ``written`` are the rows in files. ``gone`` are the stored rows that are replaced or
    deleted. ``replaces_all`` makes the written rows the whole table. ``folded`` are older rows
    that were written again, to be put together where they still lie apart.
    """

    type_key: str
    identity: TableIdentity
    base_version: int
    base_pin: TablePin
    pin: TablePin
    written: WrittenRows = field(default_factory=WrittenRows)
    gone: GoneRows | None = field(default=None, compare=False)
    replaces_all: bool = False
    folded: tuple[Rewritten, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The data files that were written, below the table's directory."""
        return (*self.written.files, *(name for one in self.folded for name in one.files))

    @property
    def is_nothing(self) -> bool:
        """Whether the table stays as it was."""
        return self.pin == self.base_pin

    @property
    def advance(self) -> AdvanceTable:
        """What the manifest is asked for."""
        return AdvanceTable(self.identity, self.base_version, self.pin)


def stamp(commit_id: str, operation_id: str, class_: OperationClass) -> Stamp:
    """The stamp of one table commit."""
    return Stamp(properties={_COMMIT: commit_id, _OPERATION: operation_id, _CLASS: class_})


def is_maintenance(found: Stamp | None) -> bool:
    """Whether a table commit is known to have changed no value that was there."""
    return found is not None and found.properties.get(_CLASS) in ("maintenance", "schema")


def built_from(stamp: Stamp, base: TablePin) -> Stamp:
    """The stamp of a step, of one or several, that leads away from a published version."""
    return Stamp(properties={**stamp.properties, _BUILT_FROM: str(base.version)})


def is_built_from(found: Stamp, base: TablePin) -> bool:
    """Whether a commit says that all steps that lead to it from a version are like it."""
    return found.properties.get(_BUILT_FROM) == str(base.version)
