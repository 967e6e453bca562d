"""Topologies by edge table: built once, shared, grown when edges were added, within a budget.

Owns the cache and what makes an entry of another version usable: the fragments both
share, and nodes that have kept their row ids. What it cannot read of another version it
does without. Never answers a query itself.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.read.access.csr import Adjacency, Positions, Topology
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.entity_sets import EntitySet, Many, parts_of
from omnigraph.storage.budget import look, need, took
from omnigraph.storage.cache_budget import (
    VERSIONS_BEHIND,
    Cache,
    CacheBudget,
    CacheUse,
    Part,
    budget,
)
from omnigraph.storage.replaced_versions import Replaced
from omnigraph.storage.tables.fragments import FragmentPart, Layout, layout_of, stream_parts
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.row_ids import RowIds
from omnigraph.storage.tables.row_lookup import find_rows
from omnigraph.storage.tables.table import ROW_ID, Table
from omnigraph.storage.tables.version_diff import fragment_delta

# Beyond so many new rows, starting anew costs less than looking at each of them.
MAX_GROWTH = 50_000
FEW_ENDS = 1_000
# What a fragment takes in a layout.
PART_BYTES = 300
WORKERS = min(4, os.cpu_count() or 1)


Versions = tuple[tuple[int, int], ...]
"""The types of the nodes at an end, each with the version of its table."""
Key = tuple[str, int, Versions, Versions]


@dataclass(frozen=True, slots=True)
class EdgeTables:
    """The tables that a topology is made of."""

    edges: Entities
    sources: Many
    targets: Many

    @property
    def key(self) -> Key:
        """What identifies the topology: the versions of the tables."""
        sources, targets = (
            tuple(
                (part.type.type_id, 0 if part.pinned is None else part.pinned.pin.version)
                for part in parts_of(found)
            )
            for found in (self.sources, self.targets)
        )
        edges = self.edges.table
        return edges.location.uri, edges.pin.version, sources, targets

    @property
    def plain_ends(self) -> tuple[Entities, Entities] | None:
        """The nodes at both ends, if all of those at one end are of one type."""
        if isinstance(self.sources, EntitySet) or isinstance(self.targets, EntitySet):
            return None
        return self.sources, self.targets


@dataclass(frozen=True, slots=True)
class _Ends:
    """The nodes at the ends of edges, whose positions follow from their row ids."""

    tables: tuple[Table, Table]
    row_ids: tuple[RowIds, RowIds]

    @classmethod
    def of(cls, wiring: EdgeTables) -> _Ends | None:
        """None where nodes at an end are of several types: any change of them moves others."""
        ends = wiring.plain_ends
        if ends is None:
            return None
        sources, targets = ends
        return cls((sources.table, targets.table), (sources.row_ids, targets.row_ids))


@dataclass(frozen=True, slots=True)
class _Known:
    """A topology and what it was made of: the tables, not their columns, which have a cache."""

    ends: _Ends | None
    layout: Layout
    topology: Topology

    def moved(self, now: _Ends, before: _Ends, layout: Layout) -> _Known:
        """With the positions that its nodes have now, on the way to another layout."""
        moves = [_moves(*pair) for pair in zip(before.row_ids, now.row_ids, strict=True)]
        # What was derived is of use if every edge is still there.
        whole = _is_grown(self.layout, layout)
        return replace(self, topology=self.topology.moved(*moves, with_derived=whole), ends=now)


class Topologies:
    """The topologies of this process, the least recently used dropped first."""

    def __init__(self, budget: CacheBudget = budget) -> None:
        self._known: Cache[Key, _Known] = Cache(
            "topologies", _weight, budget, version=lambda key: key[:2], line=lambda key: key[0]
        )
        self._replaced = Replaced()

    def peek(self, wiring: EdgeTables) -> Topology | None:
        """A topology that is at hand, or None."""
        known = self._known.get(wiring.key)
        return None if known is None else known.topology

    def get(self, wiring: EdgeTables) -> Topology:
        """The topology of an edge type, made or grown if need be."""
        if not wiring.edges.count:
            nothing = np.empty(0, dtype=np.int64)
            return Topology(nothing, nothing, nothing)
        known = self.peek(wiring)
        if known is not None:
            return known
        self._known.missed()
        layout = layout_of(wiring.edges.table)
        self._replaced.missed(wiring.key)
        base = self._usable(wiring, layout)
        topology = _grown(wiring, layout, base) if base is not None else None
        kept = self._keep(wiring, layout, topology or _built(wiring, layout, base))
        if base is None:
            self._give_up_others(wiring, layout)
        return kept

    def use(self) -> CacheUse:
        """How full it is."""
        return self._known.use()

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def _usable(self, wiring: EdgeTables, layout: Layout) -> _Known | None:
        """An entry of another version whose nodes are the same."""
        uri = wiring.edges.table.location.uri
        now = _Ends.of(wiring)
        for key, known in self._known.newest(lambda key: key[0] == uri)[:2]:
            if now is None or known.ends is None:
                if key[2:] == wiring.key[2:]:
                    return known
                continue
            try:
                if all(map(_keeps_row_ids, known.ends.tables, now.tables)):
                    return known.moved(now, known.ends, layout)
            except StorageError:
                # A cleanup has removed files of that version. If it is the present version that
                # cannot be read, building the topology says so.
                self._known.forget(key)
        return None

    def _give_up_others(self, wiring: EdgeTables, layout: Layout) -> None:
        """Forget those of versions that share no edge, or no node on one side, with this one."""
        now = _Ends.of(wiring)
        others = self._known.newest(lambda key: key[0] == wiring.key[0] and key != wiring.key)
        gone = {
            key
            for key, known in others
            if not (known.layout.shares(layout) and _meet(known.ends, now))
            and self._replaced.gives_up(key)
        }
        self._known.forget_all(lambda key: key in gone)
        edges = wiring.edges.table
        handles.forget(edges.location, {key[1] for key in gone} - {edges.pin.version})

    def _keep(self, wiring: EdgeTables, layout: Layout, made: Topology) -> Topology:
        key, edges = wiring.key, made.rows

        def grow(derived: Adjacency) -> None:
            # Tells the entry by an array of it: one that knew its entry would outlive it.
            part = (derived, derived.size)
            self._known.grow(key, part, lambda known: known.topology.rows is edges)

        topology = made.watched(grow)
        self._known.keep(key, _Known(_Ends.of(wiring), layout, topology))
        # The nodes may have moved on while the edges stay as they are.
        same = [other for other, _ in self._known.newest(lambda one: one[:2] == key[:2])]
        for other in same[1 + VERSIONS_BEHIND :]:
            self._known.forget(other)
        return topology


def _weight(known: _Known) -> list[Part]:
    """The arrays, which the topologies of other versions may have as well, and the layout."""
    made = known.topology
    own = [(array, array.nbytes) for array in (made.sources, made.targets, made.rows)]
    derived = [(found, found.size) for found in made.derived]
    return [*own, *derived, (known.layout, PART_BYTES * len(known.layout.parts))]


def _meet(before: _Ends | None, after: _Ends | None) -> bool:
    if before is None or after is None:
        return False
    return all(old.meet(new) for old, new in zip(before.row_ids, after.row_ids, strict=True))


def _moves(before: RowIds, after: RowIds) -> Positions | None:
    """Where the node of each position is now, -1 for nowhere; None when nothing has moved."""
    if after.begin_with(before):
        return None
    row_ids = before.at(np.arange(before.count))
    held = after.hold(row_ids)
    moves = np.full(before.count, NO_NODE, dtype=np.int64)
    moves[held] = after.positions_of(row_ids[held])
    return moves


def _keeps_row_ids(before: Table, after: Table) -> bool:
    """Whether every node that both versions have has the same row id in both."""
    if before.location != after.location:
        return False
    if before.pin.version == after.pin.version:
        return True
    delta = fragment_delta(before, after)
    if delta.added_rows > MAX_GROWTH:
        return False
    added = delta.rows([ID], with_row_id=True)
    if not added.num_rows:
        return True
    known = find_rows(before, ID, added.column(ID), [ID])
    joined = known.select([ID, ROW_ID]).join(
        added.select([ID, ROW_ID]), ID, right_suffix="_now", join_type="inner"
    )
    same = pc.equal(joined.column(ROW_ID), joined.column(f"{ROW_ID}_now"))
    return bool(pc.all(same, min_count=0).as_py())


def _is_grown(before: Layout, after: Layout) -> bool:
    """Whether there is nothing but more."""
    return after.parts[: len(before.parts)] == before.parts


def _grown(wiring: EdgeTables, layout: Layout, base: _Known) -> Topology | None:
    """The base with more edges, if some were added and nothing else happened."""
    if not _is_grown(base.layout, layout):
        return None
    added = layout.parts[len(base.layout.parts) :]
    if sum(part.rows for part in added) > MAX_GROWTH:
        return None
    if not added:
        return base.topology
    return base.topology.grown(*_ends(wiring, added))


def _built(wiring: EdgeTables, layout: Layout, base: _Known | None) -> Topology:
    """From the edge table; fragments that the base knows are not read again."""
    if base is None:
        return Topology(*_ends(wiring, layout.parts))
    pieces = _cut(base.layout.parts, base.topology)
    missing = [part for part in layout.parts if part not in pieces]
    pieces |= _cut(missing, Topology(*_ends(wiring, missing)))
    nothing = np.empty(0, dtype=np.int64)
    ordered = [pieces[part] for part in layout.parts] or [(nothing, nothing, nothing)]
    return Topology(*(_joined(arrays) for arrays in zip(*ordered, strict=True)))


def _joined(arrays: Sequence[Positions]) -> Positions:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _cut(
    parts: Sequence[FragmentPart], topology: Topology
) -> dict[FragmentPart, tuple[Positions, Positions, Positions]]:
    """The edges of each fragment, which stand in the order of the fragments."""
    bounds = Layout(tuple(parts)).bounds()
    spans = {
        part: slice(start, start + part.rows) for part, start in zip(parts, bounds, strict=False)
    }
    return {
        part: (topology.sources[span], topology.targets[span], topology.rows[span])
        for part, span in spans.items()
    }


def _ends(
    wiring: EdgeTables, parts: Sequence[FragmentPart]
) -> tuple[Positions, Positions, Positions]:
    """Both ends of the edges of some fragments as positions, and the edges' own."""
    table = wiring.edges.table
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing, nothing
    rows = sum(part.rows for part in parts)
    need(3 * 8 * rows)
    ends = Topology(*(took(np.empty(rows, dtype=np.int64)) for _ in range(3)))

    source_of, target_of = (_resolver(nodes, rows) for nodes in (wiring.sources, wiring.targets))

    def resolve(batch: pa.RecordBatch, span: slice) -> None:
        ends.sources[span] = source_of(batch.column(SRC))
        ends.targets[span] = target_of(batch.column(DST))
        ends.rows[span] = batch.column(ROW_ID).to_numpy()

    done = 0
    working: deque[Future[None]] = deque()
    with ThreadPoolExecutor(WORKERS) as pool:
        for batch in stream_parts(table, (SRC, DST, ROW_ID), parts):
            working.append(pool.submit(resolve, batch, slice(done, done + batch.num_rows)))
            done += batch.num_rows
            look()
            # Only so many batches wait: their texts are the larger part of what is held.
            if len(working) > 2 * WORKERS:
                working.popleft().result()
        while working:
            working.popleft().result()
    return ends.sources, ends.targets, ends.rows


def _resolver(nodes: Many, rows: int) -> Callable[[pa.Array], Positions]:
    """What tells the positions of nodes by what edges call them, when so many edges ask."""
    if not isinstance(nodes, EntitySet):
        return _resolver_of_ids(nodes, rows)
    known = {part.type.name: _resolver_of_ids(part, rows) for part in nodes.parts if part.count}
    return lambda named: nodes.resolved(named, lambda part, ids: known[part.type.name](ids))


def _resolver_of_ids(nodes: Entities, rows: int) -> Callable[[pa.Array], Positions]:
    if rows > FEW_ENDS or nodes.count <= rows:
        return nodes.by_id().of

    def found(ids: pa.Array) -> Positions:
        known = nodes.find(ID, ids)
        places = pc.index_in(ids, value_set=known.column(ID).combine_chunks())
        if places.null_count:
            raise AssertionError("an edge leads to no node")
        positions: Positions = nodes.positions_of(known)[places.to_numpy()]
        return positions

    return found


topologies = Topologies()
