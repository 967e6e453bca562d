"""Walks of several hops under conditions, and ways: from bound rows to rows with their ends.

Owns which search serves a step, in what pieces, and how its units become rows again. What holds
of each step is asked for many steps at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from omnigraph.errors import QueryError
from omnigraph.lang.query import plan
from omnigraph.read.access import levels, pairs
from omnigraph.read.access.csr import adjacency
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.access.entity_sets import translated
from omnigraph.read.access.expand import MAX_MARKS, SPACE
from omnigraph.read.access.joined_hops import PlannedHops
from omnigraph.read.access.least_costs import (
    OnCheapest,
    WeightMatrix,
    can_be_found,
    weight_matrix,
)
from omnigraph.read.access.steps import Explorer, Found, Tracing
from omnigraph.read.access.unrolling import unrolled
from omnigraph.read.access.way_tree import WayTree
from omnigraph.read.access.ways import Ways
from omnigraph.read.access.weighted import MARK, cheapest
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.walking.search_units import Units, first_of_each, matches
from omnigraph.read.execute.walking.step_rules import HasSolution, Judged, JudgedSteps, StepWeights
from omnigraph.read.plan.physical import ExpandEdges
from omnigraph.storage.budget import look

# So many pairs for each start are found sooner from the starts than one by one.
SHARED = 4
# Ways that are made together where only the first are wanted.
BATCH = 4_096


def is_searched(step: plan.Expand) -> bool:
    """Whether a step is more than following edges or walking within bounds."""
    is_far = step.closes and step.max_hops != 1
    return step.way is not None or step.each is not None or is_far


@dataclass(frozen=True, slots=True)
class Walked:
    """Ends that were found: of which row, which node, by which way."""

    origins: Positions
    ends: Positions
    ways: Positions | None = None


def walked(
    planned: ExpandEdges,
    rows: Bindings,
    ctx: ReadContext,
    has_solution: HasSolution,
    *,
    in_pieces: bool = False,
) -> Iterator[Walked]:
    """The ends of every row; in pieces where not all of them may be wanted."""
    return _Walk(planned, rows, ctx, has_solution, in_pieces=in_pieces).run()


class _Walk:
    def __init__(
        self,
        planned: ExpandEdges,
        rows: Bindings,
        ctx: ReadContext,
        has_solution: HasSolution,
        *,
        in_pieces: bool,
    ) -> None:
        self.step = step = planned.step
        self.ctx = ctx
        self.in_pieces = in_pieces
        is_long = step.max_hops is None or step.closes or _weight(step) is not None
        if is_long and planned.path.strategy is None:
            planned = replace(planned, path=replace(planned.path, strategy="csr"))
        self.planned = PlannedHops(planned, ctx)
        hops, self.every = self.planned.chained()
        self.units = Units.of(step, self._chained(rows))
        self.ways = _ways_of(step, ctx)
        self.is_dense = hops.strategy(self.units.sources) == "csr"
        rule = None
        if planned.each is not None and step.each is not None:
            judged = Judged(planned.each, self.every, ctx, has_solution)
            rule = JudgedSteps(step, judged, self.units.groups, rows)
        edges = ctx.edges_of(step.edge_types)
        self.explorer = Explorer(hops, self.every, edges, rule, step.from_right)
        if step.closes and step.from_right:
            self.explorer = self.explorer.turned
        self.extent = max(self.every.count, 1)
        way = step.way
        self.tracing: Tracing = "distances"
        if way is not None and planned.is_traced:
            self.tracing = "every" if way.every else "one"

    def _chained(self, rows: Bindings) -> Bindings:
        """Rows whose ends are told among all nodes that the walk may lead through."""
        step, planned = self.step, self.planned
        rows = rows.bind(
            step.source, translated(rows.columns[step.source], planned.sources, self.every)
        )
        if not step.closes:
            return rows
        ends = translated(rows.columns[step.target], planned.targets, self.every)
        return rows.bind(step.target, ends)

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The hops that a way may have."""
        return self.step.min_hops, self.step.max_hops

    def run(self) -> Iterator[Walked]:
        """The ends, piece by piece."""
        is_paired = self.step.closes and self.is_dense and not self._shares_starts()
        searched = self._pairs if is_paired and _weight(self.step) is None else self._each_start
        matrix = self._matrix()
        if matrix is not None:
            searched = partial(self._cheapest_pairs, matrix)
        for some in self._chunks():
            look()
            for found_of, ends, ways in searched(some):
                yield self._rows(found_of, ends, ways, some)

    def _shares_starts(self) -> bool:
        """Whether many of the pairs begin at the same nodes."""
        starts = self.units.lefts(self.step)
        return len(np.unique(starts)) * SHARED <= len(starts)

    def _chunks(self) -> Iterator[range]:
        """Units that are searched together; where only some are wanted, first a few."""
        width = MARK if _weight(self.step) is not None or self.step.closes else 1
        most = max(1, MAX_MARKS // (self.extent * width)) if self.is_dense else 1 << 20
        if self.tracing != "distances":
            edges = self.explorer.hops.edge_count
            most = max(1, min(most, MAX_MARKS // (8 * max(1, min(edges, self.extent * 8)))))
        size, begin = 1 if self.in_pieces else most, 0
        while begin < self.units.count:
            yield range(begin, min(begin + size, self.units.count))
            begin, size = begin + size, min(2 * size, most)

    # -- searches ----------------------------------------------------------------------

    def _pairs(self, some: range) -> Iterator[_Ends]:
        """Both ends are known: how they are connected."""
        lefts, rights = self._pair(some)
        least, most = self.bounds
        met = pairs.meet(self._shifted(some), lefts, rights, most, self.extent)
        lengths = met.lengths
        near = (lengths >= least) & ((lengths > 0) | (least == 0))
        if most is not None:
            near &= lengths <= most
        same = np.flatnonzero((lefts == rights) & (least == 1))
        if self.tracing == "distances":
            found = np.flatnonzero(near)
            tree = _lengths(rights[found], lengths[found])
            yield found, rights[found], self._kept(tree, np.arange(len(found)))
        else:
            links = pairs.links(met, lefts)
            links = replace(links, ends=links.ends[near[links.units[links.ends]]])
            if self.tracing == "one":
                links = pairs.one_each(self.explorer, links, len(lefts))
                links = replace(links, ends=links.ends[near[links.units[links.ends]]])
            for of, _, ways in self._made(links):
                yield of, rights[of], ways
        if len(same):
            looped = self._searched(lefts[same], (1, 1), self._shifted(some, same))
            at_start = looped.nodes[looped.ends] == lefts[same][looped.units[looped.ends]]
            looped = replace(looped, ends=looped.ends[at_start])
            for of, nodes, ways in self._made(looped):
                yield same[of], nodes, ways

    def _matrix(self) -> WeightMatrix | None:
        """The weights of all steps, where they serve best: both ends are known, and no bound."""
        weight, rule = _weight(self.step), self.explorer.rule
        if weight is None or not (self.step.closes and self.is_dense and self.units.count):
            return None
        if self.step.max_hops is not None or (isinstance(rule, JudgedSteps) and rule.groups.uses):
            return None
        if not can_be_found():
            return None
        weigh = StepWeights(self.step, weight, self.every, self.ctx)
        explorer = self.explorer
        if isinstance(rule, JudgedSteps):
            # Every node is a unit here, and what holds of a step is the same for all of them.
            explorer = replace(explorer, rule=rule.of(np.zeros(self.extent, dtype=np.int64)))
        try:
            found = weight_matrix(explorer, weigh, weight, self.extent)
        except QueryError:
            # A step that no way may ever come to must not matter.
            return None
        return None if found.has_loops and self.step.min_hops else found

    def _cheapest_pairs(self, matrix: WeightMatrix, some: range) -> Iterator[_Ends]:
        """Both ends are known: costs from the left ends, and from the right ones the ways back."""
        weight = _weight(self.step)
        if weight is None:
            raise AssertionError("ways without a weight have no costs")
        lefts, rights = self._pair(some)
        starts, rows = np.unique(lefts, return_inverse=True)
        costs, rows = matrix.costs_from(starts), rows.reshape(-1)
        near = np.flatnonzero(np.isfinite(costs[rows, rights]))
        weigh = StepWeights(self.step, weight, self.every, self.ctx)
        shifted = self._shifted(some, near)
        rule = OnCheapest(shifted, weigh, costs, rows[near])
        wanted = np.arange(len(near)), lefts[near]
        back = replace(shifted.turned, rule=rule)
        bounds = self.step.min_hops, None
        found = levels.search(back, rights[near], bounds, "one", extent=self.extent, wanted=wanted)
        at_left = found.nodes[found.ends] == lefts[near][found.units[found.ends]]
        found = replace(found, ends=found.ends[at_left])
        if found.tree is not None:
            of = near[found.units]
            found = replace(found, tree=replace(found.tree, costs=costs[rows[of], rights[of]]))
        for of, _, ways in self._made(found):
            yield near[of], rights[near[of]], ways

    def _each_start(self, some: range) -> Iterator[_Ends]:
        """From every start to wherever it leads, or to the ends that are known."""
        if not self.step.closes:
            starts = self.units.sources[some.start : some.stop]
            yield from self._made(self._searched(starts, self.bounds, self._shifted(some)))
            return
        lefts, rights = self._pair(some)
        groups = self.units.groups.of[some.start : some.stop]
        first, inverse = first_of_each([groups, lefts], len(lefts))
        starts, shifted = lefts[first], self._shifted(some, first)
        found = self._searched(starts, self.bounds, shifted, (inverse, rights))
        # Of what was found on the way, only the ends that are known are ends.
        wanted = adjacency(inverse, rights, np.arange(len(inverse)))
        is_end = wanted.has(found.units[found.ends], found.nodes[found.ends])
        found = replace(found, ends=found.ends[is_end])
        for of, nodes, ways in self._made(found):
            place, pair_of = matches(of * SPACE + nodes, inverse * SPACE + rights)
            order = np.argsort(pair_of, kind="stable")
            place, pair_of = place[order], pair_of[order]
            yield pair_of, rights[pair_of], None if ways is None else ways[place]

    def _pair(self, some: range) -> tuple[Positions, Positions]:
        sources = self.units.sources[some.start : some.stop]
        ends = self.units.ends[some.start : some.stop]
        return (ends, sources) if self.step.from_right else (sources, ends)

    def _shifted(self, some: range, chosen: Positions | None = None) -> Explorer:
        """The explorer, for units that are numbered as in a chunk of all."""
        rule = self.explorer.rule
        if not isinstance(rule, JudgedSteps):
            return self.explorer
        units = np.arange(some.start, some.stop)
        units = units if chosen is None else units[chosen]
        return replace(self.explorer, rule=rule.of(units))

    def _searched(
        self,
        starts: Positions,
        bounds: tuple[int, int | None],
        explorer: Explorer,
        wanted: tuple[Positions, Positions] | None = None,
    ) -> Found:
        extent = self.extent if self.is_dense else None
        weight = _weight(self.step)
        if weight is not None:
            weigh = StepWeights(self.step, weight, self.every, self.ctx)
            return cheapest(explorer, weigh, starts, bounds, extent, wanted=wanted)
        return levels.search(explorer, starts, bounds, self.tracing, extent=extent, wanted=wanted)

    def _made(self, found: Found) -> Iterator[_Ends]:
        """The ends of a search: of which unit, which node, by which way."""
        ends = found.ends
        if found.links is not None:
            batch = BATCH if self.in_pieces else None
            backwards = self.explorer.backwards
            for made, entries, owners in unrolled(found, ends, batch, from_right=backwards):
                at = ends[owners]
                yield found.units[at], found.nodes[at], self._kept(made, entries)
            return
        order = np.argsort(found.units[ends], kind="stable")
        ends = ends[order]
        tree, entries = found.tree, ends
        units, nodes = found.units[ends], found.nodes[ends]
        if tree is None:
            lengths = _lengths(nodes, found.hops[ends])
            yield units, nodes, self._kept(lengths, np.arange(len(ends)))
        else:
            yield units, nodes, self._kept(tree, entries)

    def _kept(self, tree: WayTree, entries: Positions) -> Positions | None:
        """The places of ways, once they are kept."""
        if self.ways is None:
            return None
        nodes = translated(tree.nodes, self.every, self.ways.nodes)
        return self.ways.add(replace(tree, nodes=nodes)) + entries

    def _rows(
        self, units: Positions, ends: Positions, ways: Positions | None, some: range
    ) -> Walked:
        """What was found for units, for the rows that they are made of."""
        rows = self.units.rows[self.units.starts[some.start] : self.units.starts[some.stop]]
        of = self.units.of_rows[rows] - some.start
        found = adjacency(units, np.arange(len(units)), None)
        origins, place, _ = found.expand(of)
        targets = translated(ends[place], self.every, self.planned.targets)
        if not self.step.closes and (targets == NO_NODE).any():
            kept = targets != NO_NODE
            origins, place, targets = origins[kept], place[kept], targets[kept]
        return Walked(rows[origins], targets, None if ways is None else ways[place])


_Ends = tuple[Positions, Positions, "Positions | None"]


def _weight(step: plan.Expand) -> plan.Expression | None:
    return None if step.way is None else step.way.weight


def _lengths(nodes: Positions, hops: Positions) -> WayTree:
    """Ways of which only the length is known."""
    nobody = np.full(len(nodes), -1, dtype=np.int64)
    return WayTree(nodes, nobody, nobody, hops)


def _ways_of(step: plan.Expand, ctx: ReadContext) -> Ways | None:
    """Where the ways of a step are kept: with those that it has found before, for other rows."""
    if step.way is None:
        return None
    known = ctx.variables.get(step.way.variable)
    if not isinstance(known, Ways):
        known = Ways(ctx.nodes(step.way.node_type), ctx.edges_of(step.edge_types))
        ctx.variables[step.way.variable] = known
    return known
