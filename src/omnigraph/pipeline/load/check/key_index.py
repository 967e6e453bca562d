"""Directories: every distinct key of some rows, in a file that all tasks can ask.

Owns making one and asking it. A directory says exactly whether a key is in it and which row
has it, and its making finds the keys that occur more than once. When there are too many keys
for one file, each part holds those of a range of hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.rows.hashing import Hashes, hash_texts
from omnigraph.rows.text_positions import NOWHERE, TextIndex, index_texts
from omnigraph.storage.tables.fragments import FragmentPart, stream_parts
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.write.change.change_set import EntityType, key_texts
from omnigraph.write.rules.key_finder import Counts, Mask

Rows = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]

# A part of so many keys takes about half a gigabyte to make.
PART_KEYS = 6_000_000
_SALTS = 8
_TOP = 64
_SCHEMA = pa.schema(
    [
        ("text", pa.large_string()),
        ("address", pa.uint64()),
        ("count", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where keys are read: some fragments of a table, without the rows left out of them.

    ``left_out`` has the addresses of those rows in order. Rows without weight are found and not
    counted.
    """

    table: Table
    parts: tuple[FragmentPart, ...]
    left_out: Addresses = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    weight: int = 1

    @property
    def rows(self) -> int:
        """How many rows there are, those left out included."""
        return sum(part.rows for part in self.parts)

    def each(self) -> Iterator[KeySource]:
        """The same source, fragment by fragment."""
        for part in self.parts:
            own = fragments_of(self.left_out) == part.number
            yield KeySource(self.table, (part,), self.left_out[own])

    def read(self, columns: tuple[str, ...], *, with_row_id: bool = False) -> Iterator[pa.Table]:
        """Columns, batch by batch, with the address of every row."""
        extra = (ROW_ADDRESS, ROW_ID) if with_row_id else (ROW_ADDRESS,)
        for batch in stream_parts(self.table, (*columns, *extra), self.parts):
            table = pa.Table.from_batches([batch])
            if len(self.left_out):
                table = table.filter(pa.array(~self.leaves_out(table.column(ROW_ADDRESS))))
            yield table

    def leaves_out(self, addresses: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Which rows are none of the source's any more."""
        wanted = addresses.to_numpy().astype(np.uint64)
        if not len(self.left_out):
            return np.zeros(len(wanted), dtype=bool)
        places = np.searchsorted(self.left_out, wanted).clip(max=len(self.left_out) - 1)
        marks: npt.NDArray[np.bool_] = self.left_out[places] == wanted
        return marks


@dataclass(frozen=True, slots=True)
class DirectoryJob:
    """What one part of a directory is made of; ``keeps_last`` row of each key, or its first."""

    name: str
    area: StagingArea
    type: EntityType
    members: tuple[str, ...]
    sources: tuple[KeySource, ...]
    part: int = 0
    parts: int = 1
    keeps_last: bool = False
    with_repeats: bool = True


@dataclass(frozen=True, slots=True)
class DirectoryPart:
    """One part: its files, how many keys it has, and the rows that repeat a key.

    ``repeats`` names a table of the rows beside the kept one: their address and the kept
    one's.
    """

    keys: str
    slots: str
    salt: int
    count: int
    repeats: str | None = None
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """A directory that can be asked, wherever the staging area can be reached."""

    area: StagingArea
    parts: tuple[DirectoryPart, ...]

    @property
    def repeated(self) -> int:
        """How many rows repeat a key."""
        return sum(part.repeated for part in self.parts)

    def has(self, keys: pa.Array) -> Mask:
        """Whether each text is one of the keys."""
        known = np.zeros(len(keys), dtype=bool)
        for part in self.parts:
            known |= open_part(self.area, part).index.find(keys) != NOWHERE
        return known

    def find(self, keys: pa.Array) -> pa.Table:
        """What is known of each text that is one of the keys, and which of the texts it is."""
        found = []
        for part in self.parts:
            opened = open_part(self.area, part)
            places = opened.index.find(keys)
            at = np.flatnonzero(places != NOWHERE)
            rows = opened.keys.take(pa.array(places[at]))
            found.append(rows.append_column("at", pa.array(at)))
        return pa.concat_tables(found)

    def count(self, keys: pa.Array) -> Counts:
        """How many rows have each text as their key, those without weight not counted."""
        found = self.find(keys)
        counts = np.zeros(len(keys), dtype=np.int64)
        counts[found.column("at").to_numpy()] = found.column("count").to_numpy()
        return counts

    def repeats(self) -> pa.Table:
        """The rows that repeat a key: their address, and that of the kept row."""
        names = [part.repeats for part in self.parts if part.repeats is not None]
        return pa.concat_tables([_REPEATS.empty_table(), *map(self.area.read_table, names)])

    def later(self) -> pa.Table:
        """The rows whose key an earlier one has, if it is the last that is kept."""
        repeats = self.repeats()
        others = repeats.column("address").to_numpy()
        lasts, groups = np.unique(repeats.column("kept").to_numpy(), return_inverse=True)
        firsts = np.full(len(lasts), np.iinfo(np.uint64).max)
        np.minimum.at(firsts, groups, others)
        later = np.concatenate([others[~np.isin(others, firsts)], lasts])
        return pa.table({ROW_ADDRESS: np.sort(later)})


_REPEATS = pa.schema([("address", pa.uint64()), ("kept", pa.uint64())])


@dataclass(frozen=True, slots=True)
class _Opened:
    keys: pa.Table
    index: TextIndex


@lru_cache(maxsize=16)
def open_part(area: StagingArea, part: DirectoryPart) -> _Opened:
    """A part as this process sees it: mapped, and read as far as it is asked."""
    keys = area.read_table(part.keys)
    texts = keys.column("text")
    column = texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
    return _Opened(keys, TextIndex(column, area.read_array(part.slots), part.salt))


def parts_for(rows: int) -> int:
    """Into how many parts a directory of so many rows is made."""
    return max(1, -(-rows // PART_KEYS))


def make_part(job: DirectoryJob) -> DirectoryPart:
    """Read the keys and write one part of the directory."""
    texts, addresses, weights = _keys(job)
    for salt in range(_SALTS):
        hashes = hash_texts(texts, salt=salt, whole=True)
        groups = _grouped(texts, hashes, weights, keeps_last=job.keeps_last)
        if groups is None:
            continue
        kept = groups.kept
        distinct = texts.take(pa.array(kept))
        index = index_texts(distinct, hashes[kept], salt)
        if index is not None:
            return _written(job, index, addresses, groups)
    raise AssertionError("no salt tells the keys apart")


def _keys(
    job: DirectoryJob,
) -> tuple[pa.Array, Addresses, npt.NDArray[np.int64]]:
    """The keys of this part, the addresses of their rows in order, and what each counts."""
    texts, addresses = [pa.array([], pa.large_string())], [np.empty(0, dtype=np.uint64)]
    weights = [np.empty(0, dtype=np.int64)]
    for source in job.sources:
        for rows in source.read(job.members):
            keys = key_texts(job.type, job.members, rows)
            chosen = _in_part(job, keys)
            texts.append(keys.filter(chosen).cast(pa.large_string()))
            addresses.append(rows.column(ROW_ADDRESS).filter(chosen).to_numpy().astype(np.uint64))
            weights.append(np.full(len(texts[-1]), source.weight, dtype=np.int64))
    return pa.concat_arrays(texts), np.concatenate(addresses), np.concatenate(weights)


def _in_part(job: DirectoryJob, keys: pa.Array) -> pa.Array:
    valid = keys.is_valid()
    if job.parts == 1:
        return valid
    share = hash_texts(keys, salt=_TOP, whole=True) % np.uint64(job.parts)
    return pc.and_(valid, pa.array(share == job.part))


@dataclass(frozen=True, slots=True)
class _Groups:
    """The kept row of each key, how many rows have it, and the others with their kept row."""

    kept: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    kept_of_others: npt.NDArray[np.int64]


def _grouped(
    texts: pa.Array, hashes: Hashes, weights: npt.NDArray[np.int64], *, keeps_last: bool
) -> _Groups | None:
    """Rows by key; None when two keys share a hash, so that another salt is needed."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = ordered[1:] == ordered[:-1]
    again = np.flatnonzero(same)
    if len(again):
        equal = pc.equal(texts.take(pa.array(order[again])), texts.take(pa.array(order[again - 1])))
        if not pc.all(equal).as_py():
            return None
    starts = np.flatnonzero(~same)
    sizes = np.diff(np.append(starts, len(order)))
    counts = np.add.reduceat(weights[order], starts) if len(starts) else sizes
    # Stable: within a group the rows stand in their own order.
    chosen = starts + sizes - 1 if keeps_last else starts
    others = np.ones(len(order), dtype=bool)
    others[chosen] = False
    group = np.cumsum(~same) - 1
    return _Groups(order[chosen], counts, order[others], order[chosen][group[others]])


def _written(
    job: DirectoryJob, index: TextIndex, addresses: Addresses, groups: _Groups
) -> DirectoryPart:
    columns = {"text": index.texts, "address": addresses[groups.kept], "count": groups.counts}
    keys = pa.table(columns, schema=_SCHEMA).combine_chunks()
    repeats = None
    if len(groups.others) and job.with_repeats:
        order = np.argsort(groups.others, kind="stable")
        table = pa.table(
            {
                "address": addresses[groups.others[order]],
                "kept": addresses[groups.kept_of_others[order]],
            },
            schema=_REPEATS,
        )
        repeats = job.area.write_table(f"{job.name}-repeats", table)
    return DirectoryPart(
        job.area.write_table(f"{job.name}-keys", keys),
        job.area.write_array(f"{job.name}-slots", index.slots),
        index.salt,
        len(groups.kept),
        repeats,
        len(groups.others),
    )
