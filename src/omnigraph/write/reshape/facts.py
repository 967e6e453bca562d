"""What the data says about a change of its schema, before anything is changed.

Owns the answers that planning asks for, from the manifest where it knows them and from columns
where somebody wants to look, and how many rows would lose a value. Reads, never writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow.compute as pc

from omnigraph.lang.schema.ir.ir import IREdge, IRNode, SchemaIR
from omnigraph.lang.schema.migration.effects import DropColumn
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True)
class SnapshotFacts:
    """The facts of one snapshot under its schema; columns are read only if it ``looks``."""

    snapshot: Snapshot
    accepted: SchemaIR
    looks: bool
    types: Mapping[int, IRNode | IREdge] = field(init=False)

    def __post_init__(self) -> None:
        by_id = {found.type_id: found for found in self.accepted.tables()}
        object.__setattr__(self, "types", by_id)

    def table(self, type_id: int) -> SnapshotTable:
        """The table of an accepted type."""
        found = self.types[type_id]
        return self.snapshot.by_identity[TableIdentity(type_id, found.table_incarnation_id)]

    def name(self, type_id: int, property_id: int) -> str:
        """What the accepted schema calls a property."""
        properties = self.types[type_id].properties
        return next(one.name for one in properties if one.property_id == property_id)

    # -- what planning asks ------------------------------------------------------------

    def row_count(self, type_id: int) -> int | None:
        """How many rows a type has; those of an interface are those of its nodes."""
        return self.table(type_id).pin.row_count if type_id in self.types else None

    def is_empty_column(self, type_id: int, property_id: int) -> bool | None:
        """Whether no row has a value of a property, if anybody looks."""
        if type_id not in self.types:
            return None
        table = self.table(type_id).pinned
        if not table.pin.row_count:
            return True
        if not self.looks:
            return None
        return not count_values(table, self.name(type_id, property_id))

    # -- what a person wants to know ---------------------------------------------------

    def rows_losing_value(self, plan: MigrationPlan) -> dict[int, int]:
        """For each step that drops a property, how many rows have a value of it."""
        return {
            effect.step: count_values(
                self.table(effect.type_id).pinned, self.name(effect.type_id, effect.property_id)
            )
            for effect in plan.effects
            if isinstance(effect, DropColumn)
        }


def count_values(table: Table, name: str) -> int:
    """How many rows have a value of a property."""
    rows = 0
    for batch in table.batches([name]):
        rows += int(pc.count(batch.column(0)).as_py())
    return rows
