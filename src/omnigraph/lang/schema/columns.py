"""Physical columns: which column of a table holds which property.

Owns how a column gets its name, keeps it through renames and never gives it to another
property of its table, and the JSON of what is not self-evident. Never touches a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import Document, Text, compact, read_document
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, IRProperty, SchemaIR

RESERVED_COLUMNS = frozenset(
    {
        "_distance",
        "_relevance_score",
        "_row_created_at_version",
        "_row_last_updated_at_version",
        "_rowaddr",
        "_rowid",
        "_rowoffset",
        "_score",
    }
)
"""What the storage itself adds to rows; no column has such a name in any case."""

_DOCUMENT = "column names"


class _Stored(Document, frozen=True, omit_defaults=True):
    """What is kept of one table: columns named unlike their property, and names used up."""

    columns: dict[str, Text] = msgspec.field(default_factory=dict)
    retired: tuple[Text, ...] = ()


class _AllStored(Document, frozen=True, omit_defaults=True):
    tables: dict[str, _Stored] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of one table; ``retired`` are names of columns that no property has now.

    A retired column may still stand in the table's files, so its name is not given again.
    """

    by_property: Mapping[int, str] = field(default_factory=dict)
    retired: tuple[str, ...] = ()

    def __getitem__(self, property_id: int) -> str:
        return self.by_property[property_id]


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns of every node and edge table, by the stable id of its type."""

    tables: Mapping[int, TableColumns] = field(default_factory=dict)

    def __getitem__(self, type_id: int) -> TableColumns:
        return self.tables[type_id]

    def to_text(self, ir: SchemaIR) -> str:
        """The names as compact JSON; a column that is named like its property goes without."""
        tables = {}
        for table in ir.tables():
            found = self.tables[table.type_id]
            columns = {
                str(property_.property_id): found[property_.property_id]
                for property_ in table.properties
                if found[property_.property_id] != property_.name
            }
            if columns or found.retired:
                tables[str(table.type_id)] = _Stored(columns, found.retired)
        return compact(msgspec.to_builtins(_AllStored(tables)))


def columns_from_text(text: str | bytes, ir: SchemaIR) -> ColumnNames:
    """The names a stored text holds for this schema; SchemaError if they do not fit it."""
    stored = dict(read_document(text, _AllStored, _DOCUMENT, {}).tables)
    tables = {}
    for table in ir.tables():
        kept = stored.pop(str(table.type_id), _Stored())
        columns = dict(kept.columns)
        by_property = {
            property_.property_id: columns.pop(str(property_.property_id), property_.name)
            for property_ in table.properties
        }
        if columns:
            raise SchemaError(f"invalid {_DOCUMENT}: {table.name} has no property {min(columns)}")
        names = [name.lower() for name in (*by_property.values(), *kept.retired)]
        if len(set(names)) < len(names):
            raise SchemaError(f"invalid {_DOCUMENT}: {table.name} has one column twice")
        tables[table.type_id] = TableColumns(by_property, kept.retired)
    if stored:
        raise SchemaError(f"invalid {_DOCUMENT}: there is no type {min(stored)}")
    return ColumnNames(tables)


def columns_of_new(ir: SchemaIR) -> ColumnNames:
    """The columns of a schema whose tables are all new."""
    return ColumnNames({table.type_id: _new_table(table) for table in ir.tables()})


def carried(
    accepted_columns: ColumnNames, desired: SchemaIR, *, rewritten: AbstractSet[int] = frozenset()
) -> ColumnNames:
    """The columns after a change of the schema.

    A property that stays keeps its column, whatever it is called; those in ``rewritten``
    (property ids whose values are written anew in another type) and new ones get a fresh
    one. What no property has any more is retired.
    """
    tables = {}
    for table in desired.tables():
        before = accepted_columns.tables.get(table.type_id)
        tables[table.type_id] = (
            _new_table(table) if before is None else _carried(before, table, rewritten)
        )
    return ColumnNames(tables)


def _carried(
    before: TableColumns, table: IRNode | IREdge, rewritten: AbstractSet[int]
) -> TableColumns:
    properties = {property_.property_id for property_ in table.properties}
    kept = {
        property_id: column
        for property_id, column in before.by_property.items()
        if property_id in properties and property_id not in rewritten
    }
    gone = [column for property_id, column in before.by_property.items() if property_id not in kept]
    retired = tuple(sorted({*before.retired, *gone}))
    return TableColumns(_with_new(kept, table.properties, retired), retired)


def _new_table(table: IRNode | IREdge) -> TableColumns:
    return TableColumns(_with_new({}, table.properties, ()))


def _with_new(
    kept: Mapping[int, str], properties: Iterable[IRProperty], retired: Iterable[str]
) -> dict[int, str]:
    """The kept columns and a free one for every other property, in the order of ids."""
    names = {property_.property_id: property_.name for property_ in properties}
    taken = {name.lower() for name in (*kept.values(), *retired)} | RESERVED_COLUMNS
    columns = dict(kept)
    for property_id in sorted(names.keys() - kept.keys()):
        column = _free(names[property_id], property_id, taken)
        taken.add(column.lower())
        columns[property_id] = column
    return dict(sorted(columns.items()))


def _free(name: str, property_id: int, taken: AbstractSet[str]) -> str:
    """The property's own name, else one made of its id; storage may fold the case of names."""
    column, attempt = name, 1
    while column.lower() in taken:
        column = f"{name}_{property_id}" if attempt == 1 else f"{name}_{property_id}_{attempt}"
        attempt += 1
    return column
