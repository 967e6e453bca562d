"""Expanding: from nodes to their neighbours, through the topology or through the edge table.

Owns single hops and walks of several: every node whose distance from a start lies within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.read.access.csr import Adjacency, Topology, Way, adjacency
from omnigraph.read.access.entities import Entities, Positions
from omnigraph.read.access.entity_sets import EntitySet, Many
from omnigraph.read.access.topology_cache import EdgeTables
from omnigraph.read.execute.bindings import Mask
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.sorting import distinct, missing_from
from omnigraph.read.plan.physical import EdgeAccess, Strategy
from omnigraph.storage.budget import look, need, took
from omnigraph.storage.tables.table import ROW_ID

# Marks of visited nodes that one round may hold: one byte per start and node.
MAX_MARKS = 64 * 2**20
# Beyond this part of all marks, counting them off beats sorting them.
DENSE = 1 / 16
# Room for the positions of one start among the marks of many.
SPACE = 1 << 40


@dataclass(frozen=True, slots=True)
class ExpandedRows:
    """Every step from some nodes: which of them it is of, where it leads, by which edge."""

    origins: Positions
    targets: Positions
    edges: Positions | None = None
    are_whole: bool = False
    """Whether they are every edge there is, from all nodes in order."""


class Hops(Protocol):
    """Steps from some nodes to others, whose positions are told among those at their own end."""

    @property
    def edge_count(self) -> int:
        """How many edges there are."""

    @property
    def extent(self) -> int:
        """One more than the largest position that a step leads from or to."""

    @property
    def may_loop(self) -> bool:
        """Whether a node may be its own neighbour."""

    @property
    def turned(self) -> Hops:
        """The same steps, from where they lead to."""

    def strategy(self, sources: Positions) -> Strategy:
        """How a hop from these nodes is made."""

    def degrees(self, sources: Positions) -> Positions:
        """How many neighbours each node has."""

    def from_(self, sources: Positions) -> ExpandedRows:
        """Every step from these nodes."""

    def connects(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each pair is connected by a step."""


@dataclass(frozen=True)
class EdgeExpansion:
    """Ways along one edge type in one direction; folded unless the edges themselves matter."""

    ctx: ReadContext
    edge: EdgeType
    way: Way
    path: EdgeAccess
    with_edges: bool = False

    @property
    def turned(self) -> EdgeExpansion:
        """The same ways, walked from where they lead to."""
        ways: dict[Way, Way] = {"out": "in", "in": "out", "both": "both"}
        return replace(self, way=ways[self.way])

    @cached_property
    def wiring(self) -> EdgeTables:
        """The tables concerned."""
        return self.ctx.wiring(self.edge)

    @property
    def starts(self) -> Many:
        """What steps are made from."""
        return self.wiring.targets if self.way == "in" else self.wiring.sources

    @property
    def ends(self) -> Many:
        """What steps lead to."""
        return self.wiring.sources if self.way == "in" else self.wiring.targets

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return self.wiring.edges.count

    @property
    def extent(self) -> int:
        """One more than the largest position that a step leads from or to."""
        return self.adjacency().extent

    @cached_property
    def topology(self) -> Topology:
        """All edges of the type, built if need be."""
        return self.ctx.topologies.get(self.wiring)

    @property
    def may_loop(self) -> bool:
        """Whether a node may be its own neighbour; the topology knows, if there is one."""
        return "topology" not in vars(self) or self.topology.has_loops

    def degrees(self, sources: Positions) -> Positions:
        """How many neighbours each node has; nobody has none."""
        if not self.wiring.edges.count:
            return np.zeros(len(sources), dtype=np.int64)
        return self.adjacency().degrees(sources)

    def strategy(self, sources: Positions) -> Strategy:
        """How a hop from these nodes is made."""
        is_open = self.path.strategy is None
        return self.path.from_(len(sources), at_hand=is_open and self.is_at_hand)

    @property
    def is_at_hand(self) -> bool:
        """Whether the topology is there already."""
        return "topology" in vars(self) or self.ctx.topologies.peek(self.wiring) is not None

    def from_(self, sources: Positions) -> ExpandedRows:
        """Every step from these nodes, none of which may be nobody when looked up."""
        if not self.wiring.edges.count or not len(sources):
            nothing = np.empty(0, dtype=np.int64)
            return ExpandedRows(nothing, nothing, nothing)
        strategy = self.strategy(sources)
        self.ctx.trace.hop(len(sources), strategy)
        if strategy == "indexed":
            return self._looked_up(sources)
        ways = self.adjacency()
        return self._along(ways, sources)

    def stored(self, sources: Positions) -> ExpandedRows | None:
        """Every edge in the order in which edges are stored; None where that is not asked for.

        Whole columns of edges are then read as they lie in memory, and nothing is moved about.
        """
        edges = self.wiring.edges
        if (
            not (self.with_edges and edges.count and len(sources) == self.starts.count)
            or self.way == "both"
            or not edges.cache.holds(edges.table, ROW_ID)
            or not np.array_equal(sources, np.arange(len(sources)))
            or self.strategy(sources) != "csr"
        ):
            return None
        found = self.topology
        order = edges.in_order
        if not found.stands_like(order, edges.row_ids.positions_of):
            return None
        self.ctx.trace.hop(len(sources), "csr")
        ends = (
            (found.targets, found.sources) if self.way == "in" else (found.sources, found.targets)
        )
        return ExpandedRows(*ends, order, are_whole=True)

    def adjacency(self) -> Adjacency:
        """All ways, compressed."""
        if self.ctx.trace.is_on:
            self.ctx.trace.note_first("topology", "cached" if self.is_at_hand else "built")
        topology = self.topology
        return topology.edges(self.way) if self.with_edges else topology.steps(self.way)

    def connects(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each pair is connected by a step."""
        if not self.wiring.edges.count:
            return np.zeros(len(sources), dtype=bool)
        if self.strategy(sources) == "csr":
            self.ctx.trace.pairs(len(sources), "csr")
            return self.adjacency().has(sources, targets)
        known = distinct(sources)
        known = known[known >= 0]
        steps = self.from_(known)
        return adjacency(known[steps.origins], steps.targets, None).has(sources, targets)

    # -- through the edge table --------------------------------------------------------

    def _looked_up(self, sources: Positions) -> ExpandedRows:
        """Find the edges of these nodes; each node is asked about once."""
        known = distinct(sources)
        known = known[known >= 0]
        small = self._local(known)
        ways = small.edges(self.way) if self.with_edges else small.steps(self.way)
        return self._along(ways, sources)

    def _along(self, ways: Adjacency, sources: Positions) -> ExpandedRows:
        origins, targets, rows = ways.expand(sources, with_rows=ways.rows is not None)
        if rows is None:
            return ExpandedRows(origins, targets)
        need(rows.nbytes)
        return ExpandedRows(origins, targets, took(self.wiring.edges.row_ids.positions_of(rows)))

    def _local(self, known: Positions) -> Topology:
        """The edges that touch some nodes on the side they are left by."""
        wiring = self.wiring
        found: list[pa.Table] = []
        for column, nodes, ways in (
            (SRC, wiring.sources, ("out", "both")),
            (DST, wiring.targets, ("in", "both")),
        ):
            if self.way in ways:
                if isinstance(nodes, EntitySet):
                    named = nodes.references(known)
                else:
                    named = nodes.values(ID, known)
                ids = pc.unique(named)
                found.append(wiring.edges.find(column, ids, SRC, DST))
        rows = pa.concat_tables(found)
        # An edge between two of the nodes is found from both sides.
        _, first = np.unique(rows.column(ROW_ID).to_numpy(), return_index=True)
        rows = rows.take(pa.array(first))
        return Topology(
            _positions(wiring.sources, rows.column(SRC).combine_chunks()),
            _positions(wiring.targets, rows.column(DST).combine_chunks()),
            rows.column(ROW_ID).to_numpy().astype(np.int64),
        )


def _positions(nodes: Many, named: pa.Array) -> Positions:
    if isinstance(nodes, EntitySet):
        return nodes.resolved(named, _positions_of)
    return _positions_of(nodes, named)


def _positions_of(nodes: Entities, ids: pa.Array) -> Positions:
    if not len(ids):
        return np.empty(0, dtype=np.int64)
    found = nodes.find(ID, ids)
    places = pc.index_in(ids, value_set=found.column(ID).combine_chunks()).to_numpy()
    positions: Positions = nodes.positions_of(found)[places]
    return positions


def walk(hops: Hops, starts: Positions, min_hops: int, max_hops: int | None) -> ExpandedRows:
    """Every (start, node) within the bounds; without an upper one, until nothing new is found."""
    need(5 * starts.nbytes)
    known, inverse = map(took, np.unique(starts, return_inverse=True))
    alive = known[known >= 0]
    nothing = np.empty(0, dtype=np.int64)
    if not len(alive):
        return ExpandedRows(nothing, nothing)
    if not hops.edge_count:
        itself = np.flatnonzero(starts >= 0) if not min_hops else nothing
        return ExpandedRows(itself, starts[itself])
    dense = hops.strategy(alive) == "csr"
    extent = max(hops.extent, int(alive.max()) + 1) if dense else 0
    chunk = max(1, MAX_MARKS // extent) if dense else len(alive)
    owners: list[Positions] = [nothing]
    targets: list[Positions] = [nothing]
    for begin in range(0, len(alive), chunk):
        some = alive[begin : begin + chunk]
        visited: _Visited = _Flags(len(some), extent) if dense else _Listed()
        found_of, found = _search(hops, some, min_hops, max_hops, visited)
        owners.append(took(found_of + begin))
        targets.append(took(found))
    need(2 * sum(found.nbytes for found in targets))
    pairs = took(np.concatenate(owners)), took(np.concatenate(targets))
    del owners, targets
    reached = adjacency(*pairs, None)
    del pairs
    # Nobody, where it occurs, sorts first and reaches nothing.
    origins, ends, _ = reached.expand(inverse.astype(np.int64) - (len(known) - len(alive)))
    return ExpandedRows(origins, ends)


def _search(
    hops: Hops, starts: Positions, min_hops: int, max_hops: int | None, visited: _Visited
) -> tuple[Positions, Positions]:
    """Pairs of the ordinal of a start and a node, for starts that are marked together."""
    space = visited.space
    ordinals = np.arange(len(starts))
    begun = visited.add(ordinals * space + starts)
    found: list[Positions] = [np.empty(0, dtype=np.int64)]
    if not min_hops:
        found.append(begun)
    elif min_hops == 1 and hops.may_loop:
        loops = np.flatnonzero(hops.connects(starts, starts))
        found.append(loops * space + starts[loops])
    frontier_of, frontier = ordinals, starts
    for depth in count(1) if max_hops is None else range(1, max_hops + 1):
        look()
        steps = hops.from_(frontier)
        need(3 * steps.origins.nbytes)
        marks = visited.add(took(frontier_of[steps.origins] * space + steps.targets))
        del steps
        if not len(marks):
            break
        if depth >= min_hops:
            found.append(marks)
        need(2 * marks.nbytes)
        frontier_of, frontier = map(took, np.divmod(marks, space))
    del frontier_of, frontier
    every = took(np.concatenate(found))
    del found
    need(2 * every.nbytes)
    owners, nodes = np.divmod(every, space)
    return owners, nodes


class _Visited(Protocol):
    """The marks of what has been visited; a mark is a start and a node in one number."""

    space: int

    def add(self, marks: Positions) -> Positions:
        """Add marks, and give back those that are new, each once."""


class _Flags:
    """One flag for every possible mark: for searches that may reach most of a graph."""

    def __init__(self, starts: int, extent: int) -> None:
        self.space = extent
        need(starts * extent)
        self._flags = took(np.zeros(starts * extent, dtype=bool))

    def add(self, marks: Positions) -> Positions:
        """Count off where they are many, sort where they are few."""
        need(marks.nbytes + 2 * len(marks))
        fresh = took(marks[~self._flags[marks]])
        self._flags[fresh] = True
        if len(fresh) < DENSE * len(self._flags):
            return distinct(fresh)
        seen = np.zeros(len(self._flags), dtype=bool)
        seen[fresh] = True
        need(len(seen) + fresh.nbytes)
        return took(np.flatnonzero(seen))


class _Listed:
    """Only the marks themselves: for searches that look at little of a large graph."""

    space = SPACE

    def __init__(self) -> None:
        self._marks = np.empty(0, dtype=np.int64)

    def add(self, marks: Positions) -> Positions:
        """Keep them sorted."""
        fresh = missing_from(distinct(marks), self._marks)
        need(2 * (self._marks.nbytes + fresh.nbytes))
        self._marks = took(np.sort(np.concatenate([self._marks, fresh])))
        return fresh
