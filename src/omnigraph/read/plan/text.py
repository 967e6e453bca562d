"""A physical plan as operators: what `explain` says before a run.

Owns the spelling of the tail, and the estimates, which are rough on purpose: a row named by
its key is one row, other filters are not guessed at, and a hop multiplies by the average
number of edges. Decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import nulls_text, spell, spell_ranking, step_text
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.trace import Operator
from omnigraph.read.plan.physical import (
    ComputeRows,
    ExpandEdges,
    FilterRows,
    JoinBlocks,
    PhysicalPlan,
    PhysicalStep,
    ScanNodes,
    TailStep,
)

# Beyond so many hops, where each leads to fewer nodes, an estimate does not change any more.
FAR = 100


def foreseen(planned: PhysicalPlan, ctx: ReadContext) -> list[Operator]:
    """Every operator of a plan, in the order they will run."""
    outlook = _Outlook(ctx)
    outlook.whole(planned, 0)
    return outlook.operators


class _Outlook:
    def __init__(self, ctx: ReadContext) -> None:
        self.ctx = ctx
        self.operators: list[Operator] = []

    def whole(self, planned: PhysicalPlan, depth: int) -> None:
        """Foresee a read: its parts, its steps, and what becomes of the rows."""
        for branch in planned.branches:
            self.operators.append(Operator("branch", depth=depth))
            self.whole(branch, depth + 1)
        self.steps(planned.steps, 1.0, depth)
        for step in planned.tail:
            if step == "compute":
                self.steps(planned.late, 1.0, depth)
            else:
                self.operators.append(Operator(*tail_text(planned.read, step), depth))

    def steps(self, steps: Sequence[PhysicalStep], rows: float, depth: int) -> float:
        """Foresee steps one after the other; returns about how many rows they leave."""
        for step in steps:
            operator = Operator(*step_text(step.step), depth)
            self.operators.append(operator)
            match step:
                case ScanNodes():
                    operator.notes |= step.notes
                    rows = _scanned(step, rows, operator)
                case ExpandEdges():
                    operator.notes |= step.notes | step.path.foreseen(math.ceil(rows))
                    rows = self._expanded(step, rows)
                case JoinBlocks():
                    rows = self._blocks(step, rows, depth + 1)
                case FilterRows() | ComputeRows():
                    continue
            if isinstance(step, ScanNodes | ExpandEdges):
                operator.notes["estimated_rows"] = math.ceil(rows)
        return rows

    def _blocks(self, step: JoinBlocks, rows: float, depth: int) -> float:
        if isinstance(step.step, plan.Union):
            for block in step.blocks:
                self.operators.append(Operator("branch", depth=depth))
                self.steps(block.steps, rows, depth + 1)
            return rows
        (block,) = step.blocks
        found = self.steps(block.steps, rows, depth)
        return max(rows, found) if isinstance(step.step, plan.Optional) else rows

    def _expanded(self, planned: ExpandEdges, rows: float) -> float:
        step = planned.step
        if not planned.path.edges:
            return 0.0
        if step.closes:
            return rows
        catalog = self.ctx.catalog
        ends = [catalog.edges[name] for name in step.edge_types]
        starts = {one.target if step.direction == "in" else one.source for one in ends}
        left = sum(self.ctx.nodes(name).count for name in starts)
        targets = self.ctx.nodes(step.target_type).count
        return rows * _reached(step, planned.path.edges, left, targets)


def _scanned(scan: ScanNodes, rows: float, operator: Operator) -> float:
    """About how many rows a scan leaves; where nothing connects it with them, it says so."""
    found = _found(scan)
    if scan.step.joins:
        operator.notes["join"] = "by hash"
        return max(rows, found)
    if rows > 1 and found > 1:
        operator.notes["cross_product"] = math.ceil(rows * found)
    return rows * found


def _found(scan: ScanNodes) -> int:
    """About how many rows a scan finds."""
    path = scan.path
    if scan.parts is not None:
        return sum(map(_found, scan.parts))
    if path.access != "lookup":
        return path.entities
    for predicate in scan.step.where:
        match predicate:
            case plan.InList(_, plan.Const(tuple() as choices, _)):
                return min(len(choices), path.entities)
    return min(1, path.entities)


def _reached(step: plan.Expand, edges: int, starts: int, targets: int) -> float:
    """About how many nodes one node leads to."""
    each = edges / max(starts, 1) * (2 if step.direction == "both" else 1)
    if step.max_hops is None and each > 1:
        return targets
    reached = 0.0
    farthest = targets if step.max_hops is None else step.max_hops
    for hop in range(step.min_hops, farthest + 1):
        # More than all there are cannot be reached; a large power is not even computed.
        far = hop * math.log(each) > math.log(targets + 1) if each > 1 else False
        reached += targets if far else each**hop
        if reached >= targets or (step.max_hops is None and hop >= FAR):
            break
    return reached if step.edge_variable is not None else min(reached, targets)


# -- the tail ------------------------------------------------------------------------


def tail_text(read: plan.ReadPlan, step: TailStep) -> tuple[str, str]:
    """The name of an operator of the tail, and what it works on."""
    match step:
        case "rank" | "rank all":
            ranking = [] if read.rank is None else [spell_ranking(read.rank.ranking)]
            return "rank", " ".join([", ".join([*ranking, *map(_key, read.order)]), *_cut(read)])
        case "order rows" | "order result":
            if read.order:
                return "order", " ".join([", ".join(map(_key, read.order)), *_cut(read)])
            name, _, detail = " ".join(_cut(read)).partition(" ")
            return name, detail
        case "project":
            return "project", _columns(read)
        case "aggregate":
            return "aggregate", f"by ({', '.join(read.group_by or ())}): {_columns(read)}"
        case "union":
            return ("union" if read.distinct else "union all"), _columns(read)
        case "compute":
            return "compute", ""
        case "distinct" | "distinct and cut":
            return "distinct", ""


def _cut(read: plan.ReadPlan) -> list[str]:
    per = []
    if read.per is not None:
        count = read.per.count
        keys = (key if isinstance(key, str) else spell(key) for key in read.per.keys)
        shown = spell(count) if isinstance(count, plan.ParamRef) else count
        per = [f"limit {shown} per ({', '.join(keys)})"]
    return per + [
        f"{word} {spell(count) if isinstance(count, plan.ParamRef) else count}"
        for word, count in (("limit", read.limit), ("offset", read.offset))
        if count is not None
    ]


def _columns(read: plan.ReadPlan) -> str:
    return ", ".join(f"{column.name} := {spell(column.value)}" for column in read.columns)


def _key(key: plan.OrderKey) -> str:
    by = key.by if isinstance(key.by, str) else spell(key.by)
    return f"{by} {'desc' if key.descending else 'asc'}{nulls_text(key.nulls)}"
