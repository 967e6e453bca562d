"""Columns and topologies of tables of which not all rows are shown.

Owns cutting them from those of the whole tables, which all actors share, under keys that name
what is shown: whoever sees other rows never finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.access.column_cache import (
    ColumnCache,
    Derived,
    PartialColumn,
)
from omnigraph.read.access.csr import Topology
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.entity_sets import EntitySet, Many, parts_of
from omnigraph.read.access.topology_cache import EdgeTables, Topologies
from omnigraph.storage.budget import need
from omnigraph.storage.tables.limited_table import LimitedTable
from omnigraph.storage.tables.row_ids import RowIds
from omnigraph.storage.tables.table import ROW_ID, Table

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Column:
    """The values of a column in the rows that are shown."""

    values: pa.Array

    @property
    def size(self) -> int:
        """Bytes held."""
        return int(self.values.get_total_buffer_size())


@dataclass(frozen=True, slots=True)
class _Slots:
    """Where in a whole column the rows stand that are shown."""

    places: Positions

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.places.nbytes


@dataclass(frozen=True, slots=True)
class _Shown:
    """A topology of the edges that are shown, with room for what is derived of it."""

    topology: Topology

    @property
    def size(self) -> int:
        """Bytes held: its own, and about those of both ways."""
        return 3 * self.topology.rows.nbytes * 3


class LimitedColumns(ColumnCache):
    """The columns of limited tables, kept beside those of the whole ones."""

    def __init__(self, whole: ColumnCache) -> None:
        self.whole = whole

    @property
    def max_bytes(self) -> int:
        """How many bytes the cache of whole columns may hold."""
        return self.whole.max_bytes

    def peek(self, table: Table, column: str) -> pa.Array | None:
        """A column of which the whole is at hand."""
        return self.get(table, column) if self.holds(table, column) else None

    def holds(self, table: Table, column: str) -> bool:
        """Whether the whole column is at hand."""
        return self.whole.holds(table.stored, column)

    def some(self, table: Table, column: str, row_ids: Positions) -> pa.Array:
        """The values of some rows, all of which are shown."""
        return self.whole.some(table.stored, column, row_ids)

    def partly(self, table: Table, column: str) -> PartialColumn | None:
        """What was read so far of the whole column."""
        return self.whole.partly(table.stored, column)

    def derived(self, table: Table, name: str, make: Callable[[], Derived]) -> Derived:
        """Something made of what is shown."""
        return self.whole.derived(table.stored, f"@shown:{digest_of(table)}:{name}", make)

    def get(self, table: Table, column: str) -> pa.Array:
        """A column, in the order of the table's layout."""

        def cut() -> _Column:
            whole = self.whole.get(table.stored, column)
            need(int(whole.nbytes))
            return _Column(whole.take(pa.array(self._slots(table))))

        return self.derived(table, f"column:{table.columns.of(column)}", cut).values

    def bring(self, table: Table, names: Iterable[str]) -> None:
        """Have whole columns at hand."""
        self.whole.bring(table.stored, names)

    def bring_some(self, table: Table, names: Iterable[str], row_ids: Positions) -> None:
        """Have the values of some rows at hand, all of which are shown."""
        self.whole.bring_some(table.stored, names, row_ids)

    def found(
        self,
        table: Table,
        column: str,
        texts: pa.Array,
        wanted: Sequence[str],
        find: Callable[[], pa.Table],
    ) -> pa.Table:
        """Rows looked up by a few texts, of those that are shown."""
        key = (f"@shown:{digest_of(table)}", *wanted)
        return self.whole.found(table.stored, column, texts, key, find)

    def _slots(self, table: Table) -> Positions:
        def find() -> _Slots:
            row_ids = self.whole.get(table.stored, ROW_ID).to_numpy().astype(np.int64)
            return _Slots(np.flatnonzero(_rows_of(table).hold(row_ids)))

        return self.derived(table, "slots", find).places


class LimitedTopologies(Topologies):
    """Topologies between what is shown, cut from those of all edges."""

    def __init__(self, whole: Topologies, columns: ColumnCache) -> None:
        self.whole, self.columns = whole, columns

    def peek(self, wiring: EdgeTables) -> Topology | None:
        """A topology that is at hand, if nothing is to be cut from it."""
        return None if _is_limited(wiring) else self.whole.peek(wiring)

    def get(self, wiring: EdgeTables) -> Topology:
        """The topology of what is shown."""
        if not _is_limited(wiring) or not wiring.edges.count:
            return self.whole.get(wiring)
        ends = (*parts_of(wiring.sources), *parts_of(wiring.targets))
        tables = (end.pinned for end in ends)
        seen = ":".join(
            "" if one is None else f"{digest_of(one)}@{one.pin.version}" for one in tables
        )
        name = f"@topology:{digest_of(wiring.edges.table)}:{seen}"
        cut = self.columns.derived(
            wiring.edges.table.stored, name, lambda: _Shown(self._cut(wiring))
        )
        return cut.topology

    def _cut(self, wiring: EdgeTables) -> Topology:
        tables = whole_wiring(wiring, self.columns)
        every = self.whole.get(tables)
        need(4 * every.rows.nbytes)
        rows = wiring.edges.table.shown_rows
        sources = _moved(tables.sources, wiring.sources)[every.sources]
        targets = _moved(tables.targets, wiring.targets)[every.targets]
        shown = (sources != NO_NODE) & (targets != NO_NODE)
        if rows is not None:
            shown &= rows.hold(every.rows)
        return Topology(sources[shown], targets[shown], every.rows[shown])


def entities_of(found: Entities) -> Entities:
    """The entities of a table as they are shown: the whole table where no row is hidden."""
    if found.pinned is None or found.pinned.is_whole:
        return found
    if found.pinned.shown_rows is None:
        return replace(found, pinned=found.pinned.stored)
    return replace(found, cache=LimitedColumns(found.cache))


def whole_wiring(wiring: EdgeTables, columns: ColumnCache) -> EdgeTables:
    """The tables of an edge type with all their rows."""

    def whole(found: Entities) -> Entities:
        stored = None if found.pinned is None else found.pinned.stored
        return Entities(found.type, stored, columns)

    def every(found: Many) -> Many:
        if not isinstance(found, EntitySet):
            return whole(found)
        return EntitySet(found.type, tuple(map(whole, found.parts)))

    return EdgeTables(whole(wiring.edges), every(wiring.sources), every(wiring.targets))


def _is_limited(wiring: EdgeTables) -> bool:
    ends = (wiring.edges, *parts_of(wiring.sources), *parts_of(wiring.targets))
    return any(one.pinned is not None and not one.pinned.is_whole for one in ends)


def _moved(whole: Many, shown: Many) -> Positions:
    """Where all nodes are among those that are shown."""
    if not isinstance(shown, EntitySet):
        return _moved_in_table(parts_of(whole)[0], shown)
    moved = [np.empty(0, dtype=np.int64)]
    for one, part, start in zip(parts_of(whole), shown.parts, shown.starts, strict=False):
        places = _moved_in_table(one, part)
        moved.append(np.where(places == NO_NODE, NO_NODE, places + start))
    return np.concatenate(moved)


def _moved_in_table(whole: Entities, shown: Entities) -> Positions:
    if shown.pinned is None or shown.table.is_whole:
        return np.arange(whole.count)
    row_ids = whole.row_ids.at(np.arange(whole.count))
    held = shown.row_ids.hold(row_ids)
    moved = np.full(whole.count, NO_NODE, dtype=np.int64)
    moved[held] = shown.row_ids.positions_of(row_ids[held])
    return moved


def digest_of(table: Table) -> str:
    """What tells the rows that a table shows from others of the same version."""
    return table.digest if isinstance(table, LimitedTable) else ""


def _rows_of(table: Table) -> RowIds:
    if table.shown_rows is None:
        raise AssertionError("all rows of this table are shown")
    return table.shown_rows
