"""Rules of steps: which may be walked, and what each weighs.

Owns asking it of many steps at once: the block of `each` is run for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError
from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import spell
from omnigraph.read.access.entity_sets import Many, translated
from omnigraph.read.access.steps import StepRule
from omnigraph.read.access.way_tree import Costs
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import BoundRows
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.trace import Trace
from omnigraph.read.execute.walking.search_units import Groups, first_of_each
from omnigraph.read.plan.physical import Block
from omnigraph.rows.conditions import repeated
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import need, took

HasSolution = Callable[[Block, Bindings, ReadContext], Mask]
# Steps are told apart by flags up to so many, and judged once.
MAX_JUDGED = 1 << 26


@dataclass(frozen=True, slots=True)
class Judged:
    """What judges steps: a block, and what the nodes of a walk are told among."""

    block: Block
    every: Many
    ctx: ReadContext
    has_solution: HasSolution


class JudgedSteps:
    """What holds of each step, judged by running the block for many steps at once."""

    def __init__(self, step: plan.Expand, judged: Judged, groups: Groups, rows: Bindings) -> None:
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
        first, of = first_of_each([groups, steps], len(steps))
        return self._true(groups[first], edges[first], entered[first])[of]

    def _true(self, groups: Positions, edges: Positions, entered: Positions) -> Mask:
        uses, outer = self.groups.uses, self.outer
        columns = {name: outer.columns[name][groups] for name in uses if name in outer.columns}
        indices = pa.array(groups)
        values = {name: outer.values[name].take(indices) for name in uses if name in outer.values}
        nodes = translated(entered, self.every, self.nodes)
        columns |= {self.each.edge: edges, self.each.node: nodes}
        return self.has_solution(self.block, Bindings(columns, len(edges), values), self.ctx)


class StepWeights:
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
