"""Physical columns of merged tables: which table goes on, and what must be done to its columns.

Owns the columns that each merged table starts from, and which properties are added to it or
written anew in another type. How a column is called is `carried`'s. Never touches a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.columns import ColumnNames, TableColumns
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, IRProperty, SchemaIR
from omnigraph.lang.schema.merge.conflicts import Side
from omnigraph.lang.schema.merge.operation import SchemaMerge


@dataclass(frozen=True, slots=True)
class TableColumnChange:
    """What becomes of the columns of one table.

    ``origin`` is the side whose table goes on. By their ids in the merged schema, the properties
    in ``added`` get a column and those in ``rewritten`` one of another type, which the values are
    cast to; by the ids of that side, those in ``dropped`` have none any more.
    """

    origin: Side
    added: frozenset[int] = frozenset()
    rewritten: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """Where merged tables start from.

    ``start`` are the columns of the tables that go on, by merged ids: `carried(start, merged.ir,
    …)` leads from them to the columns of the merge, and is given an identity for each of
    ``rewritten``.
    """

    start: ColumnNames
    tables: Mapping[int, TableColumnChange]

    @property
    def rewritten(self) -> frozenset[int]:
        """Every property whose values are written anew, in any table."""
        return frozenset().union(*(table.rewritten for table in self.tables.values()))


def merged_columns(
    merged: SchemaMerge,
    source: tuple[SchemaIR, ColumnNames],
    target: tuple[SchemaIR, ColumnNames],
    *,
    adopted: AbstractSet[int] = frozenset(),
) -> MergedColumns:
    """How the tables of the two sides become those of the merged schema.

    The target's table goes on wherever it has one, and the source's otherwise; ``adopted`` are
    types, by their merged ids, whose table is taken over from the source although the target has
    one too. Rows of the other side are seen by logical names and written into it.
    """
    if merged.ir is None:
        raise SchemaError("a merge with conflicts has no columns: resolve them first")
    known = {
        side: {table.type_id: table for table in ir.tables()}
        for side, (ir, _) in (("source", source), ("target", target))
    }
    start: dict[int, TableColumns] = {}
    tables: dict[int, TableColumnChange] = {}
    for table in merged.ir.tables():
        in_target = table.type_id in merged.ids.target
        in_source = table.type_id in merged.ids.source
        origin: Side = "target"
        if not in_target or (in_source and table.type_id in adopted):
            origin = "source"
        ids = merged.ids.target if origin == "target" else merged.ids.source
        _, columns = target if origin == "target" else source
        own_id = ids[table.type_id]
        start[table.type_id] = _translated(columns[own_id], ids)
        tables[table.type_id] = _change(table, known[origin][own_id], origin, ids)
    return MergedColumns(ColumnNames(start), tables)


def _translated(columns: TableColumns, ids: Mapping[int, int]) -> TableColumns:
    """The columns of a side by merged ids; one that no merged property has is retired."""
    merged_of = {own: merged for merged, own in ids.items()}
    kept, retired = {}, set(columns.retired)
    for own, column in columns.by_property.items():
        if own in merged_of:
            kept[merged_of[own]] = column
        else:
            retired.add(column)
    return TableColumns(dict(sorted(kept.items())), tuple(sorted(retired)))


def _change(
    table: IRNode | IREdge, before: IRNode | IREdge, origin: Side, ids: Mapping[int, int]
) -> TableColumnChange:
    old = {property_.property_id: property_ for property_ in before.properties}
    added, rewritten = set(), set()
    for property_ in table.properties:
        former = old.pop(ids.get(property_.property_id, 0), None)
        if former is None:
            added.add(property_.property_id)
        elif _stored_as(former) != _stored_as(property_):
            rewritten.add(property_.property_id)
    return TableColumnChange(origin, frozenset(added), frozenset(rewritten), frozenset(old))


def _stored_as(property_: IRProperty) -> tuple[object, ...]:
    """What decides the type of a column; an enum is stored as any text."""
    type_ = property_.type
    return (type_.scalar, type_.is_list, type_.dimension)
