"""Stored columns: which column of a table holds which of the names that rows are read by.

Owns the way from names to columns and back, and how a column is shown to those who read a table
under another schema than its own. A property that was renamed keeps its column, one that was
dropped leaves its behind: where nothing of that has happened, names are columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

_R = TypeVar("_R", "pa.Table", "pa.RecordBatch")


@dataclass(frozen=True, slots=True)
class ShownAs:
    """A column in another type than it is stored in, with ``fill`` where it has no value."""

    type: pa.DataType
    fill: pa.Scalar | None = None

    def of(self, values: pa.Array | pa.ChunkedArray | None, rows: int) -> Any:
        """The values as they are shown; those of a column that is not stored are all ``fill``."""
        import pyarrow as pa

        if values is None:
            return pa.nulls(rows, self.type) if self.fill is None else pa.repeat(self.fill, rows)
        cast = values if values.type == self.type else values.cast(self.type)
        return cast if self.fill is None else cast.fill_null(self.fill)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """Every name of a table with its column, in the order of rows; none at all if they agree.

    Columns that no name leads to are not read, and null in rows that are written. A name
    without a column, and one whose values are not those of its column, is in ``shown``; a table
    with such names is there to be read.
    """

    pairs: tuple[tuple[str, str | None], ...] = ()
    shown: tuple[tuple[str, ShownAs], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, StoredColumns) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return self.pairs, tuple((name, str(one.type), str(one.fill)) for name, one in self.shown)

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    @cached_property
    def _columns(self) -> Mapping[str, str | None]:
        return dict(self.pairs)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {column: name for name, column in self.pairs if column is not None}

    @cached_property
    def _shown(self) -> Mapping[str, ShownAs]:
        return dict(self.shown)

    def of(self, name: str) -> str:
        """The column of a name; what every table has beside its columns is called as it is."""
        found = self._columns.get(name, name)
        if found is None:
            raise AssertionError(f"{name} is not stored")
        return found

    def find(self, name: str) -> str | None:
        """The column of a name, if it is stored."""
        return self._columns.get(name, name)

    def reads_alike(self, name: str, other: StoredColumns, other_name: str) -> bool:
        """Whether a row that lies in the same place says the same under two names."""
        is_one = self.find(name) == other.find(other_name)
        return is_one and self.shown_as(name) == other.shown_as(other_name)

    def shown_as(self, name: str) -> ShownAs | None:
        """How a name is shown, if not as it is stored."""
        return self._shown.get(name)

    def of_all(self, names: Sequence[str] | None) -> list[str] | None:
        """The columns of those of some names that are stored, or of all there are."""
        if names is None:
            return list(self._names) if self else None
        found = (self.find(name) for name in names)
        return [column for column in found if column is not None]

    def name_of(self, column: str) -> str | None:
        """The name of a column; None for one that no name leads to."""
        return self._names.get(column) if self else column

    def named(self, rows: _R, names: Sequence[str] | None = None) -> _R:
        """Rows as they were read, under the names that were asked for."""
        if not self:
            return rows
        renamed = rows.rename_columns([self._names.get(name, name) for name in rows.schema.names])
        if not self.shown:
            return renamed
        return self._as_shown(renamed, list(self._columns) if names is None else names)

    def _as_shown(self, rows: _R, names: Sequence[str]) -> _R:
        import pyarrow as pa

        given: list[str] = list(rows.schema.names)
        columns: list[Any] = []
        fields: list[pa.Field] = []
        for name in dict.fromkeys([*names, *given]):
            stored = rows.column(name) if name in given else None
            how = self._shown.get(name)
            columns.append(stored if how is None else how.of(stored, rows.num_rows))
            # What is shown as it is stored is never null where it is not stored so.
            fields.append(rows.schema.field(name) if how is None else pa.field(name, how.type))
        return type(rows).from_arrays(columns, schema=pa.schema(fields))

    def stored(self, rows: pa.Table) -> pa.Table:
        """Rows under their names, as they are written."""
        return rows.rename_columns([self.of(name) for name in rows.schema.names])

    def fields(self, schema: pa.Schema) -> pa.Schema:
        """The fields of the names, from those of the columns; what is not there yet is left out."""
        import pyarrow as pa

        if not self:
            return schema
        found: list[pa.Field] = []
        for name, column in self.pairs:
            how = self._shown.get(name)
            if column is not None and column in schema.names:
                field = schema.field(column).with_name(name)
                found.append(field if how is None else field.with_type(how.type))
            elif how is not None:
                found.append(pa.field(name, how.type))
        return pa.schema(found, schema.metadata)


AS_NAMED = StoredColumns()
