"""Three-way merge of rows: one range of ids of one type, all sides in memory.

Owns also what rows said before either side touched them, read where it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import MergeConflict
from omnigraph.history.changed_rows import (
    LOCATION,
    ChangedRows,
    Mask,
    any_differs,
    compare,
    differing,
)
from omnigraph.history.merge.conflicts import Conflicts, property_conflicts, row_conflicts
from omnigraph.lang.structural import ID
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.storage.tables.version_diff import rows_at
from omnigraph.write.change.change_set import EntityType, among, without

RowIndices = npt.NDArray[np.int64]

FEW = 20_000
"""Of more changed rows than this, all are read: files as a whole, which costs less then."""


@dataclass(frozen=True, slots=True)
class Range:
    """The rows of one range of ids that lie elsewhere than in the base, and where they were.

    All have their row ids and addresses, each in the version it is from. With ``complete``
    only these ids have whole rows of the base: those that both sides have touched.
    """

    source_base: pa.Table
    source: pa.Table
    target_base: pa.Table
    target: pa.Table
    complete: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What a merge does to the target in one range of ids.

    ``updated`` are whole rows with the row ids they keep, ``gone`` the addresses of the rows
    of the target that are replaced or deleted, ``combined`` the ids of rows that neither side
    has as a whole.
    """

    updated: pa.Table
    inserted: pa.Table
    deleted: pa.Table
    gone: pa.Table
    combined: pa.Array
    source: ChangedRows
    target: ChangedRows


def merge_rows(
    type_: EntityType, rows: Range, columns: Sequence[str], conflicts: Conflicts
) -> MergedRows:
    """Merge one range; conflicts that stand leave the row as the target has it."""
    source = compare(rows.source_base, rows.source, columns, rows.complete)
    target = compare(rows.target_base, rows.target, columns, rows.complete)
    both = _Both(type_, source, target, list(columns), conflicts)
    untouched = target.ids
    inserted = [without(source.inserted, untouched)]
    updated = [without(source.after, untouched)]
    deleted = [without(source.deleted, untouched)]
    updated.append(both.inserted_twice())
    combined, mixed = both.updated_twice()
    updated.append(combined)
    deleted.append(both.deleted_and_updated())
    inserted.append(both.updated_and_deleted())
    names = list(columns)
    # A row that the target left alone lies where the base has it.
    places = pa.concat_tables(
        [
            rows.target.select([ID, *LOCATION]),
            without(rows.source_base, rows.target.column(ID)).select([ID, *LOCATION]),
        ]
    )
    changed = pa.concat_tables(part.select(names) for part in updated)
    removed = pa.concat_tables(part.select(names) for part in deleted)
    located = _located(places, changed)
    return MergedRows(
        changed.append_column(ROW_ID, located.column(ROW_ID)),
        pa.concat_tables(part.select(names) for part in inserted),
        removed,
        pa.concat_tables(
            part.select([ID, ROW_ADDRESS]) for part in (located, _located(places, removed))
        ),
        mixed,
        source,
        target,
    )


@dataclass(frozen=True, slots=True)
class _Both:
    """The rows that both sides changed."""

    type: EntityType
    source: ChangedRows
    target: ChangedRows
    columns: list[str]
    conflicts: Conflicts

    def inserted_twice(self) -> pa.Table:
        """The rows that replace those the target has inserted under the same ids."""
        ours, theirs = _pairs(self.target.inserted, self.source.inserted)
        mine, their = self.target.inserted.take(ours), self.source.inserted.take(theirs)
        unequal = pa.array(any_differs(mine, their, self.columns))
        mine, their = mine.filter(unequal), their.filter(unequal)
        found = row_conflicts(self.type, "divergent_insert", _ids(their), (None, their, mine))
        return their.filter(pa.array(self._take_source(found), pa.bool_()))

    def deleted_and_updated(self) -> pa.Table:
        """The rows of the target that go although it has updated them."""
        ours, theirs = _pairs(self.target.after, self.source.deleted)
        mine, old = self.target.after.take(ours), self.source.deleted.take(theirs)
        found = row_conflicts(self.type, "delete_vs_update", _ids(mine), (old, None, mine))
        return mine.filter(pa.array(self._take_source(found), pa.bool_()))

    def updated_and_deleted(self) -> pa.Table:
        """The rows of the source that come back although the target has deleted them."""
        ours, theirs = _pairs(self.target.deleted, self.source.after)
        their, old = self.source.after.take(theirs), self.target.deleted.take(ours)
        found = row_conflicts(self.type, "delete_vs_update", _ids(their), (old, their, None))
        return their.filter(pa.array(self._take_source(found), pa.bool_()))

    def updated_twice(self) -> tuple[pa.Table, pa.Array]:
        """The rows to write where both sides updated one, and which of them mix the two."""
        ours, theirs = _pairs(self.target.after, self.source.after)
        base = self.source.before.take(theirs)
        their, mine = self.source.after.take(theirs), self.target.after.take(ours)
        if self.type.merge_rows:
            return self._whole_rows(base, their, mine), pa.array([], pa.string())
        count = their.num_rows
        stands = np.zeros(count, dtype=bool)
        taken: dict[str, Mask] = {}
        unequal: dict[str, Mask] = {}
        for name in self.columns:
            columns = [side.column(name) for side in (base, their, mine)]
            changed, touched = differing(columns[0], columns[1]), differing(columns[0], columns[2])
            unequal[name] = differing(columns[1], columns[2])
            clash = changed & touched & unequal[name]
            taken[name] = changed & ~clash
            if clash.any():
                rows = pa.array(np.flatnonzero(clash))
                found = property_conflicts(
                    self.type,
                    name,
                    _ids(their.take(rows)),
                    [column.take(rows) for column in columns],
                )
                sides = [self.conflicts.settle(conflict) for conflict in found]
                taken[name][clash] = [side == "source" for side in sides]
                stands[clash] |= [side is None for side in sides]
        written = np.zeros(count, dtype=bool)
        mixed = np.zeros(count, dtype=bool)
        for name in self.columns:
            written |= taken[name] & unequal[name]
            mixed |= ~taken[name] & unequal[name]
        written &= ~stands
        whole = pa.table({name: _chosen(their, mine, name, taken[name]) for name in self.columns})
        result = whole.filter(pa.array(written)).cast(mine.select(self.columns).schema)
        return result, their.column(ID).combine_chunks().filter(pa.array(written & mixed))

    def _whole_rows(self, base: pa.Table, their: pa.Table, mine: pa.Table) -> pa.Table:
        unequal = pa.array(any_differs(their, mine, self.columns))
        base, their, mine = (side.filter(unequal) for side in (base, their, mine))
        found = row_conflicts(self.type, "divergent_update", _ids(their), (base, their, mine))
        return their.select(self.columns).filter(pa.array(self._take_source(found), pa.bool_()))

    def _take_source(self, found: list[MergeConflict]) -> list[bool]:
        return [self.conflicts.settle(conflict) == "source" for conflict in found]


def _pairs(first: pa.Table, second: pa.Table) -> tuple[RowIndices, RowIndices]:
    """Where the ids stand that both have."""
    ids = second.column(ID).combine_chunks()
    found = pc.index_in(first.column(ID), value_set=ids).combine_chunks()
    places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    return places, found.drop_null().to_numpy().astype(np.int64)


def _chosen(source: pa.Table, target: pa.Table, name: str, take_source: Mask) -> pa.Array:
    """Each value from one of the two sides."""
    values = pa.concat_arrays(
        [source.column(name).combine_chunks(), target.column(name).combine_chunks()]
    )
    places = np.arange(source.num_rows) + np.where(take_source, 0, source.num_rows)
    return values.take(pa.array(places))


def _located(places: pa.Table, rows: pa.Table) -> pa.Table:
    """Where these rows lie in the target."""
    ids = places.column(ID).combine_chunks()
    found = pc.index_in(rows.column(ID), value_set=ids)
    if found.null_count:
        raise AssertionError("a merge changes a row that the target does not have")
    return places.take(found)


def _ids(rows: pa.Table) -> list[str]:
    ids: list[str] = rows.column(ID).to_pylist()
    return ids


def without_opinion(rows: Range, source: Sequence[str], target: Sequence[str]) -> Range:
    """The rows of each side with what the base had of properties that the side has dropped."""
    return replace(
        rows,
        source=_as_before(rows.source, rows.source_base, source),
        target=_as_before(rows.target, rows.target_base, target),
    )


def _as_before(rows: pa.Table, base: pa.Table, names: Sequence[str]) -> pa.Table:
    places = pc.index_in(rows.column(ID), value_set=base.column(ID).combine_chunks())
    for name in names:
        position = rows.schema.get_field_index(name)
        old = base.column(name).take(places)
        values = pc.if_else(places.is_valid(), old, rows.column(name))
        rows = rows.set_column(position, rows.schema.field(position), values)
    return rows


def with_restored(
    merged: MergedRows, stored: pa.Table, target: pa.Table, dropped: Sequence[str]
) -> MergedRows:
    """With what the target has lost of the rows that it wrote since it dropped some properties.

    ``stored`` are these rows as they lie there, ``target`` the same with what they had before.
    """
    lost = target.filter(pa.array(any_differs(stored, target, dropped)))
    lost = without(lost, merged.gone.column(ID))
    updated = lost.select(merged.updated.column_names).cast(merged.updated.schema)
    gone = lost.select(merged.gone.column_names).cast(merged.gone.schema)
    return replace(
        merged,
        updated=pa.concat_tables([merged.updated, updated]),
        gone=pa.concat_tables([merged.gone, gone]),
    )


def completed(rows: Range, base: Table, columns: list[str], *, by_property: bool) -> Range:
    """With what the base said where both sides have touched a row, and only there.

    Of a row that one side has touched alone, what it was does not matter. Merged
    ``by_property``, the same is true of a value that both sides have alike.
    """
    ours = _touched(rows.target_base, rows.target)
    theirs = _touched(rows.source_base, rows.source)
    both = theirs.filter(pc.is_in(theirs, value_set=ours))
    places = pa.concat_tables(
        [
            among(rows.source_base, both),
            among(without(rows.target_base, rows.source_base.column(ID)), both),
        ]
    ).select([ID, ROW_ADDRESS])
    source = among(rows.source, both if by_property else both.slice(0, 0))
    source, target = _paired(source, rows.target)
    unequal = [
        name for name in columns if differing(source.column(name), target.column(name)).any()
    ]
    schema = rows.target.schema
    known = pa.concat_tables(
        [
            _read(base, among(places, source.column(ID)), unequal, schema),
            _read(base, without(places, source.column(ID)), columns, schema),
        ]
    )
    return Range(
        _padded(rows.source_base, known, schema),
        rows.source,
        _padded(rows.target_base, known, schema),
        rows.target,
        both,
    )


def _read(base: Table, places: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    """Some columns of rows of the base, and nothing in the others."""
    if not places.num_rows:
        return schema.empty_table()
    read = [name for name in columns if name != ID]
    with_blobs = any(is_blob(base.schema.field(name)) for name in read)
    wanted = np.sort(places.column(ROW_ADDRESS).to_numpy())
    found = pa.Table.from_batches(
        rows_at(base, wanted, [*read, *LOCATION], with_blobs=with_blobs),
    )
    order = pc.index_in(found.column(ROW_ADDRESS), places.column(ROW_ADDRESS).combine_chunks())
    return _widened(found.add_column(0, ID, places.column(ID).take(order)), schema)


def _paired(source: pa.Table, target: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that both have, in one order."""
    mine = among(target, source.column(ID)).sort_by(ID)
    return among(source, mine.column(ID)).sort_by(ID), mine


def _padded(rows: pa.Table, known: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns, filled where they are known, in the order of the ids."""
    full = among(known, rows.column(ID))
    rest = _widened(without(rows, full.column(ID)), schema)
    return pa.concat_tables([rest, full]).sort_by(ID)


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with every column; nothing is known of those that they do not have."""
    given = set(rows.column_names)
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in given
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    # A column that is never null is so here: the rows are looked at, and not written.
    return pa.table(columns, schema=schema)


def _touched(base: pa.Table, side: pa.Table) -> pa.Array:
    ids = [rows.column(ID).combine_chunks() for rows in (base, side)]
    return pa.concat_arrays(ids).unique()
