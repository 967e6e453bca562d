"""Entities: the nodes or edges of one type in one snapshot, by position.

Owns positions: 0 to n-1 over the live rows, in the order of their stable row ids. So memory
follows the rows there are, and updates, compaction and new rows leave a position as it is.
Properties are read for the positions asked about; -1 stands for no entity, whose properties
are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import EDGE_COLUMNS, ID, TYPE
from omnigraph.lang.types import Scalar
from omnigraph.read.access.column_cache import ColumnCache
from omnigraph.read.execute.grouping import value_codes
from omnigraph.read.execute.sorting import distinct
from omnigraph.rows.filters import RowFilter
from omnigraph.rows.references import nodes_of
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.rows.text_positions import PositionsByText, positions_by_text
from omnigraph.storage.budget import need, took
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.storage.tables.row_ids import RowIds, row_ids_of
from omnigraph.storage.tables.row_lookup import find_rows, fragment_maps
from omnigraph.storage.tables.table import ROW_ID, Table, column_names

Positions = npt.NDArray[np.int64]
NO_NODE = -1
_POSITION = "@position"

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
# So many times rows are looked up before whole columns are read: the more the larger these are.
PATIENCE = 3
ROWS_PER_QUESTION = 2_500
# The values of so few rows are taken without asking.
SOME = 4_096
# Texts that are taken may be copied once more while Arrow makes room for them; mostly half of them.
GROWTH = 1.45
# So many ids are read sooner than a map of them is made.
CHEAP_IDS = 200_000


@dataclass(frozen=True, slots=True)
class _Order:
    """The positions of a version in the order of its columns, and back.

    ``slots`` says where in a whole column a position stands; None when positions are slots.
    """

    positions: Positions
    slots: Positions | None

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.positions.nbytes + (0 if self.slots is None else self.slots.nbytes)


@dataclass(frozen=True, slots=True)
class _Codes:
    """A number for each value of a whole column."""

    codes: Positions

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.codes.nbytes


@dataclass(slots=True)
class _Asked:
    """How often rows of a version were looked up."""

    times: int = 0
    size: int = 64


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

    @property
    def names(self) -> StoredColumns:
        """The columns that their properties are stored in."""
        return AS_NAMED if self.pinned is None else self.pinned.columns

    # -- positions -------------------------------------------------------------------

    def positions(self) -> Positions:
        """All of them, ascending."""
        if self.count and self._order.slots is None:
            return self.in_order  # for which whole columns are not copied
        return np.arange(self.count)

    @cached_property
    def row_ids(self) -> RowIds:
        """The row ids at their positions."""
        return self.cache.derived(self.table, "@row_ids", lambda: row_ids_of(self.table))

    def positions_of(self, rows: pa.Table) -> Positions:
        """The positions of rows that were read with their row ids."""
        if not rows.num_rows:
            return np.empty(0, dtype=np.int64)
        return self.row_ids.positions_of(rows.column(ROW_ID).to_numpy().astype(np.int64))

    @property
    def in_order(self) -> Positions:
        """Positions in the order of whole columns."""
        return self._order.positions

    @cached_property
    def _order(self) -> _Order:
        return self.cache.derived(self.table, "@order", self._ordered)

    def _ordered(self) -> _Order:
        row_ids = self.cache.get(self.table, ROW_ID).to_numpy().astype(np.int64)
        positions = self.row_ids.positions_of(row_ids)
        ascending = np.arange(self.count)
        if np.array_equal(positions, ascending):
            return _Order(ascending, None)
        slots = np.empty(len(positions), dtype=np.int64)
        slots[positions] = ascending
        return _Order(positions, slots)

    def _slots(self, positions: Positions) -> Positions:
        slots = self._order.slots
        return positions if slots is None else slots[positions]

    @property
    def ids(self) -> pa.Array:
        """All ids, in the same order."""
        return self.cache.get(self.table, ID)

    def by_id(self) -> PositionsByText:
        """What tells positions by ids that are known to be there."""
        return self.cache.derived(
            self.table, "@by_id", lambda: positions_by_text(self.ids, self.in_order)
        )

    def matching(self, wanted: RowFilter, *, in_memory: bool) -> Positions:
        """The positions of those that pass a filter, ascending: by whole columns, or in storage."""
        if in_memory:
            self.cache.bring(self.table, wanted.columns)
            columns = {name: self.cache.get(self.table, name) for name in wanted.columns}
            found = wanted.select(pa.table({**columns, _POSITION: self.in_order}))
            return np.sort(found.column(_POSITION).to_numpy())
        read = self.table.scan(list(wanted.kept_columns), wanted.condition, with_row_id=True)
        return np.sort(self.positions_of(wanted.narrow(read)))

    def are_at_hand(self, names: Sequence[str]) -> bool:
        """Whether columns are in memory, or may as well be: the next query will want them too."""
        if self.count <= MANY:
            return True
        return all(self.cache.holds(self.table, name) for name in names)

    def look_up(self, column: str, texts: pa.Array, names: Sequence[str]) -> FoundRows:
        """Those that hold one of these texts in a column, with some of their properties.

        They are found and fetched by one request, unless all of it is in memory.
        """
        stored = [self.column(name) for name in names]
        known = column_names(self.table)
        wanted = tuple(dict.fromkeys([ID, *(name for name in stored if name in known)]))

        def found() -> pa.Table:
            if column == ID and self._may_be_compared(wanted):
                return self._compared(texts, wanted)
            return find_rows(self.table, column, texts, wanted)

        if len(texts) > FEW:
            rows = found()
        else:
            rows = self.cache.found(self.table, column, texts, wanted, found)
        ordered = rows.sort_by(ROW_ID) if rows.num_rows > 1 else rows
        return FoundRows(self, ordered, np.arange(rows.num_rows))

    def _may_be_compared(self, wanted: Sequence[str]) -> bool:
        """Whether columns are in memory, or may as well be: so often has this version been asked.

        The first questions about a version are answered row by row: who has just written asks
        once, and another version follows.
        """
        if self.count > CHEAP_IDS:
            return False
        asked = self.cache.derived(self.table, "@asked", _Asked)
        asked.times += 1
        if asked.times > max(PATIENCE, self.count // ROWS_PER_QUESTION):
            return True
        return all(self.cache.holds(self.table, name) for name in wanted)

    def find(self, column: str, texts: pa.Array, *wanted: str) -> pa.Table:
        """The `_rowid` and wanted columns of those that hold one of these texts in a column."""
        names = wanted or (ID,)
        if len(texts) > FEW:
            return find_rows(self.table, column, texts, names)
        return self.cache.found(
            self.table, column, texts, names, lambda: self._few(column, texts, names)
        )

    def _few(self, column: str, texts: pa.Array, names: Sequence[str]) -> pa.Table:
        if column == ID and self._ids_are_cheap and not fragment_maps.pays(self.table, column):
            return self._compared(texts, names)
        return find_rows(self.table, column, texts, names)

    @property
    def _ids_are_cheap(self) -> bool:
        return self.count <= CHEAP_IDS or self.cache.holds(self.table, ID)

    def _compared(self, ids: pa.Array, names: Sequence[str]) -> pa.Table:
        """The same from all ids in memory: a walk from here needs them as well."""
        hit = pc.indices_nonzero(pc.is_in(self.ids, value_set=ids))
        self.cache.bring(self.table, (*names, ROW_ID))
        return pa.table(
            {name: self.cache.get(self.table, name).take(hit) for name in (*names, ROW_ID)}
        )

    # -- values ----------------------------------------------------------------------

    def values(self, name: str, positions: Positions) -> pa.Array:
        """A property of these positions, `@id` and the like included; null for nobody."""
        if name == TYPE:
            return taken(pa.array([self.type.name]), np.zeros_like(positions), positions)
        column = self.column(name)
        if not self.has(name):
            return pa.nulls(len(positions), self._type_of(name))
        whole = self.cache.peek(self.table, column)
        if whole is None and self._is_worthwhile(column, positions):
            whole = self.cache.get(self.table, column)
        if whole is None:
            found = self._some(column, positions)
        elif positions is self.in_order:
            found = whole
        else:
            found = taken(whole, self._slots(positions), positions)
        return nodes_of(found) if self._is_reference(name) else found

    def _is_reference(self, name: str) -> bool:
        """Whether a column has references, which nobody is shown."""
        return isinstance(self.type, EdgeType) and name in self.type.shared

    def bring(self, names: Iterable[str], positions: Positions) -> None:
        """Have several properties of these positions at hand, by few requests."""
        stored = dict.fromkeys(self.column(name) for name in names if self.has(name))
        missing = [column for column in stored if not self.cache.holds(self.table, column)]
        if len(missing) < 2:
            return
        is_whole = [self._is_worthwhile(column, positions) for column in missing]
        self.cache.bring(self.table, compress(missing, is_whole))
        some = [column for column, whole in zip(missing, is_whole, strict=True) if not whole]
        known = distinct(positions)
        known = known[known != NO_NODE]
        if some and len(known):
            self.cache.bring_some(self.table, some, self.row_ids.at(known))

    def has(self, name: str) -> bool:
        """Whether there is anything to read of a property; an old version may not have it yet."""
        return bool(self.count) and self.column(name) in column_names(self.table)

    def codes(self, name: str, positions: Positions) -> Positions | None:
        """The codes of a property's values; None where its column is not at hand."""
        column = self.column(name)
        if (
            not self.count
            or not self.cache.holds(self.table, column)
            or self._has_nobody(positions)
            or self._is_reference(name)
        ):
            return None
        known = self.cache.derived(
            self.table, f"@codes:{self.names.of(column)}", lambda: self._coded(column)
        )
        return known.codes if positions is self.in_order else known.codes[self._slots(positions)]

    def _coded(self, column: str) -> _Codes:
        return _Codes(value_codes(self.cache.get(self.table, column)))

    def _has_nobody(self, positions: Positions) -> bool:
        return bool((positions == NO_NODE).any())

    def column(self, name: str) -> str:
        """Where a property is stored; a key that is one text is the id, which is read anyway."""
        type_ = self.type
        if isinstance(type_, NodeType) and type_.key == (name,):
            return ID if type_.properties[name].type.scalar is Scalar.STRING else name
        return name

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
        if len(known):
            values = self.cache.some(self.table, column, self.row_ids.at(known))
        else:
            values = pa.array([], self.table.schema.field(column).type)
        need(positions.nbytes)
        return taken(values, np.searchsorted(known, positions), positions)

    def _type_of(self, name: str) -> pa.DataType:
        if name in EDGE_COLUMNS:
            return pa.string()
        return arrow_field(name, self.type.properties[name].type).type


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Entities that were looked up with what a query needs of them; positions count these alone."""

    entities: Entities
    rows: pa.Table
    """By row id, so that they are in the order of their entities."""
    every: Positions
    """Their positions."""

    @property
    def type(self) -> NodeType | EdgeType:
        """What they are."""
        return self.entities.type

    def values(self, name: str, positions: Positions) -> pa.Array:
        """A property that was fetched with them; null for nobody."""
        stored = self.entities.column(name)
        if self.rows.schema.get_field_index(stored) < 0 and not self.entities.has(name):
            return self.entities.values(name, positions)
        column = self.rows.column(stored).combine_chunks()
        return column if positions is self.every else column.take(_nullable(positions, positions))

    def bring(self, names: Iterable[str], positions: Positions) -> None:
        """Nothing to do: all that is needed was fetched with them."""

    def codes(self, name: str, positions: Positions) -> Positions | None:
        """None: no column is at hand."""


def _width(type_: pa.DataType) -> float | None:
    """How many bytes a value of a column has; None where that depends on the value."""
    if pa.types.is_fixed_size_list(type_):
        return float(type_.list_size * type_.value_type.bit_width) / 8
    return float(type_.bit_width) / 8 if pa.types.is_primitive(type_) else None


def taken(values: pa.Array, slots: Positions, positions: Positions) -> pa.Array:
    """The values at slots, null where there is nobody; those of many rows are counted."""
    if len(slots) >= SOME:
        width = values.nbytes / max(1, len(values))
        room = 1.0 if pa.types.is_primitive(values.type) else GROWTH
        need(int(room * width * len(slots)) + len(slots))
    return took(values.take(_nullable(slots, positions)))


def _nullable(slots: Positions, positions: Positions) -> pa.Array:
    """Indices to take, null where there is nobody."""
    nobody = positions == NO_NODE
    return pa.array(slots, mask=nobody) if nobody.any() else pa.array(slots)
