"""Ranges: what one task decides about the keys of one range of hashes, wherever they were cut.

Owns the decisions of each kind of key: which repeat, which are stored, which ends are nowhere and
which sources have a wrong number of edges. A decision names keys by the cut that has them; which
rows these are is found out where the cut was made. Never sees more than one range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import ID
from omnigraph.pipeline.load.check.cuts import (
    COUNT,
    FIRST,
    HOLDER,
    KEY,
    LAST,
    KeySlices,
    cut_schema,
)
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.rules.edges import miscounted
from omnigraph.write.rules.key_finder import HeldKeys

Codes = npt.NDArray[np.int64]
EDGES = "edges"

REPEATED = pa.schema(
    [(KEY, pa.string()), (FIRST, pa.uint64()), (LAST, pa.uint64()), (HOLDER, pa.string())]
)
EXISTING = pa.schema([(KEY, pa.string()), (FIRST, pa.uint64())])
REPLACED = pa.schema([(ROW_ADDRESS, pa.uint64()), (ID, pa.string())])
CLASHING = pa.schema([(KEY, pa.string()), (HOLDER, pa.string())])
LOST = pa.schema([(KEY, pa.string())])
MISCOUNTED = pa.schema([(KEY, pa.string()), (EDGES, pa.int64())])


@dataclass(frozen=True, slots=True)
class Found:
    """What a range has found of one kind: a file with a slice per cut, and which have any.

    ``count`` counts what is found, ``rows`` the rows that it is about.
    """

    kind: str
    file: str
    cuts: frozenset[int]
    count: int


class Decision(Protocol):
    """What is to be decided about every range of some keys."""

    def decide(self, area: StagingArea, number: int) -> Iterator[Found | None]:
        """Look at one range."""


@dataclass(frozen=True, slots=True)
class RangeJob:
    """One range of a decision, which is kept in the staging area: all its tasks read it there."""

    area: StagingArea
    decision: str
    number: int


def decide(job: RangeJob) -> list[Found]:
    """What a task does."""
    decision: Decision = job.area.kept(job.decision)
    return [one for one in decision.decide(job.area, job.number) if one is not None]


@dataclass(frozen=True, slots=True)
class _Entries:
    """The keys of several cuts, one under the other, and which cut each is of."""

    table: pa.Table
    cuts: Codes

    @classmethod
    def of(cls, keys: KeySlices, number: int) -> _Entries:
        batches = keys.read(number)
        sizes = [0 if one is None else one.num_rows for one in batches]
        some = [one for one in batches if one is not None]
        table = pa.Table.from_batches(some, cut_schema(keys.columns))
        return cls(table, np.repeat(np.arange(len(batches)), sizes))

    @property
    def keys(self) -> pa.ChunkedArray:
        """The keys."""
        return self.table.column(KEY)

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """A column of numbers."""
        values: npt.NDArray[np.int64] = self.table.column(name).to_numpy()
        return values.astype(np.int64, copy=False)

    def coded(self) -> tuple[Codes, int]:
        """Equal numbers for equal keys, and how many there are."""
        encoded = self.keys.dictionary_encode().unify_dictionaries().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0)
        return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _found(
    area: StagingArea,
    kind: str,
    rows: pa.Table,
    cuts: Codes,
    every: int,
    *,
    count: int | None = None,
) -> Found | None:
    """Keep what was found, cut by cut; it comes in their order."""
    if not rows.num_rows:
        return None
    batch = rows.combine_chunks().to_batches()[0]
    bounds = np.searchsorted(cuts, np.arange(every + 1)).tolist()
    slices = [batch.slice(start, end - start) for start, end in pairwise(bounds)]
    name = area.write_slices("found", slices)
    total = rows.num_rows if count is None else count
    return Found(kind, name, frozenset(np.unique(cuts).tolist()), total)


@dataclass(frozen=True, slots=True)
class IdDecision:
    """The ids of a type: which are there twice, which are stored, and which rows are replaced."""

    name: str
    keeps_last: bool
    staged: KeySlices
    stored: KeySlices | None

    def decide(self, area: StagingArea, number: int) -> Iterator[Found | None]:
        """Look at one range."""
        own = _Entries.of(self.staged, number)
        if not own.table.num_rows:
            return
        again = _repeated(own)
        yield _found(
            area,
            f"repeats:{self.name}",
            again.rows,
            again.cuts,
            _count(self.staged),
            count=again.count,
        )
        if self.stored is None:
            return
        stored = _Entries.of(self.stored, number)
        kept = own.table.column(LAST if self.keeps_last else FIRST)
        places = pc.index_in(stored.keys, value_set=own.keys.combine_chunks())
        hit = places.is_valid()
        replaced = stored.table.filter(hit).select([FIRST, KEY])
        yield _found(
            area,
            f"replaced:{self.name}",
            replaced.rename_columns(REPLACED.names).cast(REPLACED),
            stored.cuts[hit.to_numpy()],
            _count(self.stored),
        )
        if not replaced.num_rows:
            return
        # Of the rows of one id the kept one is told: its cut has it.
        known = pc.is_in(own.keys, value_set=replaced.column(KEY).combine_chunks()).to_numpy()
        if again.count:
            column = again.last if self.keeps_last else again.first
            known &= own.numbers(LAST if self.keeps_last else FIRST) == column
        rows = pa.table({KEY: own.keys, FIRST: kept}).filter(pa.array(known)).cast(EXISTING)
        yield _found(area, f"exists:{self.name}", rows, own.cuts[known], _count(self.staged))


def _count(keys: KeySlices | None) -> int:
    return 0 if keys is None else len(keys.names)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """The keys that several rows have, and how many rows are more than one of each.

    ``first`` and ``last`` are those of every entry's key.
    """

    rows: pa.Table
    cuts: Codes
    count: int
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]


def _repeated(own: _Entries) -> _Repeated:
    codes, distinct = own.coded()
    totals = np.bincount(codes, own.numbers(COUNT), distinct).astype(np.int64)
    first = np.full(distinct, np.iinfo(np.int64).max)
    np.minimum.at(first, codes, own.numbers(FIRST))
    last = np.zeros(distinct, dtype=np.int64)
    if LAST in own.table.column_names:
        np.maximum.at(last, codes, own.numbers(LAST))
    several = totals[codes] > 1
    at = np.flatnonzero(several)
    holders = own.keys.take(pa.array(at))
    if HOLDER in own.table.column_names and len(at):
        # The entry that has the first row of a key has its holder.
        holder = np.zeros(distinct, dtype=np.int64)
        is_first = np.flatnonzero(own.numbers(FIRST) == first[codes])
        holder[codes[is_first]] = is_first
        holders = own.table.column(HOLDER).take(pa.array(holder[codes[at]]))
    rows = pa.table(
        {
            KEY: own.keys.take(pa.array(at)),
            FIRST: first[codes[at]].astype(np.uint64),
            LAST: last[codes[at]].astype(np.uint64),
            HOLDER: holders,
        },
        schema=REPEATED,
    )
    more = int((totals[totals > 1] - 1).sum())
    return _Repeated(rows, own.cuts[at], more, first[codes], last[codes])


@dataclass(frozen=True, slots=True)
class TupleDecision:
    """The tuples of a rule: which are there twice, and which are held by stored rows."""

    name: str
    staged: KeySlices
    stored: KeySlices | None

    def decide(self, area: StagingArea, number: int) -> Iterator[Found | None]:
        """Look at one range."""
        own = _Entries.of(self.staged, number)
        if not own.table.num_rows:
            return
        again = _repeated(own)
        every = _count(self.staged)
        yield _found(area, f"repeats:{self.name}", again.rows, again.cuts, every, count=again.count)
        if self.stored is None:
            return
        stored = _Entries.of(self.stored, number)
        places = pc.index_in(own.keys, value_set=stored.keys.combine_chunks())
        hit = places.is_valid()
        holders = stored.table.column(HOLDER).take(places.filter(hit))
        rows = pa.table({KEY: own.keys.filter(hit), HOLDER: holders}, schema=CLASHING)
        yield _found(area, f"clashes:{self.name}", rows, own.cuts[hit.to_numpy()], every)


@dataclass(frozen=True, slots=True)
class AskedEnds:
    """One end of the edges of a type; of the stored ones, when ``strays``."""

    name: str
    keys: KeySlices


@dataclass(frozen=True, slots=True)
class Degrees:
    """The edges of a type by source: staged ones, and the stored ones that stay.

    With ``of_nodes`` only sources that will be there matter.
    """

    edge: EdgeType
    staged: KeySlices
    stored: KeySlices | None
    of_nodes: bool


@dataclass(frozen=True, slots=True)
class EndDecision:
    """What leads to the nodes of a type: ends that are nowhere, and how many edges nodes have."""

    nodes: tuple[KeySlices, ...]
    asked: tuple[AskedEnds, ...]
    degrees: tuple[Degrees, ...]

    def decide(self, area: StagingArea, number: int) -> Iterator[Found | None]:
        """Look at one range."""
        chunks = [chunk for keys in self.nodes for chunk in keys.keys(number).chunks]
        known = pa.chunked_array(chunks, pa.string()).combine_chunks()
        for asked in self.asked:
            ends = _Entries.of(asked.keys, number)
            lost = pc.invert(pc.is_in(ends.keys, value_set=known))
            rows = pa.table({KEY: ends.keys.filter(lost)}, schema=LOST)
            cuts = ends.cuts[lost.to_numpy()]
            yield _found(area, f"ends:{asked.name}", rows, cuts, _count(asked.keys))
        for degrees in self.degrees:
            yield from _miscounted(area, degrees, number, known if degrees.of_nodes else None)


def _miscounted(
    area: StagingArea, degrees: Degrees, number: int, nodes: pa.Array | None
) -> Iterator[Found | None]:
    """The sources with a wrong number of edges, and those of them that no staged edge names."""
    edge = degrees.edge
    staged = _Entries.of(degrees.staged, number)
    counted = [_degrees(staged)]
    sources = staged.keys.combine_chunks()
    if degrees.stored is not None:
        stored = _Entries.of(degrees.stored, number)
        counted.append(_degrees(stored))
        if edge.min_out:
            sources = pa.concat_arrays([sources, stored.keys.combine_chunks()])
    wrong = miscounted(edge, sources.unique(), counted).rename_columns(MISCOUNTED.names)
    if nodes is not None:
        wrong = wrong.filter(pc.is_in(wrong.column(KEY), value_set=nodes))
    places = pc.index_in(staged.keys, value_set=wrong.column(KEY).combine_chunks())
    hit = places.is_valid()
    named = wrong.take(places.filter(hit).combine_chunks()).cast(MISCOUNTED)
    yield _found(
        area, f"card:{edge.name}", named, staged.cuts[hit.to_numpy()], _count(degrees.staged)
    )
    is_stray = pc.invert(pc.is_in(wrong.column(KEY), value_set=staged.keys.combine_chunks()))
    strays = wrong.filter(is_stray).cast(MISCOUNTED)
    yield _found(area, f"card-strays:{edge.name}", strays, np.zeros(strays.num_rows, np.int64), 1)


def _degrees(entries: _Entries) -> HeldKeys:
    return HeldKeys(entries.keys.combine_chunks(), weights=entries.numbers(COUNT))


def kinds_of(found: Sequence[Found]) -> dict[str, list[Found]]:
    """What all ranges have found, kind by kind."""
    kinds: dict[str, list[Found]] = {}
    for one in found:
        kinds.setdefault(one.kind, []).append(one)
    return kinds
