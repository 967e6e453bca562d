"""Rows that searches lead to: bound to the ends of walks and to ways, all at once or in pieces.

Owns what becomes of a row whose ends were found, and forgetting ways that nobody wants any more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.lang.query import plan
from omnigraph.read.access.entity_sets import Many
from omnigraph.read.access.joined_hops import PlannedHops
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import passing
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.products import FirstRows
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.execute.step_rules import HasSolution
from omnigraph.read.execute.walks import Walked, walked
from omnigraph.read.plan.physical import ExpandEdges
from omnigraph.storage.budget import need


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
    each = distinct(found)
    ctx.variables[step.target] = targets
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
