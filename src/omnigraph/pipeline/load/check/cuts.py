"""Cutting keys: the distinct keys of some fragments, in a file with a slice per range of hashes.

Owns the hash that decides the range of a key, wherever it is cut, and the form of the file. Keys
are told apart as texts: hashes only put equal ones together. How many ranges there are costs
nothing, since keys are put in the order of their hashes once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.structural import ID
from omnigraph.pipeline.load.check.key_source import KeySource, addresses_in, among
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.rows.hashing import Hashes, hash_texts
from omnigraph.rows.references import referring
from omnigraph.storage.tables.row_address import Addresses
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.change.change_set import EntityType, key_texts

Positions = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

KEY, COUNT, FIRST, LAST, HOLDER = "key", "rows", "first", "last", "holder"
_FIELDS = {
    KEY: pa.string(),
    COUNT: pa.int64(),
    FIRST: pa.uint64(),
    LAST: pa.uint64(),
    HOLDER: pa.string(),
}
# The columns of cuts: who asks for a key, by how many rows; the rows that have one; and the
# rows that hold a tuple, with the id of the first.
ASKED = (KEY, COUNT)
OWNED = (KEY, COUNT, FIRST, LAST)
HELD = (KEY, COUNT, FIRST, HOLDER)
_TOP = np.uint64(32)
_DIGITS = (np.uint64(16), np.uint64(32), np.uint64(48))
# Keys are compared with those that are asked about when there are so many.
_FILTERED_ROWS = 500_000


def cut_schema(columns: tuple[str, ...]) -> pa.Schema:
    """The schema of the slices of a cut."""
    return pa.schema([(name, _FIELDS[name]) for name in columns])


@dataclass(frozen=True, slots=True)
class Cut:
    """A file of distinct keys, and of how many rows they are."""

    name: str
    keys: int
    rows: int


@dataclass(frozen=True, slots=True)
class CutJob:
    """What one file is cut from.

    With ``only`` the keys of those cuts alone matter, but for the keys of rows that are left out
    where these are kept: rows of no ``weight`` and, with ``keeps_left_out``, those left out have
    their keys listed and are not counted.
    """

    area: StagingArea
    stem: str
    source: KeySource
    type: EntityType
    members: tuple[str, ...]
    columns: tuple[str, ...]
    ranges: int
    only: tuple[KeySlices, ...] = ()
    weight: int = 1
    keeps_left_out: bool = False
    as_references: bool = False
    """Whether ids are wanted as edges call nodes that may be of several types."""


def cut(job: CutJob) -> Cut:
    """Read the keys, put them in order and write them down."""
    pieces = list(_pieces(job))
    table = pa.concat_tables([_READ.empty_table(), *pieces])
    keys = table.column(KEY).combine_chunks()
    slices = _slices(job, keys, table)
    name = job.area.write_slices(job.stem, slices)
    return Cut(name, sum(one.num_rows for one in slices), len(keys))


_READ = pa.schema([(KEY, pa.string()), (FIRST, pa.uint64()), (COUNT, pa.int8())])


def _pieces(job: CutJob) -> Iterator[pa.Table]:
    """The keys of rows, their addresses, and whether they count."""
    known = None
    if job.only:
        chunks = [chunk for keys in job.only for chunk in keys.every().chunks]
        known = pa.chunked_array(chunks, pa.string()).combine_chunks()
    gone = addresses_in(job.source.left_out) if job.keeps_left_out else np.empty(0, np.uint64)
    held: list[pa.Table] = []
    for rows in job.source.read(job.members, with_left_out=job.keeps_left_out):
        held.append(_piece(job, rows, gone))
        if sum(piece.num_rows for piece in held) >= _FILTERED_ROWS:
            yield _asked_about(pa.concat_tables(held), known)
            held = []
    if held:
        yield _asked_about(pa.concat_tables(held), known)


def _piece(job: CutJob, rows: pa.Table, gone: Addresses) -> pa.Table:
    keys = key_texts(job.type, job.members, rows)
    if job.as_references:
        keys = referring(keys, job.type.type_id)
    addresses = rows.column(ROW_ADDRESS)
    counts = np.full(rows.num_rows, job.weight, dtype=np.int8)
    if len(gone):
        counts[among(gone, addresses)] = 0
    piece = pa.table({KEY: keys, FIRST: addresses, COUNT: counts}, schema=_READ)
    return piece.filter(keys.is_valid()) if keys.null_count else piece


def _asked_about(piece: pa.Table, known: pa.Array | None) -> pa.Table:
    if known is None:
        return piece
    wanted = pc.is_in(piece.column(KEY), value_set=known)
    return piece.filter(pc.or_(wanted, pc.equal(piece.column(COUNT), 0)))


def _slices(job: CutJob, keys: pa.Array, table: pa.Table) -> list[pa.RecordBatch]:
    """The distinct keys by range, with what is to be known of each."""
    schema = cut_schema(job.columns)
    if not len(keys):
        return [pa.RecordBatch.from_pylist([], schema=schema)] * job.ranges
    order, starts, ranges = ordered(keys, job.ranges)
    ends = np.append(starts[1:], len(order))
    addresses = table.column(FIRST).to_numpy()
    firsts = addresses[order[starts]]
    made: dict[str, object] = {KEY: keys.take(pa.array(order[starts]))}
    if COUNT in schema.names:
        weights = table.column(COUNT).to_numpy()
        made[COUNT] = ends - starts
        if len(weights) and not weights.all():
            made[COUNT] = np.add.reduceat(weights[order].astype(np.int64), starts)
    if FIRST in schema.names:
        made[FIRST] = firsts
    if LAST in schema.names:
        made[LAST] = addresses[order[ends - 1]]
    if HOLDER in schema.names:
        made[HOLDER] = _ids(job.source, firsts)
    batch = pa.RecordBatch.from_pydict({name: made[name] for name in schema.names}, schema)
    bounds = np.searchsorted(ranges[starts], np.arange(job.ranges + 1)).tolist()
    return [batch.slice(start, end - start) for start, end in pairwise(bounds)]


def _ids(source: KeySource, addresses: Addresses) -> pa.Array:
    """The ids of rows of a source, in the order of their addresses."""
    ids, own = [pa.array([], pa.string())], [np.empty(0, np.uint64)]
    for rows in source.read((ID,), with_left_out=True):
        ids += rows.column(ID).chunks
        own.append(rows.column(ROW_ADDRESS).to_numpy())
    # Fragments are read in their order, and so are their rows.
    places = np.searchsorted(np.concatenate(own), addresses)
    return pa.chunked_array(ids).take(pa.array(places)).combine_chunks()


def hash_keys(keys: pa.Array) -> Hashes:
    """What decides the range of a key: the same for equal texts, on every machine."""
    return hash_texts(keys, whole=True)


def range_of(hashes: Hashes, ranges: int) -> Numbers:
    """The range of each hash: the ranges are in the order of the hashes."""
    return (((hashes >> _TOP) * np.uint64(ranges)) >> _TOP).astype(np.int64)


def ordered(keys: pa.Array, ranges: int) -> tuple[Positions, Positions, Numbers]:
    """Rows by range and key: their order, where each distinct key begins, and their ranges.

    Rows of one key stay in their order.
    """
    hashes = hash_keys(keys)
    order = np.arange(len(keys))
    for shift in _DIGITS:
        # Sorting small numbers is a pass over them.
        digits = (hashes >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    # The lowest digit decides nothing: too few keys share all the others.
    places = hashes[order] >> _DIGITS[0]
    order, is_first = _told_apart(keys, order, places)
    return order, np.flatnonzero(is_first), range_of(hashes[order], ranges)


def _told_apart(
    keys: pa.Array, order: Positions, places: Hashes
) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """The order with equal keys together, and where each key is first."""
    is_first = np.ones(len(order), dtype=bool)
    again = np.flatnonzero(places[1:] == places[:-1]) + 1
    if not len(again):
        return order, is_first
    is_first[again] = False
    differs = _differ(keys, order[again], order[again - 1])
    if not differs.any():
        return order, is_first
    # Several keys share a place: those places are put in the order of their keys.
    place = np.cumsum(is_first)
    shared = np.flatnonzero(np.isin(place, place[again[differs]]))
    codes = keys.take(pa.array(order[shared])).dictionary_encode().indices.to_numpy()
    inner = np.lexsort((codes, place[shared]))
    order = order.copy()
    order[shared] = order[shared][inner]
    codes, own = codes[inner], place[shared]
    is_first[shared[1:]] = (codes[1:] != codes[:-1]) | (own[1:] != own[:-1])
    return order, is_first


def _differ(keys: pa.Array, left: Positions, right: Positions) -> npt.NDArray[np.bool_]:
    marks = pc.not_equal(keys.take(pa.array(left)), keys.take(pa.array(right)))
    found: npt.NDArray[np.bool_] = marks.to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True, slots=True)
class KeySlices:
    """Cuts of one key space, by range: a set of keys that can be asked without being held."""

    area: StagingArea
    listed: str
    columns: tuple[str, ...]
    ranges: int
    count: int
    """How many keys there are, those of several files as often."""

    @property
    def names(self) -> tuple[str, ...]:
        """The files."""
        found: tuple[str, ...] = self.area.kept(self.listed)
        return found

    def read(self, number: int) -> list[pa.RecordBatch | None]:
        """The keys of a range, file by file."""
        return self.area.read_slices(self.names, number, cut_schema(self.columns))

    def keys(self, number: int) -> pa.ChunkedArray:
        """The keys of a range alone; one that several files have is there as often."""
        found = [batch.column(KEY) for batch in self.read(number) if batch is not None]
        return pa.chunked_array(found, pa.string())

    def every(self) -> pa.ChunkedArray:
        """The keys of all ranges: for a few."""
        chunks = [chunk for number in range(self.ranges) for chunk in self.keys(number).chunks]
        return pa.chunked_array(chunks, pa.string())

    def has(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Which texts are among the keys; one range is held at a time."""
        marks = np.zeros(len(keys), dtype=bool)
        asked = range_of(hash_keys(keys), self.ranges) if len(keys) else np.empty(0, np.int64)
        for number in np.unique(asked).tolist():
            at = np.flatnonzero(asked == number)
            own = self.keys(number).combine_chunks()
            found = pc.is_in(keys.take(pa.array(at)), value_set=own, skip_nulls=True)
            marks[at] = found.to_numpy(zero_copy_only=False)
        return marks
