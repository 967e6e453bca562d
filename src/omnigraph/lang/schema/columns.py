"""Physical columns: which column of a table holds which property.

Owns how a column gets its name, keeps it through renames and never gives it to another
property of its table, and the JSON of what is not self-evident. Never touches a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import Document, Text, compact, read_document
from omnigraph.lang.schema.ir.ir import IREdge, IRNode, SchemaIR

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

AS_WRITTEN = "{}"
"""The names of a schema whose columns are all called like their properties."""


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

    def differs_from(self, table: IRNode | IREdge) -> bool:
        """Whether there is more to say than that columns are called like their properties."""
        return bool(self.retired) or any(
            self[property_.property_id] != property_.name for property_ in table.properties
        )


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
            if found.differs_from(table):
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
    accepted_columns: ColumnNames,
    desired: SchemaIR,
    rewritten: Mapping[int, int] = MappingProxyType({}),
) -> ColumnNames:
    """The columns after a change of the schema.

    A property that stays keeps its column, whatever it is called. New ones get a column, and
    so do those in ``rewritten``, whose values are written again: each with an identity that was
    given to nothing else, so that two branches never mean different values by one name. What
    no property has any more is retired.
    """
    tables = {}
    for table in desired.tables():
        before = accepted_columns.tables.get(table.type_id)
        tables[table.type_id] = (
            _new_table(table) if before is None else _carried(before, table, rewritten)
        )
    return ColumnNames(tables)


def _carried(
    before: TableColumns, table: IRNode | IREdge, rewritten: Mapping[int, int]
) -> TableColumns:
    by_property = {}
    for property_ in table.properties:
        identity = property_.property_id
        column = before.by_property.get(identity)
        if column is None or identity in rewritten:
            column = _made_of(property_.name, rewritten.get(identity, identity))
        by_property[identity] = column
    gone = set(before.by_property.values()) - set(by_property.values())
    retired = tuple(sorted({*before.retired, *gone}))
    return TableColumns(dict(sorted(by_property.items())), retired)


def _new_table(table: IRNode | IREdge) -> TableColumns:
    """Columns called like their properties, but for names that storage cannot tell from others."""
    taken = set(RESERVED_COLUMNS)
    by_property = {}
    for property_ in sorted(table.properties, key=lambda found: found.property_id):
        name, identity = property_.name, property_.property_id
        by_property[identity] = _made_of(name, identity) if name.lower() in taken else name
        taken.add(name.lower())
    return TableColumns(by_property)


def _made_of(name: str, identity: int) -> str:
    """A name that no property can have, nor any column with another identity."""
    return f"{name}@{identity}"
