"""The column cache: whole columns of pinned tables in memory, within a bound of bytes.

Owns what is kept and for how long. An entry belongs to one version of one table, so
it is never wrong; branches that share a version share it, and a version that differs
in some fragments reads only those. Of a column that is too large to be kept, the
values of the rows asked for are kept instead.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.sorting import missing_from
from omnigraph.storage.layout import Layout, layout_of, read_parts, read_rows
from omnigraph.storage.table import Table

CACHE_BYTES = int(os.environ.get("OMNIGRAPH_COLUMN_CACHE_BYTES") or 512 * 2**20)

LOOKUPS_KEPT = 4_096
# Rows that are kept one by one take so small a part of the cache, for each column.
PARTS = 64

Key = tuple[str, int, str]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CachedColumn:
    """A column of a version, with the layout its rows are in."""

    layout: Layout
    values: pa.Array

    @property
    def size(self) -> int:
        """Bytes held."""
        return int(self.values.nbytes)


@dataclass(frozen=True, slots=True)
class SomeValues:
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

    def joined(self, other: SomeValues) -> SomeValues:
        """With the values of other rows."""
        row_ids = np.concatenate([self.row_ids, other.row_ids])
        order = np.argsort(row_ids)
        values = pa.concat_arrays([self.values, other.values]).take(pa.array(order))
        return SomeValues(row_ids[order], values)


class Held(Protocol):
    """Whatever a cache keeps."""

    @property
    def size(self) -> int:
        """Bytes held."""


Derived = TypeVar("Derived", bound=Held)


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How full a cache is, and how often it helped."""

    entries: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int


class ColumnCache:
    """Columns by table, version and name; the least recently used go first."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, Held] = OrderedDict()
        self._found: OrderedDict[tuple[Any, ...], pa.Table] = OrderedDict()
        self._bytes = 0
        self._hits = 0
        self._misses = 0

    def peek(self, table: Table, column: str) -> pa.Array | None:
        """A column that is at hand, or None."""
        key = (table.location.uri, table.pin.version, column)
        with self._lock:
            found = self._entries.get(key)
            if isinstance(found, CachedColumn):
                self._entries.move_to_end(key)
                self._hits += 1
                return found.values
        return None

    def holds(self, table: Table, column: str) -> bool:
        """Whether a whole column is at hand; asking is no use of it."""
        with self._lock:
            found = self._entries.get((table.location.uri, table.pin.version, column))
        return isinstance(found, CachedColumn)

    def some(self, table: Table, column: str, row_ids: Positions) -> pa.Array:
        """The values of some rows, which must be distinct and ascending, in their order."""
        key = (table.location.uri, table.pin.version, column)
        held = self.partly(table, column)
        missing = row_ids if held is None else missing_from(row_ids, held.row_ids)
        if len(missing) or held is None:
            read = SomeValues(missing, read_rows(table, column, missing))
            held = read if held is None else held.joined(read)
            self._misses += 1
            # Joining copies: what became too much is begun anew with what was read last.
            self._keep(key, held if held.size <= self.max_bytes // PARTS else read)
        else:
            self._hits += 1
        return held.values.take(pa.array(np.searchsorted(held.row_ids, row_ids)))

    def partly(self, table: Table, column: str) -> SomeValues | None:
        """What was read so far of a column that is not at hand."""
        with self._lock:
            known = self._entries.get((table.location.uri, table.pin.version, column))
        return known if isinstance(known, SomeValues) else None

    def derived(self, table: Table, name: str, make: Callable[[], Derived]) -> Derived:
        """Something made of the columns of a version, kept like one of them."""
        key = (table.location.uri, table.pin.version, name)
        with self._lock:
            known = self._entries.get(key)
            if known is not None:
                self._entries.move_to_end(key)
        if known is None:
            known = make()
            self._keep(key, known)
        return cast("Derived", known)

    def get(self, table: Table, column: str) -> pa.Array:
        """A whole column, in the order of the table's layout."""
        known = self.peek(table, column)
        if known is not None:
            return known
        layout = layout_of(table)
        base = self._nearest(table, column)
        values = _assembled(table, column, layout, base)
        self._keep((table.location.uri, table.pin.version, column), CachedColumn(layout, values))
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
        with self._lock:
            known = self._found.get(key)
            if known is not None:
                self._found.move_to_end(key)
                self._hits += 1
                return known
        rows = find()
        with self._lock:
            self._misses += 1
            self._found[key] = rows
            while len(self._found) > LOOKUPS_KEPT:
                self._found.popitem(last=False)
        return rows

    def use(self) -> CacheUse:
        """How full it is."""
        with self._lock:
            return CacheUse(
                len(self._entries), self._bytes, self.max_bytes, self._hits, self._misses
            )

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._found.clear()
            self._bytes = 0

    def _nearest(self, table: Table, column: str) -> CachedColumn | None:
        """The same column of another version, the one used last."""
        with self._lock:
            self._misses += 1
            for (uri, _, name), found in reversed(self._entries.items()):
                if (uri, name) == (table.location.uri, column) and isinstance(found, CachedColumn):
                    return found
        return None

    def _keep(self, key: Key, found: Held) -> None:
        if found.size > self.max_bytes:
            return
        with self._lock:
            replaced = self._entries.pop(key, None)
            self._bytes += found.size - (replaced.size if replaced else 0)
            self._entries[key] = found
            while self._bytes > self.max_bytes:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.size


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
    read = dict(zip(missing, read_parts(table, column, missing), strict=True))
    pieces = [shared[part] if part in shared else read[part] for part in layout.parts]
    if not pieces:
        return _empty(table, column)
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _empty(table: Table, column: str) -> pa.Array:
    if column == "_rowid":
        return pa.array([], pa.uint64())
    return pa.array([], table.schema.field(column).type)


columns = ColumnCache()
