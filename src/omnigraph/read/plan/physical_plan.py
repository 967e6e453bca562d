"""The outlook of a plan: its operators with what can be said before it runs.

Owns the estimates, which are rough on purpose: a row named by its key is one row, other
filters are not guessed at, and a hop multiplies by the average number of edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import step_text
from omnigraph.read.access.entities import Entities
from omnigraph.read.access.expand import EdgeExpansion
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.trace import Operator
from omnigraph.read.plan.access_path import access_notes, expand_notes
from omnigraph.read.plan.tail import tail_of


def plan_read(read: plan.ReadPlan, ctx: ReadContext) -> list[Operator]:
    """Every operator of a read, in the order they will run."""
    outlook = _Outlook(ctx)
    outlook.steps(read.steps, 1.0, 0)
    tail = [Operator(name, detail) for name, detail in tail_of(read)]
    return [*outlook.operators, *tail]


class _Outlook:
    def __init__(self, ctx: ReadContext) -> None:
        self.ctx = ctx
        self.operators: list[Operator] = []

    def steps(self, steps: Sequence[plan.Step], rows: float, depth: int) -> float:
        """Foresee steps one after the other; returns about how many rows they leave."""
        for step in steps:
            operator = Operator(*step_text(step), depth)
            self.operators.append(operator)
            rows = self._step(step, operator, rows)
            if isinstance(step, plan.Scan | plan.Expand):
                operator.notes["estimated_rows"] = math.ceil(rows)
        return rows

    def _step(self, step: plan.Step, operator: Operator, rows: float) -> float:
        inside = operator.depth + 1
        match step:
            case plan.Scan(_, node_type, where):
                entities = self.ctx.nodes(node_type)
                operator.notes |= access_notes(entities, where)
                found = min(_named(where), entities.count)
                is_lookup = operator.notes["access"].startswith("lookup")
                return rows * (found if is_lookup else entities.count)
            case plan.Expand():
                return self._expand(step, operator, rows)
            case plan.AntiJoin(steps) | plan.SemiJoin(steps) | plan.CountJoin(steps=steps):
                self.steps(steps, rows, inside)
            case plan.Union(branches):
                for steps in branches:
                    self.operators.append(Operator("branch", depth=inside))
                    self.steps(steps, rows, inside + 1)
            case plan.Optional(steps, _):
                return max(rows, self.steps(steps, rows, inside))
            case plan.Filter():
                pass
        return rows

    def _expand(self, step: plan.Expand, operator: Operator, rows: float) -> float:
        edge = self.ctx.catalog.edges[step.edge_type]
        hops = EdgeExpansion(self.ctx, edge, step.direction, step.edge_variable is not None)
        wiring = hops.wiring
        operator.notes |= expand_notes(step, wiring.edges)
        if not wiring.edges.count:
            operator.notes["expansion"] = "nothing"
            return 0.0
        expansion = hops.strategy_for(math.ceil(rows))
        if expansion == "csr":
            expansion += " (cached)" if hops.is_at_hand else " (to build)"
        operator.notes["expansion"] = expansion
        if step.closes:
            return rows
        start = wiring.targets if step.direction == "in" else wiring.sources
        return rows * _reached(step, wiring.edges, start, self.ctx.nodes(step.target_type))


def _reached(step: plan.Expand, edges: Entities, start: Entities, targets: Entities) -> float:
    """About how many nodes one node leads to."""
    each = edges.count / max(start.count, 1) * (2 if step.direction == "both" else 1)
    reached = 0.0
    for hop in range(step.min_hops, step.max_hops + 1):
        # More than all there are cannot be reached; a large power is not even computed.
        far = hop * math.log(each) > math.log(targets.count + 1) if each > 1 else False
        reached += targets.count if far else each**hop
        if reached >= targets.count:
            break
    return reached if step.edge_variable is not None else min(reached, targets.count)


def _named(where: Sequence[plan.Predicate]) -> int:
    """How many rows predicates on a key name."""
    for predicate in where:
        match predicate:
            case plan.InList(_, plan.Const(tuple() as choices, _)):
                return len(choices)
    return 1
