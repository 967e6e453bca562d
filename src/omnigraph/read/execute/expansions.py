"""Expansions: rows widened by what edges lead to, all at once or in pieces.

Owns single hops, plain walks, closing a pattern, dropping ends that do not pass, and forgetting
ways that nobody wants any more. How searches under conditions walk is for others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.lang.query import plan
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.access.entity_sets import Many, translated
from omnigraph.read.access.expand import EdgeExpansion, ExpandedRows, walk
from omnigraph.read.access.joined_hops import PlannedHops
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import passing
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.products import FirstRows
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.execute.walking.step_rules import HasSolution
from omnigraph.read.execute.walking.walks import Walked, walked
from omnigraph.read.plan.physical import ExpandEdges
from omnigraph.storage.budget import need, took


def expanded(planned: ExpandEdges, rows: Bindings, ctx: ReadContext) -> Bindings:
    """The rows that one hop leads to, or several without conditions on the way."""
    step, hops = planned.step, PlannedHops(planned, ctx)
    sources = rows.columns[step.source]
    if ctx.trace.is_on:
        ctx.trace.note(**planned.notes)
    several = step.max_hops != 1 or not step.min_hops
    if step.closes and step.edge_variable is None and not several:
        ends = rows.columns[step.target]
        return rows.keep(hops.once().connects(sources, ends) & (ends != NO_NODE))
    steps = _steps(step, hops, sources, several=several)
    if step.closes:
        met = steps.targets == rows.columns[step.target][steps.origins]
        steps = _kept(steps, met)
    if not step.closes:
        ctx.variables[step.target] = hops.targets
    if step.where:
        steps = _kept(steps, targets_passing(step, steps.targets, hops.targets, ctx))
    found = _of_origins(rows, step.source, steps)
    if not step.closes:
        found = found.bind(step.target, steps.targets)
    if step.edge_variable is not None and steps.edges is not None:
        ctx.variables[step.edge_variable] = ctx.edges_of(step.edge_types)
        found = found.bind(step.edge_variable, steps.edges)
    return found.keep(passing(step.edge_where, found, ctx)) if step.edge_where else found


def _steps(
    step: plan.Expand, hops: PlannedHops, sources: Positions, *, several: bool
) -> ExpandedRows:
    if several:
        chained, every = hops.chained()
        starts = translated(sources, hops.sources, every)
        found = walk(chained, starts, step.min_hops, step.max_hops)
        targets = translated(found.targets, every, hops.targets)
        if targets is found.targets:
            return found
        return _kept(ExpandedRows(found.origins, targets), targets != NO_NODE)
    once = hops.once()
    if hops.ctx.in_any_order and isinstance(once, EdgeExpansion):
        stored = once.stored(sources)
        if stored is not None:
            return stored
    return once.from_(sources)


def _kept(steps: ExpandedRows, mask: Mask) -> ExpandedRows:
    need(2 * steps.origins.nbytes + (0 if steps.edges is None else steps.edges.nbytes))
    edges = None if steps.edges is None else took(steps.edges[mask])
    return ExpandedRows(took(steps.origins[mask]), took(steps.targets[mask]), edges)


def _of_origins(rows: Bindings, source: str, steps: ExpandedRows) -> Bindings:
    """The row that each step is of."""
    if steps.are_whole and not rows.values and set(rows.columns) == {source}:
        # Rows that are all nodes in order: a row and its node have one number.
        return Bindings({source: steps.origins}, len(steps.origins))
    return rows.take(steps.origins)


def searched_rows(
    planned: ExpandEdges, rows: Bindings, ctx: ReadContext, has_solution: HasSolution
) -> Bindings:
    """Walks under conditions, between ends that are known, and ways."""
    if ctx.trace.is_on:
        ctx.trace.note(**planned.notes)
    pieces = [
        _reached(planned, rows, found, ctx) for found in walked(planned, rows, ctx, has_solution)
    ]
    if not pieces:
        return no_rows(planned, rows, ctx)
    return pieces[0].stacked(*pieces[1:]) if len(pieces) > 1 else pieces[0]


def in_pieces(
    planned: ExpandEdges, rows: Bindings, ctx: ReadContext, has_solution: HasSolution
) -> Iterator[Bindings]:
    """The same, a few starts at a time."""
    if ctx.trace.is_on:
        ctx.trace.note(**planned.notes)
    for found in walked(planned, rows, ctx, has_solution, in_pieces=True):
        yield _reached(planned, rows, found, ctx)


def no_rows(planned: ExpandEdges, rows: Bindings, ctx: ReadContext) -> Bindings:
    """No rows, with what the step binds."""
    nothing = np.empty(0, dtype=np.int64)
    return _reached(planned, rows, Walked(nothing, nothing, nothing), ctx)


def _reached(planned: ExpandEdges, rows: Bindings, found: Walked, ctx: ReadContext) -> Bindings:
    """Rows with the ends that they lead to, as far as these pass."""
    step, targets = planned.step, PlannedHops(planned, ctx).targets
    if not step.closes:
        ctx.variables[step.target] = targets
    reached = rows.take(found.origins)
    if not step.closes:
        reached = reached.bind(step.target, found.ends)
    if step.way is not None and found.ways is not None:
        reached = reached.bind(step.way.variable, found.ways)
    if not step.where or not reached.count:
        return reached
    return reached.keep(targets_passing(step, found.ends, targets, ctx))


def targets_passing(step: plan.Expand, found: Positions, targets: Many, ctx: ReadContext) -> Mask:
    """Which of the targets pass the predicates on them; each is looked at once."""
    ctx.variables[step.target] = targets
    extent = int(found.max(initial=-1)) + 1
    if extent <= len(found) and int(found.min(initial=0)) >= 0:
        # Marking so many costs less than sorting them.
        need(2 * extent + found.nbytes)
        marks = np.zeros(extent, dtype=bool)
        marks[found] = True
        each = took(np.flatnonzero(marks))
        marks[each] = passing(step.where, Bindings({step.target: each}, len(each)), ctx)
        passed: Mask = took(marks[found])
        return passed
    each = distinct(found)
    rows = Bindings({step.target: each}, len(each))
    need(found.nbytes)
    mask: Mask = passing(step.where, rows, ctx)[np.searchsorted(each, found)]
    return mask


def forget_others(variable: str, ctx: ReadContext, first: FirstRows) -> None:
    """Of the ways that were found, keep only those of rows that are still wanted."""
    ways = ctx.variables[variable]
    if isinstance(ways, Ways) and first.rows is not None:
        kept = ways.only(first.rows.columns[variable])
        first.rows = first.rows.bind(variable, kept)
