"""Lookups: the rows of a table that hold given texts in one of its text columns.

Owns maps in memory from the hashes of a column's texts to the addresses of the rows
that may hold them, so that finding a row reads that row, and finding none reads
nothing, however large a table is and in however many fragments. A map only ever says
"maybe": rows are read before anything is said about them.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.rows.filters import among
from omnigraph.rows.hashing import hash_texts
from omnigraph.storage.cache_budget import Cache, CacheBudget, CacheUse, Part, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.replaced_versions import Replaced
from omnigraph.storage.tables.fragment_map import FileId, FragmentMap
from omnigraph.storage.tables.row_address import whole_fragment
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, is_filterable
from omnigraph.storage.tables.write_rows import WrittenRows

Texts: TypeAlias = pa.Array | pa.ChunkedArray

# Sixteen bytes a row. A larger table is asked through its filter, which an index should serve.
MAX_ROWS = 20_000_000
VERSIONS_KEPT = 8
# An index answers one question sooner than a map is made; several questions repay the map.
PATIENCE = 3
SMALL_TABLE = 100_000
# What a map takes for each fragment it knows, and what a file does whose texts are remembered.
FILE_BYTES = 100
NOTE_BYTES = 1_000
# Of the texts of files that were just written, this part of the budget is remembered, for those
# who publish them in a moment.
NOTES_PART = 16
# A map with so many times as many addresses as there are rows, and some, forgets where rows were.
STALE = 4
SMALL_RUN = 1_000
MAX_NOTES = 256
# Beyond so many texts, reading the column and comparing in memory beats a filter that lists them.
MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class _Column:
    """The maps of one column of one table by version, the newest last."""

    maps: Mapping[int, FragmentMap] = field(default_factory=dict)

    def having(self, version: int, found: FragmentMap, replaced: Container[int]) -> _Column:
        """With one more, without those it has replaced, and without the oldest of too many."""
        maps = {
            known: each
            for known, each in self.maps.items()
            if known != version and known not in replaced
        }
        kept = list(maps.items())[1 - VERSIONS_KEPT :]
        return _Column({**dict(kept), version: found})

    @property
    def parts(self) -> list[Part]:
        """What is held; the versions share almost everything."""
        maps = self.maps.values()
        runs = [
            (run, run.hashes.nbytes + run.addresses.nbytes) for found in maps for run in found.runs
        ]
        return [*runs, *((found.files, FILE_BYTES * len(found.files)) for found in maps)]


ColumnKey = tuple[str, str]
Note = Mapping[str, npt.NDArray[np.uint64]]


class FragmentMaps:
    """The maps of this process, the least recently used column dropped first."""

    def __init__(self, budget: CacheBudget = budget) -> None:
        self._columns: Cache[ColumnKey, _Column] = Cache("ids", lambda held: held.parts, budget)
        self._fresh: Cache[tuple[str, str], Note] = Cache(
            "written_ids", _note_parts, budget, lambda whole: whole // NOTES_PART
        )
        self._replaced = Replaced()
        self._lock = threading.Lock()
        self._asked: dict[ColumnKey, int] = {}

    def get(self, table: Table, column: str) -> FragmentMap | None:
        """The map of a column; None where making one does not pay."""
        asked = self._ask(table, column)
        known = self._columns.get(_key(table, column)) or _Column()
        found = known.maps.get(table.pin.version)
        if found is not None:
            return found
        base = next(reversed(list(known.maps.values())), None)
        if base is None and not _pays(table, column, asked):
            return None
        self._columns.missed()
        self._replaced.missed((*_key(table, column), table.pin.version))
        made = _made(table, column, base or FragmentMap())
        self._keep(table, table.columns.of(column), made)
        return made

    def pays(self, table: Table, column: str) -> bool:
        """Whether to ask the map of a column: it is there, or enough has been asked without it."""
        asked = self._ask(table, column)
        return self._columns.look(_key(table, column)) is not None or asked > PATIENCE

    def use(self) -> CacheUse:
        """How full it is."""
        return self._columns.use()

    def forget(self, location: Location) -> None:
        """Forget the maps of one table."""
        self._columns.forget_all(lambda key: key[0] == location.uri)

    def clear(self) -> None:
        """Forget everything."""
        self._columns.clear()
        self._fresh.clear()
        with self._lock:
            self._asked.clear()

    def note(self, table: Table, written: WrittenRows, texts: pa.Table) -> None:
        """Remember the texts of rows that were just written, so that nobody reads them again.

        ``texts`` holds the text columns of all written rows, in the order of writing.
        """
        hashes = {
            table.columns.of(name): hash_texts(texts.column(name)) for name in texts.column_names
        }
        self.note_hashes(table, written.sizes, hashes)

    def note_hashes(self, table: Table, files: Iterable[tuple[str, int]], hashes: Note) -> None:
        """The same of hashes, by stored column, for files of so many rows each."""
        start, files = 0, tuple(files)
        for path, rows in files:
            part = {name: found[start : start + rows] for name, found in hashes.items()}
            start += rows
            self._fresh.keep((table.location.uri, path), part)
        self._fresh.keep_newest(max(MAX_NOTES, len(files)))

    def mapped(self, table: Table) -> list[str]:
        """The stored columns that a version has a map of, which `learn` would carry over."""
        return list(self._of(table))

    def learn(self, before: Table, after: Table) -> None:
        """Carry the maps of a version over to the next one, if all its new rows were noted."""
        uri, known = before.location.uri, self._of(before)
        if not known:
            return
        try:
            old, new = before.dataset(), after.dataset()
        except StorageError:
            # The version before may be gone by now. A lookup reads then what was not learnt, and
            # says it if the new version is what cannot be opened.
            return
        added = set(new.fragment_ids()) - set(old.fragment_ids())
        fragments = [new.get_fragment(number) for number in added]
        files = frozenset(_file_id(fragment) for fragment in fragments if fragment is not None)
        noted = {number: self._fresh.get((uri, path)) or {} for number, path in files}
        present = frozenset(new.fragment_ids())
        for column, found in known.items():
            if all(column in texts for texts in noted.values()):
                parts = [(texts[column], number) for number, texts in noted.items()]
                made = found.extended(*_addressed(parts), found.files | files)
                if made.size > STALE * after.pin.row_count + SMALL_RUN:
                    made = made.within(present)
                self._keep(after, column, made)

    def _of(self, table: Table) -> dict[str, FragmentMap]:
        uri, version = table.location.uri, table.pin.version
        return {
            column: found
            for (_, column), entry in self._columns.newest(lambda key: key[0] == uri)
            if (found := entry.maps.get(version)) is not None
        }

    def _ask(self, table: Table, column: str) -> int:
        """Count a question about a column; returns how many there were."""
        key = _key(table, column)
        with self._lock:
            self._asked[key] = asked = self._asked.get(key, 0) + 1
        return asked

    def _keep(self, table: Table, stored: str, found: FragmentMap) -> None:
        key = (table.location.uri, stored)
        # Of two threads one may undo what the other keeps, which is then made once more.
        known = self._columns.look(key) or _Column()
        replaced = {
            version
            for version, each in known.maps.items()
            if each.files.isdisjoint(found.files) and self._replaced.gives_up((*key, version))
        }
        self._columns.keep(key, known.having(table.pin.version, found, replaced))


def _key(table: Table, column: str) -> ColumnKey:
    return table.location.uri, table.columns.of(column)


def _note_parts(note: Note) -> list[Part]:
    return [(note, NOTE_BYTES + sum(hashes.nbytes for hashes in note.values()))]


fragment_maps = FragmentMaps()


def find_rows(
    table: Table, column: str, texts: Texts, columns: Sequence[str], *, with_blobs: bool = False
) -> pa.Table:
    """The rows whose text is one of these, with their row ids and addresses."""
    if not table.is_whole:
        found = find_rows(table.stored, column, texts, columns, with_blobs=with_blobs)
        return _shown(table, found)
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    texts = texts.unique().drop_null()
    if not len(texts) or not table.pin.row_count:
        return _nothing(table, columns)
    where: pc.Expression | str | None = None
    if len(texts) <= MAX_LISTED and is_filterable(table):
        where = among(table.columns.of(column), texts)
    fragments: list[lance.LanceFragment] | None = None
    known = fragment_maps.get(table, column)
    if known is not None:
        _, addresses = known.find(hash_texts(texts))
        if not len(addresses):
            return _nothing(table, columns)
        if len(addresses) <= MAX_LISTED:
            # Numbers of our own: Lance goes straight to these rows.
            where = f"_rowaddr in ({', '.join(map(str, addresses.tolist()))})"
        else:
            where, fragments = None, _owners(table, addresses)
    if fragments is not None and not fragments:
        return _nothing(table, columns)  # Lance would take no fragments for all of them
    with storage_errors(f"looking up rows of {table.location}"):
        rows = table.scanner(
            list(dict.fromkeys([*columns, column])),
            where,
            with_row_id=True,
            with_row_address=True,
            fragments=fragments,
            blob_handling="all_binary" if with_blobs else None,
        ).to_table()
    found = rows.filter(pc.is_in(rows.column(column), value_set=texts))
    return found.select([*columns, ROW_ID, ROW_ADDRESS])


def _shown(table: Table, found: pa.Table) -> pa.Table:
    """Those of some rows that a table shows."""
    rows = table.shown_rows
    if rows is None:
        return found
    return found.filter(pa.array(rows.hold(found.column(ROW_ID).to_numpy().astype(np.int64))))


def _owners(table: Table, addresses: npt.NDArray[np.uint64]) -> list[lance.LanceFragment]:
    """The fragments of some addresses; one that is not there any more has no rows."""
    numbers = np.unique(addresses >> np.uint64(32)).tolist()
    found = (table.dataset().get_fragment(number) for number in numbers)
    return [fragment for fragment in found if fragment is not None]


def _nothing(table: Table, columns: Sequence[str]) -> pa.Table:
    schema = table.schema
    fields = [schema.field(name) for name in columns]
    fields += [pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS)]
    return pa.schema(fields).empty_table()


def _pays(table: Table, column: str, asked: int) -> bool:
    if table.pin.row_count > MAX_ROWS:
        return False
    if table.pin.row_count <= SMALL_TABLE or asked > PATIENCE:
        return True
    with storage_errors(f"listing the indexes of {table.location}"):
        indexed = {
            name for found in table.dataset().describe_indices() for name in found.field_names
        }
    return table.columns.of(column) not in indexed


def _made(table: Table, column: str, base: FragmentMap) -> FragmentMap:
    """The map of a version, from that of another one so far as they share fragments."""
    with storage_errors(f"reading the column {column} of {table.location}"):
        present: Mapping[FileId, lance.LanceFragment] = {
            _file_id(fragment): fragment for fragment in table.dataset().get_fragments()
        }
        shared = base.files & present.keys()
        if 2 * len(shared) < len(base.files):
            base = base.within(frozenset(number for number, _ in shared))
        missing = [fragment for key, fragment in present.items() if key not in base.files]
        hashes: list[npt.NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        if missing:
            # Deleted rows too: another version, that of a branch say, has them still.
            scanner = table.scanner(
                [column],
                with_row_id=True,
                include_deleted_rows=True,
                fragments=missing,
                scan_in_order=True,
            )
            hashes += [hash_texts(batch.column(column)) for batch in scanner.to_batches()]
        addresses = [
            whole_fragment(fragment.fragment_id, fragment.physical_rows) for fragment in missing
        ]
    return base.extended(
        np.concatenate(hashes),
        np.concatenate([np.empty(0, dtype=np.uint64), *addresses]),
        frozenset(present),
    )


def _addressed(
    parts: Sequence[tuple[npt.NDArray[np.uint64], int]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The hashes of whole fragments, each with the address of its row."""
    if not parts:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    addresses = [whole_fragment(number, len(hashes)) for hashes, number in parts]
    return np.concatenate([hashes for hashes, _ in parts]), np.concatenate(addresses)


def _file_id(fragment: lance.LanceFragment) -> FileId:
    # Not by `path`: for every path that it hands out, Lance makes a class.
    return fragment.fragment_id, fragment.metadata.files[0]._path  # noqa: SLF001
