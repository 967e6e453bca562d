"""Walks of several hops under conditions, and ways: from bound rows to rows with their ends.

Owns which search serves a step, in what pieces, and how its units become rows again. What holds
of each step is asked for many steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell
from omnigraph.read.access import levels, pairs
from omnigraph.read.access.csr import adjacency
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.access.entity_sets import Many, translated
from omnigraph.read.access.expand import MAX_MARKS, SPACE
from omnigraph.read.access.joined_hops import PlannedHops
from omnigraph.read.access.steps import Explorer, Found, StepRule, Tracing
from omnigraph.read.access.unrolling import unrolled
from omnigraph.read.access.way_tree import NOTHING, Costs, WayTree
from omnigraph.read.access.ways import Ways
from omnigraph.read.access.weighted import MARK, cheapest
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import BoundRows
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.grouping import value_codes
from omnigraph.read.execute.trace import Trace
from omnigraph.read.plan.physical import Block, ExpandEdges
from omnigraph.rows.conditions import repeated
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import look, need, took

HasSolution = Callable[[Block, Bindings, ReadContext], Mask]
# So many pairs for each start are found sooner from the starts than one by one.
SHARED = 4
# Steps are told apart by flags up to so many, and judged once.
MAX_JUDGED = 1 << 26
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
        self.units = _Units.of(step, self._chained(rows))
        self.ways = _ways_of(step, ctx)
        self.is_dense = hops.strategy(self.units.sources) == "csr"
        rule = None
        if planned.each is not None and step.each is not None:
            judged = _Judged(planned.each, self.every, ctx, has_solution)
            rule = _Rule(step, judged, self.units.groups, rows)
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

    def _each_start(self, some: range) -> Iterator[_Ends]:
        """From every start to wherever it leads, or to the ends that are known."""
        if not self.step.closes:
            starts = self.units.sources[some.start : some.stop]
            yield from self._made(self._searched(starts, self.bounds, self._shifted(some)))
            return
        lefts, rights = self._pair(some)
        groups = self.units.groups.of[some.start : some.stop]
        first, inverse = _distinct([groups, lefts], len(lefts))
        starts, shifted = lefts[first], self._shifted(some, first)
        found = self._searched(starts, self.bounds, shifted, (inverse, rights))
        # Of what was found on the way, only the ends that are known are ends.
        wanted = adjacency(inverse, rights, np.arange(len(inverse)))
        is_end = wanted.has(found.units[found.ends], found.nodes[found.ends])
        found = replace(found, ends=found.ends[is_end])
        for of, nodes, ways in self._made(found):
            place, pair_of = _matches(of * SPACE + nodes, inverse * SPACE + rights)
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
        if not isinstance(rule, _Rule):
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
            weigh = _Weights(self.step, weight, self.every, self.ctx)
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


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows that are alike in what conditions look at: the group of each unit, and a row of each."""

    of: Positions
    rows: Positions
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Units:
    """What is searched for once: a start, the end where it is known, what conditions look at."""

    sources: Positions
    ends: Positions
    groups: _Groups
    of_rows: Positions
    """The unit of each row; -1 where an end is nobody."""
    rows: Positions
    """The rows, unit by unit."""
    starts: Positions
    """Where the rows of each unit begin."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.sources)

    def lefts(self, step: plan.Expand) -> Positions:
        """The left ends, where both are known."""
        return self.ends if step.from_right else self.sources

    @classmethod
    def of(cls, step: plan.Expand, rows: Bindings) -> _Units:
        """Those of some rows."""
        sources = rows.columns[step.source]
        ends = rows.columns[step.target] if step.closes else np.zeros_like(sources)
        alive = np.flatnonzero((sources >= 0) & (ends >= 0))
        uses = () if step.each is None else step.each.uses
        uses = tuple(name for name in uses if name in rows.columns or name in rows.values)
        group_rows, group_of = _distinct([_codes(rows, name)[alive] for name in uses], len(alive))
        keys = [group_of, sources[alive], ends[alive]]
        first, of_alive = _distinct(keys, len(alive))
        need(4 * 8 * rows.count)
        of = np.full(rows.count, -1, dtype=np.int64)
        of[alive] = of_alive
        ordered = alive[np.argsort(of_alive, kind="stable")]
        sizes = np.bincount(of_alive, minlength=len(first))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        groups = _Groups(group_of[first], alive[group_rows], uses)
        chosen = alive[first]
        return cls(sources[chosen], ends[chosen], groups, of, took(ordered), starts)


def _codes(rows: Bindings, name: str) -> Positions:
    """Numbers that tell the rows apart by a variable or a computed value."""
    return rows.columns[name] if name in rows.columns else value_codes(rows.values[name])


def _distinct(keys: Sequence[Positions], count: int) -> tuple[Positions, Positions]:
    """The first row of each distinct combination, and of which each row is."""
    of = np.zeros(count, dtype=np.int64)
    for key in keys:
        need(6 * 8 * count)
        _, codes = np.unique(key, return_inverse=True)
        _, of = np.unique(of * (len(key) + 1) + codes.reshape(-1), return_inverse=True)
        of = of.reshape(-1).astype(np.int64)
    _, first = np.unique(of, return_index=True)
    return first.astype(np.int64), took(of)


def _matches(keys: Positions, wanted: Positions) -> tuple[Positions, Positions]:
    """Every key that is wanted: which key, and by whom."""
    order = np.argsort(wanted, kind="stable")
    begin = np.searchsorted(wanted[order], keys)
    size = np.searchsorted(wanted[order], keys, side="right") - begin
    of = np.repeat(np.arange(len(keys)), size)
    place = np.arange(len(of)) + np.repeat(begin - (np.cumsum(size) - size), size)
    return of, order[place]


@dataclass(frozen=True, slots=True)
class _Judged:
    """What judges steps: a block, and what the nodes of a walk are told among."""

    block: Block
    every: Many
    ctx: ReadContext
    has_solution: HasSolution


class _Rule:
    """What holds of each step, judged by running the block for many steps at once."""

    def __init__(self, step: plan.Expand, judged: _Judged, groups: _Groups, rows: Bindings) -> None:
        if step.each is None:
            raise AssertionError("steps without conditions are not judged")
        self.each = step.each
        self.block = judged.block
        self.groups = groups
        self.outer = rows.take(groups.rows)
        self.has_solution = judged.has_solution
        # Judging is part of the walk: what it takes is not told step by step.
        self.ctx = ctx = replace(judged.ctx, trace=Trace())
        self.every, self.nodes = judged.every, ctx.nodes(step.each.node_type)
        ctx.variables[step.each.edge] = edges = ctx.edges_of(step.edge_types)
        ctx.variables[step.each.node] = self.nodes
        self._judged: np.ndarray | None = None
        if not groups.uses and 2 * edges.count <= MAX_JUDGED:
            need(2 * edges.count)
            self._judged = took(np.full(2 * edges.count, -1, dtype=np.int8))

    def of(self, units: Positions) -> StepRule:
        """The rule for units that are numbered otherwise."""
        groups = self.groups.of[units]

        def judge(units: Positions, edges: Positions, entered: Positions, left: Positions) -> Mask:
            return self._hold(groups[units], edges, entered, left)

        return judge

    def __call__(
        self, units: Positions, edges: Positions, entered: Positions, left: Positions
    ) -> Mask:
        """Which steps may be walked, for units as they are numbered at first."""
        return self._hold(self.groups.of[units], edges, entered, left)

    def _hold(
        self, groups: Positions, edges: Positions, entered: Positions, left: Positions
    ) -> Mask:
        # An edge is walked in one direction, or in the other.
        steps = 2 * edges + (entered > left)
        if self._judged is not None:
            known = self._judged[steps]
            unknown = np.flatnonzero(known < 0)
            if len(unknown):
                new, first = np.unique(steps[unknown], return_index=True)
                chosen = unknown[first]
                self._judged[new] = self._true(groups[chosen], edges[chosen], entered[chosen])
                known = self._judged[steps]
            found: Mask = known == 1
            return found
        first, of = _distinct([groups, steps], len(steps))
        return self._true(groups[first], edges[first], entered[first])[of]

    def _true(self, groups: Positions, edges: Positions, entered: Positions) -> Mask:
        uses, outer = self.groups.uses, self.outer
        columns = {name: outer.columns[name][groups] for name in uses if name in outer.columns}
        indices = pa.array(groups)
        values = {name: outer.values[name].take(indices) for name in uses if name in outer.values}
        nodes = translated(entered, self.every, self.nodes)
        columns |= {self.each.edge: edges, self.each.node: nodes}
        return self.has_solution(self.block, Bindings(columns, len(edges), values), self.ctx)


class _Weights:
    """What steps weigh: never less than nothing."""

    def __init__(
        self, step: plan.Expand, weight: plan.Expression, every: Many, ctx: ReadContext
    ) -> None:
        self.step = step
        self.every = every
        self.weight = weight
        self.ctx = ctx

    def __call__(self, edges: Positions, entered: Positions) -> Costs:
        """The weights of some steps."""
        way = self.step.way
        if way is None or not len(edges):
            return np.zeros(len(edges))
        ctx = self.ctx
        ctx.variables[way.edge] = every_edge = ctx.edges_of(self.step.edge_types)
        ctx.variables[way.node] = nodes = ctx.nodes(way.node_type)
        entered = translated(entered, self.every, nodes)
        rows = Bindings({way.edge: edges, way.node: entered}, len(edges))
        values = values_of(self.weight, BoundRows(rows, ctx))
        if isinstance(values, pa.Scalar):
            values = repeated(values, rows.count)
        wrong = pc.fill_null(pc.invert(pc.greater_equal(values, 0)), fill_value=True)
        bad = np.flatnonzero(wrong.to_numpy(zero_copy_only=False))
        if len(bad):
            at = int(bad[0])
            edge = every_edge.values("@id", edges[at : at + 1])[0].as_py()
            found = values[at].as_py()
            raise QueryError(
                f"`by {spell(self.weight)}` is {'null' if found is None else found} for the "
                f"{'|'.join(self.step.edge_types)} {edge!r}: a weight is a number, 0 or more",
                details={"edge": edge, "weight": found},
            )
        costs: Costs = np.asarray(values.cast(pa.float64(), safe=False).to_numpy())
        return costs


def way_steps(
    step: plan.WalkWay, rows: Bindings, ctx: ReadContext
) -> tuple[Positions, Positions, Positions]:
    """The distinct steps of each row's way: of which row, from which node, to which."""
    ways = ctx.variables[step.way]
    if not isinstance(ways, Ways):
        raise AssertionError(f"${step.way} is no way")
    ctx.variables.setdefault(step.left, ways.nodes)
    ctx.variables.setdefault(step.right, ways.nodes)
    positions = rows.columns[step.way]
    each, of = np.unique(positions, return_inverse=True)
    found = ways.laid_out(each)
    if not len(found.nodes):
        return NOTHING, NOTHING, NOTHING
    owners = np.repeat(np.arange(len(each)), np.diff(found.starts))
    inside = np.flatnonzero(owners[1:] == owners[:-1])
    way_of, before, after = owners[inside], found.nodes[inside], found.nodes[inside + 1]
    if step.undirected:
        way_of, before, after = (
            np.concatenate(both) for both in ((way_of, way_of), (before, after), (after, before))
        )
    first, _ = _distinct([way_of, before, after], len(way_of))
    way_of, before, after = way_of[first], before[first], after[first]
    origins, place, _ = adjacency(way_of, np.arange(len(way_of)), None).expand(
        of.reshape(-1).astype(np.int64)
    )
    return origins, before[place], after[place]
