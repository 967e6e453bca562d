"""Sides and footprints: the tables of a merge, and what its two sides did to a type.

Owns pairing the tables up, and the ids,
ends and unique values of the rows concerned, nothing else of them: that is all the rules about
several rows look at, and it is held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import ChangedRows, changed_rows, compared_columns
from omnigraph.history.merge.conflicts import Side
from omnigraph.history.merge.rows import MergedRows
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.entries import Registration
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.rows.stored_columns import StoredColumns
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import EntityType, find_type, without
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.door import read_set_changed
from omnigraph.write.reshape.column_effects import ReshapeEffect, TableReshape


@dataclass(frozen=True, slots=True)
class MergeTables:
    """One type on all three sides, each under the schema that the merge ends with.

    ``table`` is the target's, whose ``version`` is 0 while it has none, and ``target_key`` what
    it calls it; ``names`` are those of its columns after the merge, ``reshape`` how it gets
    there. With ``adopts`` the source's version takes its place. ``keyed`` are sides whose edges
    have yet to get the ids of their key.
    """

    type_key: str
    type: EntityType
    base: Table
    source: Table
    target: Table
    table: Registration
    names: StoredColumns
    version: int = 0
    target_key: str | None = None
    adopts: bool = False
    silent: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Properties that the source, and the target, has dropped and says nothing of."""
    reshape: TableReshape | None = None
    keyed: Mapping[str, TableReshape] = field(default_factory=dict)
    reshaped: ReshapeEffect | None = None
    """What was done to the target's table already, which is what ``target`` shows then."""

    @property
    def on_target(self) -> BaseTable:
        """The target's table as it is, as an effect on it names it."""
        pin = self.target.pin if self.reshaped is None else self.reshaped.base_pin
        table = self.target.at(pin)
        return BaseTable(self.target_key or self.type_key, self.table.identity, self.version, table)

    @property
    def source_changed(self) -> bool:
        """Whether the source may say something else than the base."""
        return _state(self.source) != _state(self.base)

    @property
    def target_changed(self) -> bool:
        """Whether the target may say something else than the base."""
        return _state(self.target) != _state(self.base)

    @property
    def is_changed(self) -> bool:
        """Whether either of them may."""
        return self.source_changed or self.target_changed

    @property
    def columns(self) -> list[str]:
        """All columns, which are the same on all sides."""
        compared_columns(self.base, self.source)
        return compared_columns(self.base, self.target)

    @property
    def narrow(self) -> list[str]:
        """The columns that rules about several rows look at."""
        ends = [SRC, DST] if isinstance(self.type, EdgeType) else []
        members = [name for unique in self.type.uniques for name in unique]
        return list(dict.fromkeys([ID, *ends, *members]))


def _state(table: Table) -> tuple[Location, int, StoredColumns]:
    return table.location, table.pin.version, table.columns


def sides_of(base: Snapshot, source: Snapshot, target: Base) -> Mapping[str, MergeTables]:
    """Every type of states that have one schema, by type key."""
    found: dict[str, MergeTables] = {}
    for key, shown in target.snapshot.tables.items():
        others = [snapshot.tables.get(key) for snapshot in (base, source)]
        if any(other is None or other.identity != shown.identity for other in others):
            raise read_set_changed(
                f"branch_merge_table_identity:{key}", None, str(shown.identity), f"the {key}"
            )
        old, new = (side.tables[key].pinned for side in (base, source))
        found[key] = MergeTables(
            key,
            find_type(target.catalog, key),
            old,
            new,
            shown.pinned,
            shown.table,
            shown.pinned.columns,
            shown.version,
            key,
            adopts=shown.pin.version == old.pin.version,
        )
    return found


@dataclass(frozen=True, slots=True)
class MergeDelta:
    """One type after the merge, seen from the target.

    ``written`` are the rows the merge brings, ``deleted`` the ids it removes. ``kept`` are the
    rows that the target has changed since the base and that stay, ``lost`` the ids that the
    target has deleted and that stay away. The sources of edges that either side changed are
    ``source_ends`` and ``target_ends``.
    """

    type: EntityType
    written: pa.Table
    deleted: pa.Array
    kept: pa.Table
    lost: pa.Array
    source_ends: pa.Array
    target_ends: pa.Array
    combined: pa.Array

    def settled(self, side: Side, ids: pa.Array, rows: pa.Table) -> MergeDelta:
        """After these ids were made what they are in one side, which has these rows of them."""
        there = rows.select(self.written.column_names).cast(self.written.schema)
        absent = ids.filter(pc.invert(pc.is_in(ids, value_set=_ids(there))))
        written, kept = without(self.written, ids), without(self.kept, ids)
        deleted, lost = _minus(self.deleted, ids), _minus(self.lost, ids)
        if side == "source":
            written = pa.concat_tables([written, there])
            deleted = pa.concat_arrays([deleted, absent])
        else:
            kept = pa.concat_tables([kept, there])
            lost = pa.concat_arrays([lost, absent])
        combined = _minus(self.combined, ids)
        return replace(
            self, written=written, deleted=deleted, kept=kept, lost=lost, combined=combined
        )


def footprint_of_merged(sides: MergeTables, merged: Iterable[MergedRows]) -> MergeDelta:
    """The footprint of a type that both sides changed."""
    columns = sides.narrow
    written: list[pa.Table] = []
    deleted: list[pa.Array] = []
    kept: list[pa.Table] = []
    lost: list[pa.Array] = []
    ends: list[pa.Array] = []
    target_ends: list[pa.Array] = []
    combined: list[pa.Array] = []
    for step in merged:
        rows = pa.concat_tables([step.updated.select(columns), step.inserted.select(columns)])
        written.append(rows)
        deleted.append(_ids(step.deleted))
        gone = step.gone.column(ID)
        stays = [
            without(part.select(columns), gone)
            for part in (step.target.inserted, step.target.after)
        ]
        kept += stays
        lost.append(_ids(without(step.target.deleted, step.inserted.column(ID))))
        ends += _ends(step.source)
        target_ends += _ends(step.target)
        combined.append(step.combined)
    return MergeDelta(
        sides.type,
        _table(written, sides, columns),
        _array(deleted),
        _table(kept, sides, columns),
        _array(lost),
        _array(ends),
        _array(target_ends),
        _array(combined),
    )


def footprint_of_one_side(sides: MergeTables) -> MergeDelta:
    """The footprint of a type that only one side changed, and that is as this side has it."""
    columns = sides.narrow
    changed = sides.source if sides.source_changed else sides.target
    steps = list(changed_rows(sides.base, changed, columns))
    parts = [part for step in steps for part in (step.inserted, step.after)]
    rows, no_rows = _table(parts, sides, columns), _table([], sides, columns)
    gone = _array([_ids(step.deleted) for step in steps])
    ends = _array([end for step in steps for end in _ends(step)])
    none = _array([])
    if sides.source_changed:
        return MergeDelta(sides.type, rows, gone, no_rows, none, ends, none, none)
    return MergeDelta(sides.type, no_rows, none, rows, gone, none, ends, none)


def _ends(changes: ChangedRows) -> list[pa.Array]:
    """The sources of the edges that a side added, changed or removed."""
    parts = (changes.inserted, changes.before, changes.after, changes.deleted)
    if SRC not in changes.inserted.column_names:
        return []
    return [part.column(SRC).combine_chunks() for part in parts]


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column(ID).combine_chunks()


def _table(parts: Sequence[pa.Table], sides: MergeTables, columns: list[str]) -> pa.Table:
    schema = pa.schema([sides.target.schema.field(name).remove_metadata() for name in columns])
    return pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])


def _array(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *parts])


def _minus(ids: pa.Array, others: pa.Array) -> pa.Array:
    return _ids(without(pa.table({ID: ids}), others))
