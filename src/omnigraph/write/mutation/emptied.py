"""Emptied properties: what rows that were stored have lost because an insert left it out.

Owns telling a loss from what was meant: a property that is given again, a null that is written
as such and a row that was deleted first are none. Never changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import TypeChange, among
from omnigraph.write.change.results import EmptiedProperties
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import KeyLookup, ReadSet


class LeftOut:
    """The properties of one type that inserts have left out, and the ids of the rows."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def leave_out(self, name: str, ids: pa.Array | pa.ChunkedArray) -> None:
        """Stored rows are replaced by rows without the property."""
        if len(ids):
            self._ids.setdefault(name, set()).update(ids.to_pylist())

    def give(self, name: str, ids: pa.Array | pa.ChunkedArray) -> None:
        """Rows are given the property, be it null."""
        if self._ids.get(name):
            self._ids[name].difference_update(ids.to_pylist())

    def lost(self, change: TypeChange, base: Base, reads: ReadSet) -> EmptiedProperties | None:
        """Of the final image, what is empty and was not."""
        empty = {name: ids for name in self._ids if len(ids := self._empty(name, change))}
        if not empty:
            return None
        ids = pa.chunked_array([chunk for some in empty.values() for chunk in some.chunks]).unique()
        lookup = PresenceLookup(KeyLookup("id", ids, ("id", *empty)), tuple(empty))
        before = reads.ask(base, change.type_key, lookup)
        had = {
            name: among(before.filter(before.column(name)), some).column("id").to_pylist()
            for name, some in empty.items()
        }
        rows = {id_ for some in had.values() for id_ in some}
        names = tuple(sorted(name for name, some in had.items() if some))
        return EmptiedProperties(change.type.name, len(rows), names) if rows else None

    def _empty(self, name: str, change: TypeChange) -> pa.ChunkedArray:
        rows = change.rows.filter(change.rows.column(name).is_null()).select(["id"])
        replaced = among(rows, change.existing.column("id"))
        return among(replaced, pa.array(self._ids[name], pa.string())).column("id")


@dataclass(frozen=True, slots=True)
class PresenceLookup:
    """The rows with these ids, and which of some properties they have; not what these are."""

    anchor: KeyLookup
    properties: tuple[str, ...]

    @property
    def columns(self) -> Sequence[str]:
        """The id."""
        return self.anchor.columns

    @property
    def is_small(self) -> bool:
        """As its anchor."""
        return self.anchor.is_small

    def ask(self, table: Table) -> pa.Table:
        """Find the rows, and keep of each property whether it is there."""
        rows = self.anchor.ask(table)
        for name in self.properties:
            position = rows.schema.get_field_index(name)
            rows = rows.set_column(position, name, rows.column(name).is_valid())
        return rows

    def select(self, rows: pa.Table) -> pa.Table:
        """Compare the ids."""
        return self.anchor.select(rows)
