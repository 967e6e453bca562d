"""Rows as a change of the schema leaves them, before it is made.

Owns which stored column a property of the desired schema is made of, and how: as new columns
that are written, and as rows that are checked. Both follow from the same effects, so what was
checked is what is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, IRProperty
from omnigraph.lang.schema.migration.effects import (
    AddColumn,
    Effect,
    FillNulls,
    ReplaceColumn,
    WidenColumn,
)
from omnigraph.lang.structural import EDGE_COLUMNS, ID, NODE_COLUMNS
from omnigraph.rows.stored_columns import ShownAs, StoredColumns
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.storage.tables.new_columns import NewColumn
from omnigraph.storage.tables.table import Table
from omnigraph.write.load.columns.typed_rows import default_of

ColumnEffect = AddColumn | ReplaceColumn | WidenColumn | FillNulls


@dataclass(frozen=True)
class TypeAfter:
    """One type before and after: ``accepted`` is what its table was made for."""

    accepted: IRNode | IREdge
    desired: NodeType | EdgeType
    effects: tuple[Effect, ...]

    @cached_property
    def _written(self) -> Mapping[int, ColumnEffect]:
        """What is written for properties, by their ids."""
        kinds = (AddColumn, ReplaceColumn, WidenColumn, FillNulls)
        return {one.property_id: one for one in self.effects if isinstance(one, kinds)}

    @cached_property
    def _former(self) -> Mapping[int, str]:
        return {found.property_id: found.name for found in self.accepted.properties}

    @cached_property
    def _names(self) -> Mapping[int, str]:
        return {found.property_id: name for name, found in self.desired.properties.items()}

    def name(self, property_id: int) -> str:
        """What the desired schema calls a property."""
        return self._names[property_id]

    def former_name(self, property_id: int) -> str:
        """What the accepted schema calls a property."""
        return self._former[property_id]

    def new_columns(self, before: StoredColumns, after: StoredColumns) -> tuple[NewColumn, ...]:
        """The columns to write, with the columns of names before and after."""
        found = []
        for property_id in self._written:
            name = self.name(property_id)
            field, former, fill = self._made(name)
            source = None if former is None else before.of(former)
            found.append(NewColumn(field.with_name(after.of(name)), source, fill))
        return tuple(found)

    def view(self, before: StoredColumns) -> StoredColumns:
        """The columns of a table as it is, by the names that rows have afterwards.

        What is of a type that no value leads to from the one it has is shown as if it had none.
        """
        structural = NODE_COLUMNS if isinstance(self.desired, NodeType) else EDGE_COLUMNS
        pairs: list[tuple[str, str | None]] = [(name, name) for name in structural]
        shown: list[tuple[str, ShownAs]] = []
        misfits = {former.property_id for former, _ in self.misfits()}
        for name, property_ in sorted(self.desired.properties.items()):
            field, former, fill = self._made(name)
            if property_.property_id in misfits:
                former = None
            pairs.append((name, None if former is None else before.of(former)))
            if former is None or property_.property_id in self._written:
                shown.append((name, ShownAs(field.type, fill)))
        return StoredColumns(tuple(pairs), tuple(shown))

    def misfits(self) -> Iterator[tuple[IRProperty, str]]:
        """Properties whose column has another type than they have, with their names afterwards."""
        for accepted in self.accepted.properties:
            name = self._names.get(accepted.property_id)
            if name is None or accepted.property_id in self._written:
                continue
            wanted = arrow_field(name, self.desired.properties[name].type).type
            if arrow_field(name, accepted.type).type != wanted:
                yield accepted, name

    def rows(self, table: Table, names: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of the rows of a table, by their names afterwards, with the ids."""
        for batch in table.batches(self._read(names)):
            yield self.shown(pa.Table.from_batches([batch]), names)

    def reading(self, names: Sequence[str]) -> list[str]:
        """The columns of a table that these are made of."""
        return self._read(names)

    def shown(self, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        """Rows of the table as it is, by names afterwards."""
        columns = {ID: rows.column(ID)}
        for name in names:
            columns[name] = rows.column(name) if name in EDGE_COLUMNS else self._values(rows, name)
        return pa.table(columns)

    def _values(self, rows: pa.Table, name: str) -> pa.ChunkedArray:
        field, former, fill = self._made(name)
        source = None if former is None else rows.column(former)
        values = ShownAs(field.type, fill).of(source, rows.num_rows)
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])

    def _read(self, names: Sequence[str]) -> list[str]:
        read = [ID, *(name for name in names if name in EDGE_COLUMNS)]
        for name in names:
            if name not in EDGE_COLUMNS:
                _, former, _ = self._made(name)
                read += [] if former is None else [former]
        return list(dict.fromkeys(read))

    def _made(self, name: str) -> tuple[pa.Field, str | None, pa.Scalar | None]:
        """The field of a property, the name of the column it is made of, and what fills it."""
        property_ = self.desired.properties[name]
        field = arrow_field(name, property_.type)
        effect = self._written.get(property_.property_id)
        former = self._former.get(property_.property_id)
        if isinstance(effect, AddColumn | ReplaceColumn):
            former = None
        if effect is None or effect.fill is None:
            return field, former, None
        return field, former, default_of(property_, field.type)
