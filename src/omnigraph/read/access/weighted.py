"""Ways of least weight: searches in rounds, each of one hop more, as long as anything gets cheaper.

Owns costs and the ways that have them. A label is a node for a unit that was reached at less cost
than with fewer hops; dominated ones are never gone on from, so that bounds on hops hold.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import numpy.typing as npt

from omnigraph.read.access.expand import SPACE
from omnigraph.read.access.id_ranks import id_ranks
from omnigraph.read.access.steps import Candidates, Explorer, Found, runs
from omnigraph.read.access.way_tree import NOTHING, Costs, WayTree
from omnigraph.read.execute.bindings import Positions
from omnigraph.storage.budget import look, need, took

Weigh = Callable[[Positions, Positions], Costs]
"""What steps weigh, by their edges and the nodes they enter from left to right."""
# What a node takes among the marks of a unit.
MARK = 8


class _CostMarks:
    """The least cost of every unit and node so far, infinite where there is none."""

    def __init__(self, units: int, extent: int | None) -> None:
        self.space = SPACE if extent is None else extent
        self._dense: Costs | None = None
        self._marks, self._costs = NOTHING, np.empty(0, dtype=np.float64)
        if extent is not None:
            need(MARK * units * extent)
            self._dense = took(np.full(units * extent, np.inf))

    def of(self, marks: Positions) -> Costs:
        """What is known of these."""
        if self._dense is not None:
            return self._dense[marks]
        if not len(self._marks):
            return np.full(len(marks), np.inf)
        at = np.minimum(np.searchsorted(self._marks, marks), len(self._marks) - 1)
        return np.where(self._marks[at] == marks, self._costs[at], np.inf)

    def set(self, marks: Positions, costs: Costs) -> None:
        """What is less from now on."""
        if self._dense is not None:
            self._dense[marks] = costs
            return
        stays = ~np.isin(self._marks, marks)
        every = np.concatenate([self._marks[stays], marks])
        order = np.argsort(every)
        self._marks = every[order]
        self._costs = np.concatenate([self._costs[stays], costs])[order]


def cheapest(
    explorer: Explorer,
    weigh: Weigh,
    starts: Positions,
    bounds: tuple[int, int | None],
    extent: int | None,
    *,
    wanted: tuple[Positions, Positions] | None = None,
) -> Found:
    """The way of least weight from each start, a unit, to every node within the bounds.

    With pairs of a unit and a node that are ``wanted``, nothing that costs more than these.
    """
    return _Search(explorer, weigh, starts, extent, wanted).run(bounds)


class _Search:
    def __init__(
        self,
        explorer: Explorer,
        weigh: Weigh,
        starts: Positions,
        extent: int | None,
        wanted: tuple[Positions, Positions] | None,
    ) -> None:
        self.explorer = explorer
        self.weigh = weigh
        self.starts = starts
        self.best = _CostMarks(len(starts), extent)
        self.wanted = None if wanted is None else wanted[0] * self.best.space + wanted[1]
        self.nodes: list[Positions] = []
        self.parts: list[tuple[Positions, Positions, Positions]] = []
        self.costs: list[Costs] = []
        self.hops: list[Positions] = []
        self.count = 0

    def run(self, bounds: tuple[int, int | None]) -> Found:
        """Round by round."""
        least, most = bounds
        units = np.arange(len(self.starts))
        marks, costs = units * self.best.space + self.starts, np.zeros(len(units))
        self.best.set(marks, costs)
        entries = self._add(marks, costs, 0, None)
        loops: tuple[int, int] = (0, 0)
        for depth in count(1) if most is None else range(1, most + 1):
            look()
            units, nodes = np.divmod(marks, self.best.space)
            steps = self.explorer.allowed(units, self.explorer.steps(nodes))
            weights = self._weights(steps)
            if depth == 1 and least == 1:
                loops = self._loops(units, entries, steps, weights)
            sums = costs[steps.origins] + weights
            reached = units[steps.origins] * self.best.space + steps.targets
            better = (sums < self.best.of(reached)) & (sums <= self._bound(units)[steps.origins])
            steps, sums, reached = steps.keep(better), sums[better], reached[better]
            if not len(sums):
                break
            chosen = self._chosen(nodes, steps, sums, reached)
            marks, costs = reached[chosen], sums[chosen]
            self.best.set(marks, costs)
            edges = NOTHING if steps.edges is None else steps.edges[chosen]
            entries = self._add(marks, costs, depth, (entries[steps.origins[chosen]], edges))
        return self._whole(least, loops)

    def _weights(self, steps: Candidates) -> Costs:
        if steps.edges is None:
            raise AssertionError("steps are weighed by their edges")
        entered = steps.starts if self.explorer.backwards else steps.targets
        return self.weigh(steps.edges, entered)

    def _bound(self, units: Positions) -> Costs:
        """What a way may cost at most, for a unit, to be of any interest."""
        if self.wanted is None:
            return np.full(len(units), np.inf)
        bounds = np.full(len(self.starts), -np.inf)
        np.maximum.at(bounds, self.wanted // self.best.space, self.best.of(self.wanted))
        return bounds[units]

    def _chosen(
        self, nodes: Positions, steps: Candidates, sums: Costs, reached: Positions
    ) -> Positions:
        """The best step for each mark, in the order in which ways go on from there."""
        explorer = self.explorer
        before = steps.origins
        if explorer.backwards:
            before = id_ranks(explorer.nodes, nodes)[steps.origins]
        order = np.lexsort([before, sums, reached])
        run = runs(reached[order])
        first = np.flatnonzero(np.diff(run, prepend=-1))
        best = order[first][run]
        rival = (sums[order] == sums[best]) & (before[order] == before[best])
        order, run = order[rival], run[rival]
        if steps.edges is None:
            raise AssertionError("steps are told apart by their edges")
        chosen = order[explorer.first_edges(run, steps.edges[order])]
        if explorer.backwards:
            backwards: Positions = chosen
            return backwards
        ranks = id_ranks(explorer.nodes, steps.targets[chosen])
        following: Positions = chosen[np.lexsort([ranks, steps.origins[chosen]])]
        return following

    def _loops(
        self, units: Positions, entries: Positions, steps: Candidates, weights: Costs
    ) -> tuple[int, int]:
        """A start is one hop away from itself along its cheapest loop."""
        looped = steps.targets == steps.starts
        steps, weights = steps.keep(looped), weights[looped]
        if steps.edges is None or not len(weights):
            return self.count, self.count
        of = units[steps.origins]
        order = np.lexsort([weights, of])
        run = runs(of[order])
        first = np.flatnonzero(np.diff(run, prepend=-1))
        rival = weights[order] == weights[order][first][run]
        order, run = order[rival], run[rival]
        chosen = order[self.explorer.first_edges(run, steps.edges[order])]
        marks = of[chosen] * self.best.space + steps.targets[chosen]
        before = entries[steps.origins[chosen]], steps.edges[chosen]
        added = self._add(marks, weights[chosen], 1, before)
        return int(added[0]), self.count

    def _add(
        self,
        marks: Positions,
        costs: Costs,
        depth: int,
        before: tuple[Positions, Positions] | None,
    ) -> Positions:
        first = self.count
        need(6 * 8 * len(marks))
        nobody = np.full(len(marks), -1, dtype=np.int64)
        parents, edges = before or (nobody, nobody)
        self.parts.append((took(marks), took(parents), took(edges)))
        self.costs.append(took(costs))
        self.hops.append(np.full(len(marks), depth, dtype=np.int64))
        self.count += len(marks)
        return np.arange(first, self.count)

    def _whole(self, least: int, loops: tuple[int, int]) -> Found:
        need(6 * 8 * self.count)
        marks, parents, edges = (
            took(np.concatenate(list(part))) for part in zip(*self.parts, strict=True)
        )
        costs: npt.NDArray[np.float64] = took(np.concatenate(self.costs))
        hops = took(np.concatenate(self.hops))
        is_end = (costs == self.best.of(marks)) & (hops >= least)
        is_end[loops[0] : loops[1]] = True
        units, nodes = np.divmod(marks, self.best.space)
        tree = WayTree(nodes, parents, edges, hops, costs, not self.explorer.backwards)
        return Found(units, nodes, hops, np.flatnonzero(is_end), tree)
