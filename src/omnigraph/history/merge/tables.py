"""The tables of a merge: what happens to each type, from comparing to written files.

Owns the three ways a type goes: left alone, taken over as the source has it without
reading a row, or merged row by row in the order of the ids and in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import changed_rows, only_in
from omnigraph.history.merge.conflicts import Conflicts, MergedRowCounts, Side
from omnigraph.history.merge.delta import MergeDelta, MergeTables, footprint_of_merged
from omnigraph.history.merge.rows import (
    FEW,
    MergedRows,
    Range,
    completed,
    merge_rows,
    with_restored,
    without_opinion,
)
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import ID, SRC
from omnigraph.rows.external_sort import SortLimits, Spool, merge_join
from omnigraph.storage.tables.columns import plain_blobs
from omnigraph.storage.tables.row_lookup import find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, TablePin
from omnigraph.storage.tables.version_diff import count_only_in
from omnigraph.storage.tables.write_rows import WrittenRows, write_streams
from omnigraph.write.change.change_set import without
from omnigraph.write.change.protocol import WriteTxn
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import has_blobs
from omnigraph.write.publish.staging import TableEffect, commit_rows
from omnigraph.write.reshape.column_effects import stage_reshape


@dataclass(slots=True)
class MergedTable:
    """What a merge does to one type; ``takes_over`` adopts the version of the source."""

    sides: MergeTables
    updated: Spool
    inserted: Spool
    directory: str | None = None
    takes_over: bool = False
    gone: list[pa.Table] = field(default_factory=list)
    """The rows of the start that are replaced or deleted."""
    combined: list[pa.Array] = field(default_factory=list)
    settled: dict[Side, set[str]] = field(default_factory=dict)
    """The ids that are as one side has them, by side, since edges would lack an end."""

    @property
    def size(self) -> int:
        """Bytes that will be written, roughly."""
        return self.updated.size + self.inserted.size

    @property
    def is_nothing(self) -> bool:
        """Whether the type is what it was: both sides have done the same."""
        is_left = not (self.takes_over or self.updated.rows or self.inserted.rows)
        return is_left and not any(rows.num_rows for rows in self.gone)

    @property
    def start(self) -> Table:
        """The version that the rows are applied to."""
        return self.sides.source if self.takes_over else self.sides.target

    def counts(self) -> MergedRowCounts:
        """What happens to the target; reads the rows of a type that is taken over."""
        if not self.takes_over:
            deleted = sum(rows.num_rows for rows in self.gone) - self.updated.rows
            combined = sum(len(ids) for ids in self.combined)
            return MergedRowCounts(self.inserted.rows, self.updated.rows, deleted, combined)
        inserted = updated = deleted = 0
        as_before = pa.array(self.settled.get("target", ()), pa.string())
        for step in changed_rows(self.sides.target, self.sides.source):
            inserted += without(step.inserted, as_before).num_rows
            updated += without(step.after, as_before).num_rows
            deleted += without(step.deleted, as_before).num_rows
        return MergedRowCounts(inserted, updated, deleted)

    # -- settling orphans ------------------------------------------------------------

    def settle(self, side: Side, ids: pa.Array) -> pa.Table:
        """Have these rows as one side has them, or not at all if it has none; returns them."""
        self._forget(ids)
        self.settled.setdefault(side, set()).update(ids.to_pylist())
        origin = self.sides.source if side == "source" else self.sides.target
        rows = _rows(origin, ids)
        if origin is self.start:
            return rows
        there = find_rows(self.start, ID, ids, (ID,))
        places = pc.index_in(rows.column(ID), there.column(ID).combine_chunks())
        known = places.is_valid()
        row_ids = there.column(ROW_ID).take(places.drop_null())
        replaced = rows.filter(known).append_column(ROW_ID, row_ids)
        self.updated.add(replaced.cast(self.updated.schema))
        self.inserted.add(rows.filter(pc.invert(known)).cast(self.inserted.schema))
        self.gone.append(there.select([ID, ROW_ADDRESS]))
        return rows

    def _forget(self, ids: pa.Array) -> None:
        """Undo what was decided about these rows: they are as the start has them."""
        self.updated = self._without(self.updated, ids)
        self.inserted = self._without(self.inserted, ids)
        self.gone = [without(rows, ids) for rows in self.gone]
        self.combined = [
            combined.filter(pc.invert(pc.is_in(combined, value_set=ids)))
            for combined in self.combined
        ]

    def _without(self, spool: Spool, ids: pa.Array) -> Spool:
        kept = Spool(spool.schema, directory=self.directory)
        for rows in spool.tables():
            kept.add(without(rows, ids))
        return kept

    # -- writing ---------------------------------------------------------------------

    def stage(self, txn: WriteTxn) -> TableEffect | None:
        """Write the rows and commit them, visible to nobody; None when nothing happens."""
        sides, written, files = self.sides, WrittenRows(), txn.files
        found, adopted = sides.on_target, self._adopted(txn)
        if self.updated.rows or self.inserted.rows:
            start = replace(self.start, pin=adopted or self.start.pin, columns=sides.names)
            written = write_streams(start, self.updated.tables(), self.inserted.tables())
        gone = pa.concat_tables(self.gone) if self.gone else None
        if gone is not None and not gone.num_rows:
            gone = None
        if adopted is None and not written.fragments and gone is None:
            return None
        files.name_files(sides.table, sides.version, written.files)
        reach("rows_written", found.type_key)
        return commit_rows(found, written, files.stamp(), gone, adopted=adopted)

    def _adopted(self, txn: WriteTxn) -> TablePin | None:
        """The version that takes the place of the target's before any row is written, if any."""
        sides = self.sides
        if self.takes_over:
            return sides.source.pin
        if sides.reshaped is not None:
            return sides.reshaped.pin
        if sides.reshape is None or sides.reshape.is_nothing:
            return None
        effect = stage_reshape(sides.on_target, sides.reshape, txn.files)
        txn.files.name_files(sides.table, sides.version, effect.all_files)
        return effect.pin


def adopt_source(sides: MergeTables, limits: SortLimits) -> MergedTable:
    """A type as the source has it: the target has changed nothing of it."""
    return _empty(sides, limits.directory, takes_over=True)


def left_alone(sides: MergeTables, limits: SortLimits) -> MergedTable:
    """A type as the target has it."""
    return _empty(sides, limits.directory, takes_over=False)


def merged_table(
    sides: MergeTables, conflicts: Conflicts, limits: SortLimits, *, is_exact: bool
) -> tuple[MergedTable, MergeDelta]:
    """A type that both sides changed, merged row by row.

    Unless it has to be ``is_exact``, a row that one side wrote again as it was may be written.
    """
    merged = _empty(sides, limits.directory, takes_over=False)

    def steps() -> Iterator[MergedRows]:
        for step in _merge(sides, conflicts, limits, is_exact=is_exact):
            merged.updated.add(step.updated)
            merged.inserted.add(step.inserted)
            merged.gone.append(step.gone)
            merged.combined.append(step.combined)
            yield step

    footprint = footprint_of_merged(sides, steps())
    return merged, footprint


def _merge(
    sides: MergeTables, conflicts: Conflicts, limits: SortLimits, *, is_exact: bool
) -> Iterator[MergedRows]:
    columns = sides.columns
    base, source, target = sides.base, sides.source, sides.target
    few = count_only_in(base, source) + count_only_in(base, target) <= FEW
    is_brief = few and not is_exact and not any(sides.silent)

    counts_edges = isinstance(sides.type, EdgeType) and sides.type.is_bounded

    # Of edges that are counted, the sources that they had are counted, too.
    known = columns if not is_brief else [ID, SRC] if counts_edges else [ID]
    streams = [
        only_in(base, source, known, compared=columns, located=True, limits=limits),
        only_in(source, base, columns, located=True, limits=limits),
        only_in(base, target, known, compared=columns, located=True, limits=limits),
        only_in(target, base, columns, located=True, limits=limits),
    ]
    for rows in merge_join(streams):
        found = stored = Range(*rows)
        if any(sides.silent):
            found = without_opinion(found, *sides.silent)
        if is_brief:
            by_property = not sides.type.merge_rows and not counts_edges
            found = completed(found, base, columns, by_property=by_property)
        merged = merge_rows(sides.type, found, columns, conflicts)
        if sides.silent[1]:
            merged = with_restored(merged, stored.target, found.target, sides.silent[1])
        yield merged


def _empty(sides: MergeTables, directory: str | None, *, takes_over: bool) -> MergedTable:
    schema = plain_blobs(sides.target.schema).remove_metadata()
    located = schema.append(pa.field(ROW_ID, pa.uint64()))
    return MergedTable(
        sides,
        Spool(located, directory=directory),
        Spool(schema, directory=directory),
        directory,
        takes_over,
    )


def _rows(table: Table, ids: pa.Array) -> pa.Table:
    """Whole rows, as they are written again."""
    names = table.schema.names
    with_blobs = has_blobs(table.schema)
    return find_rows(table, ID, ids, names, with_blobs=with_blobs).select(names)
