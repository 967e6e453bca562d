"""The steps of a read: from one row that binds nothing to the rows of a query.

Owns running scans, expansions, filters and the blocks inside blocks as they were planned.
Binds positions only; what a row shows is decided afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import step_text
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.expand import EdgeExpansion, ExpandedRows, walk
from omnigraph.read.execute.aggregates import aggregate_by
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.comparisons import compare
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import operand
from omnigraph.read.execute.predicates import mask_of, passing
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.plan.physical import (
    AccessPath,
    Block,
    ExpandEdges,
    FilterRows,
    JoinBlocks,
    PhysicalStep,
    ScanNodes,
)
from omnigraph.rows.filters import row_filter


def run_steps(steps: Sequence[PhysicalStep], rows: Bindings, ctx: ReadContext) -> Bindings:
    """Run steps one after the other."""
    for step in steps:
        ctx.budget.check(rows.size)
        name, detail = step_text(step.step) if ctx.trace.is_on else ("", "")
        with ctx.trace.operator(name, detail) as done:
            rows = _run(step, rows, ctx)
            done.rows = rows.count
    return rows


def _run(step: PhysicalStep, rows: Bindings, ctx: ReadContext) -> Bindings:
    match step:
        case ScanNodes():
            return _scan(step, rows, ctx)
        case ExpandEdges():
            return _expand(step, rows, ctx)
        case FilterRows(plan.Filter(where)):
            return rows.keep(passing(where, rows, ctx))
        case JoinBlocks(plan.Union(), blocks):
            return rows.keep(_any_solution(blocks, rows, ctx))
        case JoinBlocks(joined, (block,)):
            return _join(joined, block, rows, ctx)
    raise AssertionError(f"unknown step {step}")


def _join(joined: plan.Step, block: Block, rows: Bindings, ctx: ReadContext) -> Bindings:
    match joined:
        case plan.AntiJoin():
            return rows.keep(~_has_solution(block, rows, ctx))
        case plan.SemiJoin():
            return rows.keep(_has_solution(block, rows, ctx))
        case plan.CountJoin():
            return rows.keep(_counted(joined, block, rows, ctx))
        case plan.Optional(_, introduces):
            return _optional(block.steps, introduces, rows, ctx)
    raise AssertionError(f"unknown join {joined}")


# -- scans -------------------------------------------------------------------------


def _scan(scan: ScanNodes, rows: Bindings, ctx: ReadContext) -> Bindings:
    positions = select(scan, ctx)
    ctx.budget.check(rows.count * len(positions) * 8 * (len(rows.columns) + 1))
    return rows.cross(scan.step.variable, positions)


def select(scan: ScanNodes, ctx: ReadContext) -> Positions:
    """The nodes that a scan binds its variable to, ascending."""
    if ctx.trace.is_on:
        ctx.trace.note(**scan.notes)
    variable, path = scan.step.variable, scan.path
    ctx.variables[variable] = entities = ctx.nodes(scan.step.node_type)
    positions = _positions(entities, variable, path, ctx)
    if not path.left or not len(positions):
        return positions
    rows = Bindings({variable: positions}, len(positions))
    return positions[passing(path.left, rows, ctx)]


def _positions(entities: Entities, variable: str, path: AccessPath, ctx: ReadContext) -> Positions:
    """The nodes that an access path leads to; what is left to decide is decided afterwards."""
    if path.naming is not None:
        named = path.naming.anchor(ctx.value_of)
        if path.fetched is None:
            return np.sort(entities.positions_of(entities.find(named.column, named.texts)))
        found = entities.look_up(named.column, named.texts, path.fetched)
        ctx.variables[variable] = found
        return found.every
    if path.filtered:
        wanted = row_filter(path.filtered, ctx.value_of)
        return entities.matching(wanted, in_memory=path.access == "whole columns")
    return entities.positions()


# -- expansions --------------------------------------------------------------------


def _expand(planned: ExpandEdges, rows: Bindings, ctx: ReadContext) -> Bindings:
    step, hops = planned.step, EdgeExpansion.of(planned, ctx)
    targets = ctx.nodes(step.target_type)
    sources = rows.columns[step.source]
    if ctx.trace.is_on:
        ctx.trace.note(**planned.notes)
    several = step.max_hops > 1 and hops.edge.source == hops.edge.target
    if step.closes and step.edge_variable is None and not several:
        ends = rows.columns[step.target]
        if step.min_hops > 1:
            return rows.take(np.empty(0, dtype=np.int64))
        return rows.keep(hops.connects(sources, ends) & (ends != NO_NODE))
    steps = _steps(step, hops, sources, several=several)
    if step.closes:
        met = steps.targets == rows.columns[step.target][steps.origins]
        steps = _kept(steps, met)
    if not step.closes:
        ctx.variables[step.target] = targets
    ctx.budget.check(len(steps.origins) * 8 * (len(rows.columns) + 2))
    if step.where:
        steps = _kept(steps, _targets_passing(step, steps.targets, targets, ctx))
    found = rows.take(steps.origins)
    if not step.closes:
        found = found.bind(step.target, steps.targets)
    if step.edge_variable is not None and steps.edges is not None:
        ctx.variables[step.edge_variable] = ctx.edges(step.edge_type)
        found = found.bind(step.edge_variable, steps.edges)
    return found.keep(passing(step.edge_where, found, ctx)) if step.edge_where else found


def _steps(
    step: plan.Expand, hops: EdgeExpansion, sources: Positions, *, several: bool
) -> ExpandedRows:
    if several:
        return walk(hops, sources, step.min_hops, step.max_hops)
    if step.min_hops > 1:
        nothing = np.empty(0, dtype=np.int64)
        return ExpandedRows(nothing, nothing, nothing)
    return hops.from_(sources)


def _kept(steps: ExpandedRows, mask: Mask) -> ExpandedRows:
    edges = None if steps.edges is None else steps.edges[mask]
    return ExpandedRows(steps.origins[mask], steps.targets[mask], edges)


def _targets_passing(
    step: plan.Expand, found: Positions, targets: Entities, ctx: ReadContext
) -> Mask:
    """Which of the targets pass the predicates on them; each is looked at once."""
    each = distinct(found)
    ctx.variables[step.target] = targets
    rows = Bindings({step.target: each}, len(each))
    mask: Mask = passing(step.where, rows, ctx)[np.searchsorted(each, found)]
    return mask


# -- blocks inside blocks ------------------------------------------------------------


def _numbered(rows: Bindings) -> tuple[str, Bindings]:
    """The rows with their own number as one more column, so that solutions can be traced back."""
    name = f"@row{len(rows.columns)}"
    return name, rows.bind(name, np.arange(rows.count))


def _has_solution(block: Block, rows: Bindings, ctx: ReadContext) -> Mask:
    degrees = _degrees(block, rows, ctx)
    if degrees is not None:
        mask: Mask = degrees > 0
        return mask
    name, numbered = _numbered(rows)
    solved = np.zeros(rows.count, dtype=bool)
    solved[run_steps(block.steps, numbered, ctx).columns[name]] = True
    return solved


def _degrees(block: Block, rows: Bindings, ctx: ReadContext) -> Positions | None:
    """How many solutions each row has, where that is only the number of its neighbours."""
    if block.counted is None:
        return None
    step, hops = block.counted.step, EdgeExpansion.of(block.counted, ctx)
    sources = rows.columns[step.source]
    if hops.strategy(sources) != "csr":
        return None
    with ctx.trace.operator(*step_text(step)) as done:
        degrees = hops.degrees(sources)
        ctx.trace.note(answered_from="degrees")
        done.rows = int(degrees.sum())
    return degrees


def _any_solution(blocks: Sequence[Block], rows: Bindings, ctx: ReadContext) -> Mask:
    solved = np.zeros(rows.count, dtype=bool)
    for block in blocks:
        open_ = np.flatnonzero(~solved)
        with ctx.trace.operator("branch") as done:
            solved[open_] = _has_solution(block, rows.take(open_), ctx)
            done.rows = int(solved[open_].sum())
    return solved


def _counted(step: plan.CountJoin, block: Block, rows: Bindings, ctx: ReadContext) -> Mask:
    degrees = _degrees(block, rows, ctx) if step.function == "count" else None
    if degrees is not None and step.argument is None:
        result = pa.array(degrees)
    else:
        name, numbered = _numbered(rows)
        solutions = run_steps(block.steps, numbered, ctx)
        owners = solutions.columns[name]
        values = None if step.argument is None else operand(step.argument, solutions, ctx)
        result = aggregate_by(step.function, owners, values, rows.count)
    wanted = operand(step.value, rows, ctx)
    return mask_of(compare(result, step.op, wanted), rows.count)


def _optional(
    steps: Sequence[PhysicalStep], introduces: Sequence[str], rows: Bindings, ctx: ReadContext
) -> Bindings:
    name, numbered = _numbered(rows)
    solutions = run_steps(steps, numbered, ctx)
    solved = np.zeros(rows.count, dtype=bool)
    solved[solutions.columns[name]] = True
    kept = {variable: solutions.columns[variable] for variable in (*numbered.columns, *introduces)}
    found = Bindings(kept, solutions.count)
    alone = numbered.take(np.flatnonzero(~solved))
    for variable in introduces:
        alone = alone.bind(variable, np.full(alone.count, NO_NODE, dtype=np.int64))
    every = found.stacked(alone)
    order = np.argsort(every.columns[name], kind="stable")
    return every.take(order).without(name)
