"""Stored columns: which column of a table holds which of the names that rows are read by.

Owns the way from names to columns and back. A property that was renamed keeps its column, one
that was dropped leaves its behind: where nothing of that has happened, names are columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

_R = TypeVar("_R", pa.Table, pa.RecordBatch)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """Every name of a table with its column, in the order of rows; none at all if they agree.

    Columns that no name leads to are not read, and null in rows that are written.
    """

    pairs: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredColumns) and (self is other or self.pairs == other.pairs)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.pairs)

    @cached_property
    def _columns(self) -> Mapping[str, str]:
        return dict(self.pairs)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {column: name for name, column in self.pairs}

    def of(self, name: str) -> str:
        """The column of a name; what every table has beside its columns is called as it is."""
        return self._columns.get(name, name)

    def of_all(self, names: Sequence[str] | None) -> list[str] | None:
        """The columns of some names, or of all there are."""
        if names is None:
            return list(self._columns.values()) if self else None
        return [self.of(name) for name in names]

    def name_of(self, column: str) -> str | None:
        """The name of a column; None for one that no name leads to."""
        return self._names.get(column) if self else column

    def named(self, rows: _R) -> _R:
        """Rows as they were read, under their names."""
        if not self:
            return rows
        return rows.rename_columns([self._names.get(name, name) for name in rows.schema.names])

    def stored(self, rows: pa.Table) -> pa.Table:
        """Rows under their names, as they are written."""
        return rows.rename_columns([self.of(name) for name in rows.schema.names])

    def fields(self, schema: pa.Schema) -> pa.Schema:
        """The fields of the names, from those of the columns; what is not there yet is left out."""
        if not self:
            return schema
        known = set(schema.names)
        return pa.schema(
            [
                schema.field(column).with_name(name)
                for name, column in self.pairs
                if column in known
            ],
            schema.metadata,
        )


AS_NAMED = StoredColumns()


def stored_columns(names: Iterable[tuple[str, str]]) -> StoredColumns:
    """The columns of names, in their order."""
    return StoredColumns(tuple(names))
