"""Entities: the nodes or edges of one type in one snapshot, by position.

Owns positions. A row's position is its stable row id, so it survives updates and
compaction, and what was built on positions stays right. Properties are read for the
positions asked about; -1 stands for no entity, whose properties are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import Scalar
from omnigraph.read.access.column_cache import ColumnCache
from omnigraph.read.execute.grouping import value_codes
from omnigraph.read.execute.sorting import distinct
from omnigraph.rows.filters import STRUCTURAL, RowFilter
from omnigraph.rows.text_positions import PositionsByText, positions_by_text
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.storage.tables.row_lookup import find_rows, fragment_maps
from omnigraph.storage.tables.table import ROW_ID, Table, column_names

Positions = npt.NDArray[np.int64]
NO_NODE = -1

# So few texts are looked up one by one.
FEW = 1_000
# The columns of so small a table are read as a whole.
SMALL_TABLE = 50_000
# Reading a row by itself costs as much as reading so many bytes of a column.
ROW_BYTES = 64 * 1024
# Of texts that nobody has seen yet, so large a part of a table is read as a whole.
PART = 0.05
# Tables of so many rows are filtered in storage rather than in memory.
MANY = 2_000_000
# So many ids are read sooner than a map of them is made.
CHEAP_IDS = 200_000


@dataclass(frozen=True, slots=True)
class _Rows:
    """The positions of a version: in the order of its columns, ascending, and back.

    ``slots`` says where in a whole column a position stands; None when positions are slots.
    """

    row_ids: Positions
    ascending: Positions
    slots: Positions | None

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.row_ids.nbytes * 2 + (0 if self.slots is None else self.slots.nbytes)


@dataclass(frozen=True, slots=True)
class _Codes:
    """A number for each value of a whole column."""

    codes: Positions

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.codes.nbytes


@dataclass(frozen=True)
class Entities:
    """The entities of one type; ``pinned`` is None when the type did not exist yet."""

    type: NodeType | EdgeType
    pinned: Table | None
    cache: ColumnCache

    @property
    def count(self) -> int:
        """How many there are."""
        return 0 if self.pinned is None else self.pinned.pin.row_count

    @property
    def table(self) -> Table:
        """Their table; only asked for when there are some."""
        if self.pinned is None:
            raise AssertionError(f"{self.type.name} has no table in this snapshot")
        return self.pinned

    # -- positions -------------------------------------------------------------------

    def positions(self) -> Positions:
        """All of them, ascending."""
        return self._rows.ascending if self.count else np.empty(0, dtype=np.int64)

    @property
    def row_ids(self) -> Positions:
        """Positions in the order of whole columns."""
        return self._rows.row_ids

    @cached_property
    def _rows(self) -> _Rows:
        return self.cache.derived(self.table, "@rows", self._numbered)

    def _numbered(self) -> _Rows:
        row_ids: Positions = self.cache.get(self.table, ROW_ID).to_numpy().astype(np.int64)
        if np.array_equal(row_ids, np.arange(len(row_ids))):
            return _Rows(row_ids, row_ids, None)
        slots = np.full(int(row_ids.max(initial=-1)) + 1, NO_NODE, dtype=np.int64)
        slots[row_ids] = np.arange(len(row_ids))
        return _Rows(row_ids, np.sort(row_ids), slots)

    @property
    def ids(self) -> pa.Array:
        """All ids, in the same order."""
        return self.cache.get(self.table, "id")

    def by_id(self) -> PositionsByText:
        """What tells positions by ids that are known to be there."""
        return self.cache.derived(
            self.table, "@by_id", lambda: positions_by_text(self.ids, self._rows.row_ids)
        )

    def matching(self, wanted: RowFilter) -> Positions:
        """The positions of those that pass a filter, ascending."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        if wanted.columns and self.are_at_hand(wanted.columns):
            names = (*wanted.columns, ROW_ID)
            rows = pa.table({name: self.cache.get(self.table, name) for name in names})
            found = wanted.select(rows)
        else:
            columns = list(wanted.kept_columns)
            found = wanted.narrow(self.table.scan(columns, wanted.expression, with_row_id=True))
        return np.sort(found.column(ROW_ID).to_numpy().astype(np.int64))

    def are_at_hand(self, names: Sequence[str]) -> bool:
        """Whether columns are in memory, or may as well be: the next query will want them too."""
        if self.count <= MANY:
            return True
        return all(self.cache.holds(self.table, name) for name in names)

    def find(self, column: str, texts: pa.Array, *wanted: str) -> pa.Table:
        """The `_rowid` and wanted columns of those that hold one of these texts in a column."""
        names = wanted or ("id",)
        if len(texts) > FEW:
            return find_rows(self.table, column, texts, names)
        return self.cache.found(
            self.table, column, texts, names, lambda: self._few(column, texts, names)
        )

    def _few(self, column: str, texts: pa.Array, names: Sequence[str]) -> pa.Table:
        if column == "id" and self._ids_are_cheap and not fragment_maps.pays(self.table, column):
            return self._compared(texts, names)
        return find_rows(self.table, column, texts, names)

    @property
    def _ids_are_cheap(self) -> bool:
        return self.count <= CHEAP_IDS or self.cache.holds(self.table, "id")

    def _compared(self, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The same from all ids in memory: a walk from here needs them as well."""
        hit = pc.indices_nonzero(pc.is_in(self.ids, value_set=ids)).to_numpy()
        positions = self._rows.row_ids[hit]
        columns = {name: self.values(name, positions) for name in names}
        return pa.table({**columns, ROW_ID: positions.astype(np.uint64)})

    # -- values ----------------------------------------------------------------------

    def values(self, name: str, positions: Positions) -> pa.Array:
        """A property of these positions, `@id` and the like included; null for nobody."""
        column = self._column(name)
        if not self.count or column not in column_names(self.table):
            return pa.nulls(len(positions), self._type_of(name))
        whole = self.cache.peek(self.table, column)
        if whole is None and self._is_worthwhile(column, positions):
            whole = self.cache.get(self.table, column)
        if whole is None:
            return self._some(column, positions)
        if positions is self._rows.row_ids:
            return whole
        slots = positions if self._rows.slots is None else self._rows.slots[positions]
        return whole.take(_nullable(slots, positions))

    def codes(self, name: str, positions: Positions) -> Positions | None:
        """A number for each distinct value of a property; None where its column is not at hand."""
        column = self._column(name)
        if (
            not self.count
            or not self.cache.holds(self.table, column)
            or self._has_nobody(positions)
        ):
            return None
        known = self.cache.derived(self.table, f"@codes:{column}", lambda: self._coded(column))
        slots = positions if self._rows.slots is None else self._rows.slots[positions]
        return known.codes if positions is self._rows.row_ids else known.codes[slots]

    def _coded(self, column: str) -> _Codes:
        return _Codes(value_codes(self.cache.get(self.table, column)))

    def _has_nobody(self, positions: Positions) -> bool:
        return bool((positions == NO_NODE).any())

    def _column(self, name: str) -> str:
        """Where a property is stored; a key that is one text is the id, which is read anyway."""
        type_ = self.type
        if isinstance(type_, NodeType) and type_.key == (name,):
            return "id" if type_.properties[name].type.scalar is Scalar.STRING else name
        return STRUCTURAL.get(name, name)

    def _is_worthwhile(self, column: str, positions: Positions) -> bool:
        """Whether to read a whole column, since reading rows of it one by one has cost as much."""
        if self.count <= SMALL_TABLE:
            return True
        known = self.cache.partly(self.table, column)
        width = _width(self.table.schema.field(column).type) if known is None else known.width
        if width is None:
            return len(positions) >= PART * self.count
        asked = len(positions) + (0 if known is None else len(known.row_ids))
        return self.count * width <= min(asked * ROW_BYTES, self.cache.max_bytes)

    def _some(self, column: str, positions: Positions) -> pa.Array:
        known = distinct(positions)
        known = known[known != NO_NODE]
        values = self.cache.some(self.table, column, known)
        return values.take(_nullable(np.searchsorted(known, positions), positions))

    def _type_of(self, name: str) -> pa.DataType:
        if name in STRUCTURAL:
            return pa.string()
        return arrow_field(name, self.type.properties[name].type).type


def _width(type_: pa.DataType) -> float | None:
    """How many bytes a value of a column has; None where that depends on the value."""
    if pa.types.is_fixed_size_list(type_):
        return float(type_.list_size * type_.value_type.bit_width) / 8
    return float(type_.bit_width) / 8 if pa.types.is_primitive(type_) else None


def _nullable(slots: Positions, positions: Positions) -> pa.Array:
    """Indices to take, null where there is nobody."""
    nobody = positions == NO_NODE
    return pa.array(slots, mask=nobody) if nobody.any() else pa.array(slots)
