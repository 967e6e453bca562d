"""The column cache: whole columns of pinned tables in memory, within the cache budget.

Owns what is kept and for how long. An entry belongs to one version of one table, so
it is never wrong; branches that share a version share it, and a version that differs
in some fragments reads only those. A version that was replaced as a whole goes. Of a column
that is too large to be kept, the values of the rows asked for are kept instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.execute.budget import HEAVY, beside, keep, need
from omnigraph.read.execute.sorting import missing_from
from omnigraph.storage.cache_budget import Cache, CacheBudget, CacheUse, Part, Replaced, budget
from omnigraph.storage.tables.fragments import Layout, layout_of, read_parts, read_rows
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.table import Table

# What an answer of a lookup takes besides its values.
LOOKUP_BYTES = 2_048
# Rows that are kept one by one take so small a part of the cache, for each column.
PARTS = 64
# So many rows are looked up by their ids between two looks.
ROWS_AT_ONCE = 5_000
# What a fragment takes in a layout.
FRAGMENT_BYTES = 300

Key = tuple[str, int, str]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CachedColumn:
    """A column of a version, with the layout its rows are in."""

    layout: Layout
    values: pa.Array

    @property
    def size(self) -> int:
        """Bytes held; a slice holds what it was cut from."""
        return int(self.values.get_total_buffer_size())


@dataclass(frozen=True, slots=True)
class PartialColumn:
    """The values of some rows of a column, by row id in ascending order."""

    row_ids: Positions
    values: pa.Array

    @property
    def size(self) -> int:
        """Bytes held."""
        return int(self.values.nbytes) + self.row_ids.nbytes

    @property
    def width(self) -> float:
        """How many bytes a value has on average."""
        return float(self.values.nbytes) / max(1, len(self.row_ids))

    def joined(self, other: PartialColumn) -> PartialColumn:
        """With the values of other rows."""
        row_ids = np.concatenate([self.row_ids, other.row_ids])
        order = np.argsort(row_ids)
        values = pa.concat_arrays([self.values, other.values]).take(pa.array(order))
        return PartialColumn(row_ids[order], values)


class CacheEntry(Protocol):
    """Whatever a cache keeps."""

    @property
    def size(self) -> int:
        """Bytes held."""


Derived = TypeVar("Derived", bound=CacheEntry)


class ColumnCache:
    """Columns by table, version and name; the least recently used go first."""

    def __init__(self, budget: CacheBudget = budget) -> None:
        self._entries: Cache[Key, CacheEntry] = Cache("columns", _parts, budget)
        self._found: Cache[tuple[Any, ...], pa.Table] = Cache("lookups", _answer, budget)
        self._replaced = Replaced()

    @property
    def max_bytes(self) -> int:
        """How many bytes it may hold."""
        return self._entries.max_bytes

    def peek(self, table: Table, column: str) -> pa.Array | None:
        """A column that is at hand, or None."""
        found = self._entries.get((table.location.uri, table.pin.version, column))
        return found.values if isinstance(found, CachedColumn) else None

    def holds(self, table: Table, column: str) -> bool:
        """Whether a whole column is at hand; asking is no use of it."""
        found = self._entries.look((table.location.uri, table.pin.version, column))
        return isinstance(found, CachedColumn)

    def some(self, table: Table, column: str, row_ids: Positions) -> pa.Array:
        """The values of some rows, which must be distinct and ascending, in their order."""
        key = _partial(table, column)
        held = self.partly(table, column)
        missing = row_ids if held is None else missing_from(row_ids, held.row_ids)
        if len(missing) or held is None:
            read = PartialColumn(missing, self._read_rows(table, column, missing))
            held = read if held is None else held.joined(read)
            self._entries.missed()
            # Joining copies: what became too much is begun anew with what was read last.
            self._entries.keep(key, held if held.size <= self.max_bytes // PARTS else read)
        else:
            self._entries.get(key)
        return held.values.take(pa.array(np.searchsorted(held.row_ids, row_ids)))

    def _read_rows(self, table: Table, column: str, row_ids: Positions) -> pa.Array:
        if len(row_ids) <= ROWS_AT_ONCE:
            found = read_rows(table, column, row_ids)
        else:
            starts = range(0, len(row_ids), ROWS_AT_ONCE)
            some = (row_ids[start : start + ROWS_AT_ONCE] for start in starts)
            read = [beside(HEAVY, partial(read_rows, table, column, each)) for each in some]
            found = pa.concat_arrays(read)
        keep(int(found.get_total_buffer_size()))
        return found

    def partly(self, table: Table, column: str) -> PartialColumn | None:
        """What was read so far of a column that is not at hand."""
        known = self._entries.look(_partial(table, column))
        return known if isinstance(known, PartialColumn) else None

    def derived(self, table: Table, name: str, make: Callable[[], Derived]) -> Derived:
        """Something made of the columns of a version, kept like one of them."""
        key = (table.location.uri, table.pin.version, name)
        known = self._entries.get(key)
        if known is None:
            known = make()
            keep(known.size)
            self._entries.keep(key, known)
        return cast("Derived", known)

    def get(self, table: Table, column: str) -> pa.Array:
        """A whole column, in the order of the table's layout."""
        known = self.peek(table, column)
        if known is not None:
            return known
        self._entries.missed()
        layout = layout_of(table)
        base = self._nearest(table, column)
        rows = table.pin.row_count
        values = beside(rows, partial(_assembled, table, column, layout, base))
        keep(int(values.get_total_buffer_size()))
        key = (table.location.uri, table.pin.version, column)
        self._entries.keep(key, CachedColumn(layout, values))
        self._entries.forget(_partial(table, column))
        self._replaced.missed(key[:2])
        if base is not None and not base.layout.shares(layout):
            self._give_up_others(table, layout)
        return values

    def found(
        self,
        table: Table,
        column: str,
        texts: pa.Array,
        wanted: Sequence[str],
        find: Callable[[], pa.Table],
    ) -> pa.Table:
        """Rows looked up by a few texts; the same question is not asked twice of a version."""
        key = (table.location.uri, table.pin.version, column, tuple(texts.to_pylist()), (*wanted,))
        known = self._found.get(key)
        if known is not None:
            return known
        self._found.missed()
        rows = find()
        keep(int(rows.get_total_buffer_size()))
        self._found.keep(key, rows)
        return rows

    def use(self) -> CacheUse:
        """How full it is, and how often columns and looked-up rows were found in it."""
        columns, rows = self._entries.use(), self._found.use()
        return replace(columns, hits=columns.hits + rows.hits, misses=columns.misses + rows.misses)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._found.clear()

    def _give_up_others(self, table: Table, layout: Layout) -> None:
        """Forget the versions that share nothing with one that was read after them."""
        uri, version = table.location.uri, table.pin.version
        others = self._entries.newest(lambda key: key[0] == uri and key[1] != version)
        gone = {
            key[:2]
            for key, held in others
            if isinstance(held, CachedColumn)
            and not held.layout.shares(layout)
            and self._replaced.gives_up(key[:2])
        }
        self._entries.forget_all(lambda key: key[:2] in gone)
        self._found.forget_all(lambda key: key[:2] in gone)
        handles.forget(table.location, {given_up for _, given_up in gone})

    def _nearest(self, table: Table, column: str) -> CachedColumn | None:
        """The same column of another version, the one used last."""
        uri = table.location.uri
        for _, found in self._entries.newest(lambda key: (key[0], key[2]) == (uri, column)):
            if isinstance(found, CachedColumn):
                return found
        return None


def _partial(table: Table, column: str) -> Key:
    """Where the values of some rows of a column are kept, beside the whole."""
    return (table.location.uri, table.pin.version, f"@some:{column}")


def _parts(held: CacheEntry) -> list[Part]:
    if isinstance(held, CachedColumn):
        # All columns of a version have one layout.
        return [(held, held.size), (held.layout, FRAGMENT_BYTES * len(held.layout.parts))]
    return [(held, held.size)]


def _answer(rows: pa.Table) -> list[Part]:
    return [(rows, LOOKUP_BYTES + int(rows.get_total_buffer_size()))]


def _assembled(table: Table, column: str, layout: Layout, base: CachedColumn | None) -> pa.Array:
    """A column from the fragments that a known version shares, and the others read."""
    shared: dict[object, pa.Array] = {}
    if base is not None:
        bounds = base.layout.bounds()
        shared = {
            part: base.values.slice(start, part.rows)
            for part, start in zip(base.layout.parts, bounds, strict=False)
        }
    missing = [part for part in layout.parts if part not in shared]
    read = dict(zip(missing, read_parts(table, column, missing, need), strict=True))
    pieces = [shared[part] if part in shared else read[part] for part in layout.parts]
    if not pieces:
        return _empty(table, column)
    if len(pieces) == 1:
        return pieces[0]
    need(2 * sum(piece.nbytes for piece in pieces))
    return pa.concat_arrays(pieces)


def _empty(table: Table, column: str) -> pa.Array:
    if column == "_rowid":
        return pa.array([], pa.uint64())
    return pa.array([], table.schema.field(column).type)


columns = ColumnCache()
