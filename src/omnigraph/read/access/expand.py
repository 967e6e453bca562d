"""Hops: from nodes to their neighbours, through the topology or through the edge table.

Owns both ways, whose answers are the same; the plan says which one is taken, or by which rule
once it is known from how many nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.read.access.csr import Adjacency, Topology, Way, adjacency
from omnigraph.read.access.entities import Entities, Positions
from omnigraph.read.access.topology_cache import EdgeTables
from omnigraph.read.execute.bindings import Mask
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.plan.physical import EdgeAccess, ExpandEdges, Strategy
from omnigraph.storage.tables.table import ROW_ID

BYTES_PER_STEP = 24


@dataclass(frozen=True, slots=True)
class ExpandedRows:
    """Every step from some nodes: which of them it is of, where it leads, by which edge."""

    origins: Positions
    targets: Positions
    edges: Positions | None = None


@dataclass(frozen=True)
class EdgeExpansion:
    """Ways along one edge type in one direction; folded unless the edges themselves matter."""

    ctx: ReadContext
    edge: EdgeType
    way: Way
    path: EdgeAccess
    with_edges: bool = False

    @classmethod
    def of(cls, planned: ExpandEdges, ctx: ReadContext) -> EdgeExpansion:
        """Those of a step."""
        step = planned.step
        edge = ctx.catalog.edges[step.edge_type]
        return cls(ctx, edge, step.direction, planned.path, step.edge_variable is not None)

    @cached_property
    def wiring(self) -> EdgeTables:
        """The tables concerned."""
        return self.ctx.wiring(self.edge)

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
        self.ctx.budget.check(int(ways.degrees(sources).sum()) * BYTES_PER_STEP)
        return self._along(ways, sources)

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
        origins, targets, place = ways.expand(sources)
        if ways.rows is None:
            return ExpandedRows(origins, targets)
        return ExpandedRows(
            origins, targets, self.wiring.edges.row_ids.positions_of(ways.rows[place])
        )

    def _local(self, known: Positions) -> Topology:
        """The edges that touch some nodes on the side they are left by."""
        wiring = self.wiring
        found: list[pa.Table] = []
        for column, nodes, ways in (
            ("src", wiring.sources, ("out", "both")),
            ("dst", wiring.targets, ("in", "both")),
        ):
            if self.way in ways:
                ids = pc.unique(nodes.values("@id", known))
                found.append(wiring.edges.find(column, ids, "src", "dst"))
        rows = pa.concat_tables(found)
        # An edge between two of the nodes is found from both sides.
        _, first = np.unique(rows.column(ROW_ID).to_numpy(), return_index=True)
        rows = rows.take(pa.array(first))
        return Topology(
            _positions(wiring.sources, rows.column("src").combine_chunks()),
            _positions(wiring.targets, rows.column("dst").combine_chunks()),
            rows.column(ROW_ID).to_numpy().astype(np.int64),
        )


def _positions(nodes: Entities, ids: pa.Array) -> Positions:
    if not len(ids):
        return np.empty(0, dtype=np.int64)
    found = nodes.find("id", ids)
    places = pc.index_in(ids, value_set=found.column("id").combine_chunks()).to_numpy()
    positions: Positions = nodes.positions_of(found)[places]
    return positions
