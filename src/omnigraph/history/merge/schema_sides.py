"""The sides of a merge of schemas: one state each, and what it wrote since the base.

Owns reading a state by the identities of the merged schema, where two sides have added the same
thing under different ones, and the answers that merging schemas asks of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import changed_rows
from omnigraph.history.merge.conflicts import Side
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.columns import TableColumns
from omnigraph.lang.schema.compile import catalog_from_ir
from omnigraph.lang.schema.ir.identity import identities, renumbered
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, SchemaIR
from omnigraph.lang.schema.merge.same_things import Equivalence
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.structural import ID
from omnigraph.lang.types import ValueType
from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.schema_contract import AcceptedSchema, accepted_schema
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.rows.stored_columns import ShownAs, StoredColumns
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.reshape.facts import SnapshotFacts
from omnigraph.write.reshape.rows_after import TypeAfter
from omnigraph.write.rules.row_rules import outside_enum

_EMPTY = TablePin(1, None, 0)
"""Every table begins as an empty version, which is never taken away."""


@dataclass(frozen=True)
class MergeSide:
    """One of the three states, with its schema in the identities of the merged one."""

    snapshot: Snapshot
    own: AcceptedSchema
    numbers: Mapping[int, int]
    """From its own identities to those of the merged schema, where these are others."""

    @cached_property
    def ir(self) -> SchemaIR:
        """Its schema as the merge numbers it."""
        return renumbered(self.own.ir, self.numbers)

    @cached_property
    def columns(self) -> Mapping[int, TableColumns]:
        """The columns of its tables, by type."""
        return {
            self.numbers.get(type_id, type_id): TableColumns(
                {self.numbers.get(one, one): name for one, name in table.by_property.items()},
                table.retired,
            )
            for type_id, table in self.own.columns.tables.items()
        }

    @cached_property
    def types(self) -> Mapping[int, IRNode | IREdge]:
        """Its types that have tables."""
        return {found.type_id: found for found in self.ir.tables()}

    @cached_property
    def _own(self) -> Mapping[int, int]:
        return {merged: own for own, merged in self.numbers.items()}

    def identity(self, type_id: int) -> TableIdentity:
        """Which table a type has on this side."""
        found = self.types[type_id]
        incarnation = found.table_incarnation_id
        return TableIdentity(
            self._own.get(type_id, type_id), self._own.get(incarnation, incarnation)
        )

    def table(self, type_id: int) -> Table | None:
        """The table of a type, if this side has it."""
        if type_id not in self.types:
            return None
        return self.snapshot.by_identity[self.identity(type_id)].pinned

    def fits(self, table: Table, name: str, wanted: ValueType) -> bool:
        """Whether every value of a column of its can be had in another type, exactly."""
        type_ = arrow_field(name, wanted).type
        try:
            for batch in table.batches([name]):
                values = batch.column(0)
                there = values.cast(type_)
                if not there.cast(values.type).equals(values):
                    return False
                if wanted.enum_values is not None:
                    outside = outside_enum(pa.chunked_array([there]), wanted.enum_values)
                    if pc.any(outside).as_py():
                        return False
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        return True

    # -- the facts that planning asks for ----------------------------------------------

    @cached_property
    def _facts(self) -> SnapshotFacts:
        return SnapshotFacts(self.snapshot, self.own.ir, looks=True)

    def row_count(self, type_id: int) -> int | None:
        """How many rows a type has."""
        return self._facts.row_count(self._own.get(type_id, type_id))

    def is_empty_column(self, type_id: int, property_id: int) -> bool | None:
        """Whether no row has a value of a property."""
        own = self._own
        return self._facts.is_empty_column(
            own.get(type_id, type_id), own.get(property_id, property_id)
        )


@dataclass(frozen=True)
class TouchedRows:
    """What the sides of a merge wrote since the base; ``unified`` are identities that are one."""

    base: Snapshot
    source: Snapshot
    target: Snapshot
    unified: tuple[tuple[int, int], ...] = ()

    @cached_property
    def _same(self) -> Equivalence:
        return Equivalence(self.unified)

    def _sides(self, side: Side) -> tuple[MergeSide, MergeSide]:
        """A side and the base, with one number for what is one thing."""
        shown = self.source if side == "source" else self.target
        now, then = (self._numbered(one) for one in (shown, self.base))
        return now, then

    def _numbered(self, shown: Snapshot) -> MergeSide:
        own = accepted_schema(shown.schema)
        numbers = {one: self._same.find(one) for one in identities(own.ir)}
        return MergeSide(shown, own, {one: same for one, same in numbers.items() if one != same})

    def wrote_values(self, side: Side, type_id: int, property_id: int | None) -> bool:
        """Whether a side inserted rows of a type, or values of a property, or changed some."""
        now, then = self._sides(side)
        type_id = self._same.find(type_id)
        after, table, before = now.types[type_id], now.table(type_id), then.table(type_id)
        if table is None or before is None:
            return table is not None and bool(table.pin.row_count)
        effects = plan_migration(then.ir, now.ir).effects_on(type_id)
        desired = _type(catalog_from_ir(now.ir), after)
        view = TypeAfter(then.types[type_id], desired, effects).view(before.columns)
        old = replace(before, columns=view)
        if property_id is None:
            # What was only deleted is no more than the other side wants.
            steps = changed_rows(old, table)
            return any(found.inserted.num_rows or found.after.num_rows for found in steps)
        own = self._same.find(property_id)
        name = next(one.name for one in after.properties if one.property_id == own)
        steps = changed_rows(old, table, [ID, name])
        return any(
            rows.column(name).null_count < rows.num_rows
            for found in steps
            for rows in (found.inserted, found.after)
        )


def as_made(table: Table) -> Table:
    """A table as it was when it was made: empty, and with columns it did not have yet as nulls."""
    made = table.at(_EMPTY)
    stored, fields = set(made.dataset().schema.names), table.schema
    later = {name for name, column in table.columns.pairs if column and column not in stored}
    pairs = tuple((name, None if name in later else one) for name, one in table.columns.pairs)
    shown = [(name, how) for name, how in table.columns.shown if name not in later]
    shown += [(name, ShownAs(fields.field(name).type)) for name in sorted(later)]
    return replace(made, columns=StoredColumns(pairs, tuple(shown)))


def _type(catalog: Catalog, found: IRNode | IREdge) -> EntityType:
    return catalog.nodes[found.name] if found.kind == "node" else catalog.edges[found.name]
