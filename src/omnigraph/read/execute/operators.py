"""The steps of a read: from one row that binds nothing to the rows of a query.

Owns running scans, expansions, filters and the blocks inside blocks. Binds positions
only; what a row shows is decided afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import step_text
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.expand import EdgeExpansion, ExpandedRows
from omnigraph.read.access.multi_hop import walk
from omnigraph.read.execute.aggregates import aggregate_by
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.comparisons import compare
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import operand
from omnigraph.read.execute.predicates import mask_of, passing
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.plan.access_path import access_notes, expand_notes
from omnigraph.rows.filters import can_filter, row_filter
from omnigraph.rows.key_predicates import anchor
from omnigraph.storage.tables.table import ROW_ID


def run_steps(steps: Sequence[plan.Step], rows: Bindings, ctx: ReadContext) -> Bindings:
    """Run steps one after the other."""
    for step in steps:
        ctx.budget.check(rows.size)
        name, detail = step_text(step) if ctx.trace.is_on else ("", "")
        with ctx.trace.operator(name, detail) as done:
            rows = _run(step, rows, ctx)
            done.rows = rows.count
    return rows


def _run(step: plan.Step, rows: Bindings, ctx: ReadContext) -> Bindings:
    match step:
        case plan.Scan():
            return _scan(step, rows, ctx)
        case plan.Expand():
            return _expand(step, rows, ctx)
        case plan.Filter(where):
            return rows.keep(passing(where, rows, ctx))
        case plan.AntiJoin(steps):
            return rows.keep(~_has_solution(steps, rows, ctx))
        case plan.SemiJoin(steps):
            return rows.keep(_has_solution(steps, rows, ctx))
        case plan.Union(branches):
            return rows.keep(_any_solution(branches, rows, ctx))
        case plan.CountJoin():
            return rows.keep(_counted(step, rows, ctx))
        case plan.Optional(steps, introduces):
            return _optional(steps, introduces, rows, ctx)


# -- scans -------------------------------------------------------------------------


def _scan(step: plan.Scan, rows: Bindings, ctx: ReadContext) -> Bindings:
    entities = ctx.nodes(step.node_type)
    ctx.variables[step.variable] = entities
    positions = select(entities, step.variable, step.where, ctx)
    ctx.budget.check(rows.count * len(positions) * 8 * (len(rows.columns) + 1))
    return rows.cross(step.variable, positions)


def select(
    entities: Entities, variable: str, where: Sequence[plan.Predicate], ctx: ReadContext
) -> Positions:
    """The entities of a type that pass predicates on one variable, ascending."""
    if ctx.trace.is_on:
        ctx.trace.note(**access_notes(entities, where))
    if not entities.count:
        return np.empty(0, dtype=np.int64)
    key = entities.type.key if isinstance(entities.type, NodeType) else ()
    named = anchor(key, where, ctx.value_of)
    if named is not None:
        found = entities.find(named.column, named.texts)
        positions: Positions = np.sort(found.column(ROW_ID).to_numpy().astype(np.int64))
        left = tuple(predicate for predicate in where if predicate is not named.predicate)
    else:
        pushed = [predicate for predicate in where if can_filter(predicate)]
        left = tuple(predicate for predicate in where if not can_filter(predicate))
        if pushed:
            positions = entities.matching(row_filter(pushed, ctx.value_of))
        else:
            positions = entities.positions()
    if not left:
        return positions
    rows = Bindings({variable: positions}, len(positions))
    return positions[passing(left, rows, ctx)]


# -- expansions --------------------------------------------------------------------


def _expand(step: plan.Expand, rows: Bindings, ctx: ReadContext) -> Bindings:
    edge = ctx.catalog.edges[step.edge_type]
    hops = EdgeExpansion(ctx, edge, step.direction, step.edge_variable is not None)
    targets = ctx.nodes(step.target_type)
    sources = rows.columns[step.source]
    if ctx.trace.is_on:
        ctx.trace.note(**expand_notes(step, hops.wiring.edges))
    several = step.max_hops > 1 and edge.source == edge.target
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


def _has_solution(steps: Sequence[plan.Step], rows: Bindings, ctx: ReadContext) -> Mask:
    degrees = _degrees(steps, rows, ctx)
    if degrees is not None:
        mask: Mask = degrees > 0
        return mask
    name, numbered = _numbered(rows)
    solved = np.zeros(rows.count, dtype=bool)
    solved[run_steps(steps, numbered, ctx).columns[name]] = True
    return solved


def _degrees(steps: Sequence[plan.Step], rows: Bindings, ctx: ReadContext) -> Positions | None:
    """How many solutions each row has, where that is only the number of its neighbours."""
    if len(steps) != 1 or not isinstance(steps[0], plan.Expand):
        return None
    step = steps[0]
    plain = not (step.closes or step.where or step.edge_where or step.edge_variable)
    if not plain or step.source not in rows.columns or (step.min_hops, step.max_hops) != (1, 1):
        return None
    hops = EdgeExpansion(ctx, ctx.catalog.edges[step.edge_type], step.direction)
    sources = rows.columns[step.source]
    if hops.strategy(sources) != "csr":
        return None
    with ctx.trace.operator(*step_text(step)) as done:
        degrees = hops.degrees(sources)
        ctx.trace.note(answered_from="degrees")
        done.rows = int(degrees.sum())
    return degrees


def _any_solution(
    branches: Sequence[Sequence[plan.Step]], rows: Bindings, ctx: ReadContext
) -> Mask:
    solved = np.zeros(rows.count, dtype=bool)
    for steps in branches:
        open_ = np.flatnonzero(~solved)
        with ctx.trace.operator("branch") as done:
            solved[open_] = _has_solution(steps, rows.take(open_), ctx)
            done.rows = int(solved[open_].sum())
    return solved


def _counted(step: plan.CountJoin, rows: Bindings, ctx: ReadContext) -> Mask:
    degrees = _degrees(step.steps, rows, ctx) if step.function == "count" else None
    if degrees is not None and step.argument is None:
        result = pa.array(degrees)
    else:
        name, numbered = _numbered(rows)
        solutions = run_steps(step.steps, numbered, ctx)
        owners = solutions.columns[name]
        values = None if step.argument is None else operand(step.argument, solutions, ctx)
        result = aggregate_by(step.function, owners, values, rows.count)
    wanted = operand(step.value, rows, ctx)
    return mask_of(compare(result, step.op, wanted), rows.count)


def _optional(
    steps: Sequence[plan.Step], introduces: Sequence[str], rows: Bindings, ctx: ReadContext
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
