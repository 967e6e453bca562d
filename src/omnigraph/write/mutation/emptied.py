"""Emptied properties: what rows that were stored have lost because an insert left it out.

Owns telling a loss from what was meant: a property that is given again, a null that is written
as such and a row that was deleted first are none. Never changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.structural import ID
from omnigraph.storage.tables.table import Table
from omnigraph.write.change.change_set import TypeChange
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
        empty = self._empty(change) if self._ids else {}
        if not empty:
            return None
        ids = pa.chunked_array(list(empty.values())).unique()
        lookup = PresenceLookup(KeyLookup(ID, ids, (ID, *empty)), frozenset(empty))
        before = reads.ask(base, change.type_key, lookup)
        stored = before.column(ID)
        had = {
            name: _among(stored.filter(before.column(name)), some).to_pylist()
            for name, some in empty.items()
        }
        rows = {id_ for some in had.values() for id_ in some}
        names = tuple(sorted(name for name, some in had.items() if some))
        return EmptiedProperties(change.type.name, len(rows), names) if rows else None

    def _empty(self, change: TypeChange) -> dict[str, pa.Array]:
        """The ids of replaced rows that have nothing, by property."""
        # Ids alone are filtered: a type may have thousands of properties.
        ids = change.rows.column(ID).combine_chunks()
        existing = change.existing.column(ID).combine_chunks()
        is_replaced = pc.is_in(ids, value_set=existing)
        found: dict[str, pa.Array] = {}
        for name, left_out in self._ids.items():
            is_empty = change.rows.column(name).combine_chunks().is_null()
            some = ids.filter(pc.and_(is_replaced, is_empty))
            if left_out and len(some := _among(some, pa.array(left_out, pa.string()))):
                found[name] = some
        return found


def _among(ids: pa.Array | pa.ChunkedArray, others: pa.Array) -> pa.Array | pa.ChunkedArray:
    return ids.filter(pc.is_in(ids, value_set=others))


@dataclass(frozen=True, slots=True)
class PresenceLookup:
    """The rows with these ids, and which of some properties they have; not what these are."""

    anchor: KeyLookup
    properties: frozenset[str]

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
        columns = zip(rows.column_names, rows.columns, strict=True)
        return pa.table(
            {
                name: column.is_valid() if name in self.properties else column
                for name, column in columns
            }
        )

    def select(self, rows: pa.Table) -> pa.Table:
        """Compare the ids."""
        return self.anchor.select(rows)
