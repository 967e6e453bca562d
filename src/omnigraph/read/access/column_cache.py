"""The column cache: whole columns of pinned tables in memory, within the cache budget.

Owns what is kept and for how long. An entry belongs to one version of one table, so
it is never wrong; branches that share a version share it, and a version that differs
in some fragments reads only those. A version that was replaced as a whole goes. Of a column
that is too large to be kept, the values of the rows asked for are kept instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.lang.structural import EDGE_COLUMNS
from omnigraph.read.execute.sorting import missing_from
from omnigraph.storage.budget import HEAVY, beside, keep, need
from omnigraph.storage.cache_budget import Cache, CacheBudget, CacheUse, Part, budget
from omnigraph.storage.replaced_versions import Replaced
from omnigraph.storage.tables.fragments import (
    FragmentPart,
    Layout,
    layout_of,
    read_parts,
    read_rows,
)
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
# Columns are read together as long as they are about so large, when a value is so long.
READ_AT_ONCE = 64 * 1024 * 1024
VALUE_BYTES = 32

Key = tuple[str, int, str]
SOME = "@some:"
"""Before the name of a column of which some values are kept."""
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


@dataclass(frozen=True, slots=True)
class _Assembly:
    """How a column is put together: from fragments that a known layout shares, and others.

    ``places`` has for each fragment where its rows begin in the known column, and how many
    they are; None for the next one of those that are read.
    """

    places: tuple[tuple[int, int] | None, ...]
    missing: tuple[FragmentPart, ...]
    shares_any: bool

    @classmethod
    def of(cls, layout: Layout, known: Layout | None) -> _Assembly:
        """The way from a known layout, if there is one."""
        starts: dict[FragmentPart, int] = {}
        if known is not None:
            starts = dict(zip(known.parts, known.bounds(), strict=False))
        places = tuple(
            (starts[part], part.rows) if part in starts else None for part in layout.parts
        )
        missing = tuple(part for part in layout.parts if part not in starts)
        return cls(places, missing, known is None or len(missing) < len(layout.parts))

    def joined(self, known: pa.Array | None, read: Sequence[pa.Array]) -> pa.Array | None:
        """One column; None if it has no fragment."""
        others = iter(read)
        pieces = [
            next(others) if place is None or known is None else known.slice(*place)
            for place in self.places
        ]
        if not pieces:
            return None
        if len(pieces) == 1:
            return pieces[0]
        need(2 * sum(piece.nbytes for piece in pieces))
        return pa.concat_arrays(pieces)


class CacheEntry(Protocol):
    """Whatever a cache keeps."""

    @property
    def size(self) -> int:
        """Bytes held."""


Derived = TypeVar("Derived", bound=CacheEntry)


class ColumnCache:
    """Columns by table, version and name; the least recently used go first."""

    def __init__(self, budget: CacheBudget = budget) -> None:
        self._entries: Cache[Key, CacheEntry] = Cache(
            "columns", _parts, budget, version=lambda key: key[:2], line=_line
        )
        self._found: Cache[tuple[Any, ...], pa.Table] = Cache(
            "lookups", _answer, budget, version=lambda key: key[:2]
        )
        self._replaced = Replaced()

    @property
    def max_bytes(self) -> int:
        """How many bytes it may hold."""
        return self._entries.max_bytes

    def peek(self, table: Table, column: str) -> pa.Array | None:
        """A column that is at hand, or None."""
        found = self._entries.get(_whole(table, column))
        return found.values if isinstance(found, CachedColumn) else None

    def holds(self, table: Table, column: str) -> bool:
        """Whether a whole column is at hand; asking is no use of it."""
        found = self._entries.look(_whole(table, column))
        return isinstance(found, CachedColumn)

    def some(self, table: Table, column: str, row_ids: Positions) -> pa.Array:
        """The values of some rows, which must be distinct and ascending, in their order."""
        held = self.partly(table, column)
        missing = row_ids if held is None else missing_from(row_ids, held.row_ids)
        if len(missing) or held is None:
            (values,) = _read_rows(table, [column], missing)
            held = self._joined(table, column, PartialColumn(missing, values))
        else:
            self._entries.get(_partial(table, column))
        return held.values.take(pa.array(np.searchsorted(held.row_ids, row_ids)))

    def _joined(self, table: Table, column: str, read: PartialColumn) -> PartialColumn:
        """Keep the values of rows that were just read, with those that were known before."""
        known = self.partly(table, column)
        held = read if known is None else known.joined(read)
        self._entries.missed()
        # Joining copies: what became too much is begun anew with what was read last.
        kept = held if held.size <= self.max_bytes // PARTS else read
        self._entries.keep(_partial(table, column), kept)
        return held

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
        return known if known is not None else self._load(table, [column])[column]

    def bring(self, table: Table, names: Iterable[str]) -> None:
        """Have whole columns at hand, those that are not yet by few requests."""
        missing = [name for name in names if not self.holds(table, name)]
        for some in _several(missing, table.pin.row_count):
            self._load(table, some)

    def bring_some(self, table: Table, names: Iterable[str], row_ids: Positions) -> None:
        """Have the values of some rows at hand, those that are not yet by few requests."""
        wanted: dict[bytes, list[str]] = {}
        for name in names:
            held = self.partly(table, name)
            missing = row_ids if held is None else missing_from(row_ids, held.row_ids)
            if len(missing):
                wanted.setdefault(missing.tobytes(), []).append(name)
        for listed, together in wanted.items():
            missing = np.frombuffer(listed, dtype=np.int64)
            for some in _several(together, len(missing)):
                for name, values in zip(some, _read_rows(table, some, missing), strict=True):
                    self._joined(table, name, PartialColumn(missing, values))

    def _load(self, table: Table, names: Sequence[str]) -> dict[str, pa.Array]:
        """Whole columns, read together where they are missing the same fragments."""
        layout = layout_of(table)
        bases = self._nearest(table, frozenset(names))
        # Mostly, all columns of a version that is known have one layout.
        groups: dict[int, tuple[_Assembly, list[str]]] = {}
        for name in names:
            base = bases.get(name)
            known = None if base is None else base.layout
            if id(known) not in groups:
                groups[id(known)] = (_Assembly.of(layout, known), [])
            groups[id(known)][1].append(name)
        loaded: dict[str, pa.Array] = {}
        version = (table.location.uri, table.pin.version)
        for assembly, together in groups.values():
            weight = table.pin.row_count * len(together)
            read = beside(weight, partial(read_parts, table, together, assembly.missing, need))
            for name in together:
                base = bases.get(name)
                known_values = None if base is None else base.values
                join = partial(assembly.joined, known_values, read.pop(name))
                values = beside(table.pin.row_count, join)
                loaded[name] = _empty(table, name) if values is None else values
                keep(int(loaded[name].get_total_buffer_size()))
                self._entries.missed()
                self._entries.keep(_whole(table, name), CachedColumn(layout, loaded[name]))
                self._entries.forget(_partial(table, name))
                self._replaced.missed(version)
        if any(not assembly.shares_any for assembly, _ in groups.values()):
            self._give_up_others(table, layout)
        return loaded

    def found(
        self,
        table: Table,
        column: str,
        texts: pa.Array,
        wanted: Sequence[str],
        find: Callable[[], pa.Table],
    ) -> pa.Table:
        """Rows looked up by a few texts; the same question is not asked twice of a version."""
        key = (*_whole(table, column), tuple(texts.to_pylist()), table.columns, (*wanted,))
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

    def _nearest(self, table: Table, names: frozenset[str]) -> dict[str, CachedColumn]:
        """The same columns of other versions, those used last."""
        uri = table.location.uri
        stored = {table.columns.of(name): name for name in names}
        nearest: dict[str, CachedColumn] = {}
        for key, found in self._entries.newest(lambda key: key[0] == uri and key[2] in stored):
            if isinstance(found, CachedColumn):
                nearest.setdefault(stored[key[2]], found)
        return nearest


def _whole(table: Table, column: str) -> Key:
    """Where a column is kept: under the name that renames leave as it is."""
    return (table.location.uri, table.pin.version, table.columns.of(column))


def _partial(table: Table, column: str) -> Key:
    """Where the values of some rows of a column are kept, beside the whole."""
    return (table.location.uri, table.pin.version, f"{SOME}{table.columns.of(column)}")


def _line(key: Key) -> tuple[str, str] | None:
    """The column of a table: that of the next version is made from the one before."""
    table, _, name = key
    is_column = not name.startswith("@") or name in EDGE_COLUMNS
    return (table, name) if is_column else None


def _parts(held: CacheEntry) -> list[Part]:
    if isinstance(held, CachedColumn):
        # All columns of a version have one layout.
        return [(held, held.size), (held.layout, FRAGMENT_BYTES * len(held.layout.parts))]
    return [(held, held.size)]


def _answer(rows: pa.Table) -> list[Part]:
    return [(rows, LOOKUP_BYTES + int(rows.get_total_buffer_size()))]


def _read_rows(table: Table, names: Sequence[str], row_ids: Positions) -> list[pa.Array]:
    """Columns of some rows, looked up in pieces; what was read is counted."""
    if len(row_ids) <= ROWS_AT_ONCE:
        found = read_rows(table, names, row_ids)
    else:
        starts = range(0, len(row_ids), ROWS_AT_ONCE)
        some = (row_ids[start : start + ROWS_AT_ONCE] for start in starts)
        read = [beside(HEAVY, partial(read_rows, table, names, each)) for each in some]
        found = [pa.concat_arrays(list(pieces)) for pieces in zip(*read, strict=True)]
    keep(sum(int(column.get_total_buffer_size()) for column in found))
    return found


def _several(names: Sequence[str], rows: int) -> Iterator[Sequence[str]]:
    """Columns in groups that are read at once."""
    count = max(1, READ_AT_ONCE // (VALUE_BYTES * max(1, rows)))
    for start in range(0, len(names), count):
        yield names[start : start + count]


def _empty(table: Table, column: str) -> pa.Array:
    if column == "_rowid":
        return pa.array([], pa.uint64())
    return pa.array([], table.schema.field(column).type)


columns = ColumnCache()
