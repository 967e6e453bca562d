"""New columns as effects on tables: written, committed, and moved to a newer base.

Owns that what was written for a fragment is written once, whatever the base, and that edges
which get a key have their ids written after their columns. Who writes is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.rows.stored_columns import StoredColumns
from omnigraph.storage.tables.new_columns import (
    NewColumn,
    WrittenColumns,
    commit_columns,
    fragments_without,
    write_columns,
)
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.publish.base import BaseTable
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.staging import TableEffect
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.reshape.edge_ids import rekey_edges

WriteColumns = Callable[[Table, Sequence[NewColumn], Sequence[int]], Mapping[str, str]]
"""Writes new columns of some fragments: in this process, or in many."""

# What is assumed of a value that is written, to tell a small change from a large one.
_VALUE_BYTES = 16


@dataclass(frozen=True, slots=True)
class TableReshape:
    """What is done to one table; ``names`` are those of its columns afterwards.

    With ``keyed`` the edges get the ids that the key of this type gives them.
    """

    columns: tuple[NewColumn, ...]
    names: StoredColumns
    keyed: EntityType | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether the table stays as it is."""
        return not self.columns and self.keyed is None

    def size(self, table: Table) -> int:
        """About how many bytes are written."""
        written = sum(column.is_written for column in self.columns)
        written += 0 if self.keyed is None else len(table.schema)
        return _VALUE_BYTES * written * table.pin.row_count


@dataclass(frozen=True, slots=True)
class ReshapeEffect(TableEffect):
    """A table with more columns, or with other ids."""

    reshape: TableReshape | None = None
    columns: WrittenColumns = field(default_factory=WrittenColumns)

    @property
    def all_files(self) -> tuple[str, ...]:
        """Everything that was written for it, below the table's directory."""
        return (*self.columns.names, *self.written.files)


def stage_reshape(
    found: BaseTable,
    reshape: TableReshape,
    files: IntentScope,
    *,
    write: WriteColumns = write_columns,
    known: WrittenColumns | None = None,
) -> ReshapeEffect:
    """Write and commit new columns, and new ids; ``known`` were written for an older base."""
    table, known = found.table, known or WrittenColumns()
    columns = known.joined(write(table, reshape.columns, fragments_without(table, known)))
    reach("columns_written", found.type_key)
    pin = commit_columns(table, reshape.columns, columns, files.stamp())
    effect = ReshapeEffect(
        found.type_key,
        found.identity,
        found.version,
        table.pin,
        pin,
        reshape=reshape,
        columns=columns,
    )
    if reshape.keyed is not None and table.pin.row_count:
        after = replace(table, pin=pin, columns=reshape.names)
        rows, pin = rekey_edges(reshape.keyed, after, files.stamp())
        effect = replace(effect, written=rows, pin=pin)
    reach("table_staged", found.type_key)
    return effect


def restage_reshape(
    effect: ReshapeEffect, found: BaseTable, files: IntentScope, write: WriteColumns = write_columns
) -> ReshapeEffect:
    """The same on the table of a newer base."""
    if found.table.pin == effect.base_pin:
        return replace(effect, base_version=found.version)
    if effect.reshape is None:
        raise AssertionError("an effect of columns knows what it does")
    return stage_reshape(found, effect.reshape, files, write=write, known=effect.columns)
