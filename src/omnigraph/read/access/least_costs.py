"""Least costs from some nodes to all others, by Dijkstra over the weights of every step.

Owns the matrix of weights, which is kept where it depends on stored values alone, and telling the
steps that lie on ways of least cost. Serves walks without a bound, between ends that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from omnigraph.extras import has_extra
from omnigraph.lang.expressions import Property, leaves_of
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell
from omnigraph.read.access.entity_sets import parts_of
from omnigraph.read.access.expand import EdgeExpansion
from omnigraph.read.access.steps import Explorer
from omnigraph.read.access.way_tree import Costs
from omnigraph.read.access.weighted import Weigh
from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.storage.budget import look, need, took

_STEP = 48


def can_be_found() -> bool:
    """Whether there is what finds them; without it, other searches find the same ways later."""
    return has_extra("ways")


def _scipy(module: str) -> Any:
    # Loaded where it is used: it takes longer than most queries.
    return import_module(f"scipy.{module}")


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """What the cheapest step between two nodes weighs."""

    matrix: Any
    """In compressed rows, of SciPy."""
    has_loops: bool

    @property
    def size(self) -> int:
        """Bytes held."""
        found = self.matrix
        return int(found.data.nbytes + found.indices.nbytes + found.indptr.nbytes)

    def costs_from(self, starts: Positions) -> Costs:
        """For each start the least cost to every node, infinite where nothing leads there."""
        look()
        need(2 * 8 * len(starts) * self.matrix.shape[0])
        found: Costs = _scipy("sparse.csgraph").dijkstra(self.matrix, directed=True, indices=starts)
        return took(found)


def weight_matrix(
    explorer: Explorer, weigh: Weigh, weight: plan.Expression, extent: int
) -> WeightMatrix:
    """The weights of all steps that may be walked, from the left."""

    def make() -> WeightMatrix:
        return _matrix(explorer, weigh, extent)

    hops, leaves = explorer.hops, list(leaves_of(weight))
    is_stored = all(isinstance(leaf, Property | plan.Const) for leaf in leaves)
    if explorer.rule is not None or not is_stored or not isinstance(hops, EdgeExpansion):
        return make()
    return _kept(hops, weight, make)


def _kept(
    hops: EdgeExpansion, weight: plan.Expression, make: Callable[[], WeightMatrix]
) -> WeightMatrix:
    wiring = hops.wiring
    if not wiring.edges.count:
        return make()
    parts = [*parts_of(wiring.sources), *parts_of(wiring.targets)]
    tables = [part.table for part in parts if part.pinned is not None]
    nodes = [(table.location.uri, table.pin.version) for table in tables]
    name = f"@weights:{hops.way}:{nodes}:{spell(weight)}"
    return wiring.edges.cache.derived(wiring.edges.table, name, make)


def _matrix(explorer: Explorer, weigh: Weigh, extent: int) -> WeightMatrix:
    every = np.arange(extent)
    steps = explorer.allowed(every, explorer.steps(every))
    if steps.edges is None:
        raise AssertionError("steps are weighed by their edges")
    need(_STEP * len(steps.targets))
    weights = weigh(steps.edges, steps.targets)
    order = np.lexsort([weights, steps.targets, steps.origins])
    origins, targets = steps.origins[order], steps.targets[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (origins[1:] != origins[:-1]) | (targets[1:] != targets[:-1])
    origins, targets, weights = origins[first], targets[first], weights[order][first]
    starts = np.concatenate([[0], np.cumsum(np.bincount(origins, minlength=extent))])
    matrix = _scipy("sparse").csr_matrix((weights, targets, starts), shape=(extent, extent))
    return WeightMatrix(matrix, bool((origins == targets).any()))


@dataclass(frozen=True, slots=True)
class OnCheapest:
    """The rule of steps that lie on a way of least cost from the left end of a unit."""

    explorer: Explorer
    weigh: Weigh
    costs: Costs
    rows: Positions
    """The row of the costs that each unit has."""

    def __call__(
        self, units: Positions, edges: Positions, entered: Positions, left: Positions
    ) -> Mask:
        """Which steps cost what the two nodes differ in."""
        of = self.rows[units]
        before, after = self.costs[of, left], self.costs[of, entered]
        close = np.flatnonzero(np.isfinite(before) & (before <= after))
        mask = np.zeros(len(edges), dtype=bool)
        rule = self.explorer.rule
        if rule is not None and len(close):
            may = rule(units[close], edges[close], entered[close], left[close])
            close = close[may]
        weights = self.weigh(edges[close], entered[close])
        mask[close] = before[close] + weights == after[close]
        return mask
