"""The steps of a read: from one row that binds nothing to the rows of a query.

Owns running scans, expansions, filters and the blocks inside blocks as they were planned.
Binds positions only; what a row shows is decided afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.lang.query.plan_text import step_text
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.entity_sets import EntitySet, translated
from omnigraph.read.access.joined_hops import PlannedHops
from omnigraph.read.execute.bindings import POSITION, Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import BoundRows, passing
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expansions import (
    expanded,
    forget_others,
    in_pieces,
    no_rows,
    searched_rows,
)
from omnigraph.read.execute.folding import fold
from omnigraph.read.execute.products import PIECE, FirstRows, Product
from omnigraph.read.execute.value_joins import joined
from omnigraph.read.execute.walking.walks import is_searched
from omnigraph.read.execute.walking.way_steps import walk_ways
from omnigraph.read.plan.physical import (
    AccessPath,
    Block,
    ComputeRows,
    ExpandEdges,
    FilterRows,
    JoinBlocks,
    PhysicalStep,
    ScanNodes,
    WalkWays,
    is_open_ended,
)
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.rows.conditions import repeated
from omnigraph.rows.evaluation import values_of
from omnigraph.rows.filters import row_filter
from omnigraph.storage.budget import beside, need, took

_PLAIN_COUNT = plan.Aggregate("count", None, plan.COUNT_TYPE)


def run_steps(steps: Sequence[PhysicalStep], rows: Bindings, ctx: ReadContext) -> Bindings:
    """Run steps one after the other."""
    first, *others = solutions(steps, rows, ctx)
    return first.stacked(*others) if others else first


def solutions(
    steps: Sequence[PhysicalStep], rows: Bindings, ctx: ReadContext, first: FirstRows | None = None
) -> Iterator[Bindings]:
    """The same in pieces, since a product may be too large to be made before it is filtered.

    ``first`` says which rows are wanted, if not all: what cannot be among them is not made.
    """
    outer = ctx.budget.operator
    for number, step in enumerate(steps, 1):
        ctx.budget.operator = partial(_described, step)
        ctx.budget.look()
        if first is not None and isinstance(step, ExpandEdges) and is_open_ended(step.step):
            yield from _searched(step, rows, steps[number:], ctx, first)
            break
        name, detail = step_text(step.step) if ctx.trace.is_on else ("", "")
        with ctx.trace.operator(name, detail) as done:
            found = beside(_weight(step, rows), partial(_run, step, rows, ctx))
            done.rows = found.count
        if isinstance(found, Product):
            if first is None or not (first.by or first.as_found):
                found.refuse_if_endless(_scanned(step))
            yield from _multiplied(found, steps[number:], ctx, first)
            break
        rows = found
    else:
        yield rows
    ctx.budget.operator = outer


def _scanned(step: PhysicalStep) -> str:
    return step.step.variable if isinstance(step, ScanNodes) else ""


def _multiplied(
    product: Product, rest: Sequence[PhysicalStep], ctx: ReadContext, first: FirstRows | None
) -> Iterator[Bindings]:
    """The solutions of every piece of a product."""
    if first is not None:
        first.in_pieces = True
    else:
        ctx.budget.need(product.least_bytes(rest))
        if not rest:
            yield beside(product.count, product.whole)
            return
    begun = len(ctx.trace.operators)
    for number, piece in enumerate(product.pieces(first)):
        since = len(ctx.trace.operators)
        yield from solutions(rest, piece, ctx, first)
        if number:
            ctx.trace.fold(begun, since)


def _searched(
    planned: ExpandEdges,
    rows: Bindings,
    rest: Sequence[PhysicalStep],
    ctx: ReadContext,
    first: FirstRows,
) -> Iterator[Bindings]:
    """The solutions of every piece of a search, until enough of them are known."""
    first.in_pieces = True
    begun = len(ctx.trace.operators)
    pieces = in_pieces(planned, rows, ctx, _has_solution)
    number = 0
    while True:
        since = len(ctx.trace.operators)
        with ctx.trace.operator(*(step_text(planned.step) if ctx.trace.is_on else ("",))) as done:
            ctx.budget.operator = partial(_described, planned)
            piece = beside(_weight(planned, rows), partial(next, pieces, None))
            done.rows = 0 if piece is None else piece.count
        if piece is None and number:
            del ctx.trace.operators[since:]
            return
        yield from solutions(
            rest, no_rows(planned, rows, ctx) if piece is None else piece, ctx, first
        )
        if number:
            ctx.trace.fold(begun, since)
        number += 1
        if piece is None or first.is_full:
            return
        if planned.step.way is not None:
            forget_others(planned.step.way.variable, ctx, first)


def _described(step: PhysicalStep) -> str:
    return " ".join(step_text(step.step))


def _weight(step: PhysicalStep, rows: Bindings) -> int:
    """How many rows a step looks at, as far as that is known."""
    match step:
        case ScanNodes(_, path):
            return path.entities if path.naming is None else 0
        case ExpandEdges(_, path):
            builds = not path.is_cached and path.from_(rows.count) == "csr"
            return max(rows.count, path.edges if builds else 0)
    return rows.count


def _run(step: PhysicalStep, rows: Bindings, ctx: ReadContext) -> Bindings | Product:
    match step:
        case ScanNodes():
            return _scan(step, rows, ctx)
        case ExpandEdges() if is_searched(step.step):
            return searched_rows(step, rows, ctx, _has_solution)
        case ExpandEdges():
            return expanded(step, rows, ctx)
        case WalkWays():
            return walk_ways(step.step, rows, ctx)
        case FilterRows(plan.Filter(where)):
            return rows.keep(passing(where, rows, ctx))
        case ComputeRows(plan.Let(name, value)):
            return rows.compute(name, values_of(value, BoundRows(rows, ctx)))
        case ComputeRows(plan.ForEach() as each):
            return _each(each, rows, ctx)
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
        case plan.Fold():
            return rows.compute(joined.name, _folded(joined, block, rows, ctx))
        case plan.Optional():
            return _optional(block.steps, joined, rows, ctx)
    raise AssertionError(f"unknown join {joined}")


# -- scans -------------------------------------------------------------------------


def _scan(scan: ScanNodes, rows: Bindings, ctx: ReadContext) -> Bindings | Product:
    positions = select(scan, ctx)
    if not rows.columns and not rows.values:
        return rows.cross(scan.step.variable, positions)
    if scan.step.joins:
        return joined(rows, scan.step.variable, positions, scan.step.joins, ctx)
    product = Product(rows, Bindings({scan.step.variable: positions}, len(positions)))
    return product if product.count > PIECE else product.whole()


def select(scan: ScanNodes, ctx: ReadContext) -> Positions:
    """The nodes that a scan binds its variable to, ascending."""
    if ctx.trace.is_on:
        ctx.trace.note(**scan.notes)
    variable, path = scan.step.variable, scan.path
    ctx.variables[variable] = entities = ctx.nodes(scan.step.node_type)
    if isinstance(entities, EntitySet):
        positions = _positions_of_all(scan, entities, ctx)
    else:
        positions = _positions(entities, variable, path, ctx)
    if not path.left or not len(positions):
        return positions
    rows = Bindings({variable: positions}, len(positions))
    return positions[passing(path.left, rows, ctx)]


def _positions_of_all(scan: ScanNodes, every: EntitySet, ctx: ReadContext) -> Positions:
    """The nodes that the scans of several types find; what is left is decided of them together."""
    found = [np.empty(0, dtype=np.int64)]
    variable = scan.step.variable
    for one, part in zip(scan.parts or (), every.parts, strict=True):
        ctx.variables[variable] = part
        positions = _positions(part, variable, one.path, ctx)
        if one.path.left and len(positions):
            rows = Bindings({variable: positions}, len(positions))
            positions = positions[passing(one.path.left, rows, ctx)]
        found.append(translated(positions, part, every))
    ctx.variables[variable] = every
    need(sum(positions.nbytes for positions in found))
    return took(np.concatenate(found))


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
        wanted = row_filter(path.filtered, ctx.value_of, entities.names)
        return entities.matching(wanted, in_memory=path.access == "whole columns")
    return entities.positions()


# -- blocks inside blocks ------------------------------------------------------------


def _numbered(rows: Bindings) -> tuple[str, Bindings]:
    """The rows with their own number as one more column, so that solutions can be traced back."""
    name = f"@row{len(rows.columns)}"
    need(POSITION * rows.count)
    return name, rows.bind(name, took(np.arange(rows.count)))


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
    step, hops = block.counted.step, PlannedHops(block.counted, ctx).once()
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


def _folded(step: plan.Fold, block: Block, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """What the solutions of a block are worth, for each row."""
    if not step.is_correlated:
        # The same for every row.
        (only,) = _worth(step.value, block, Bindings.start(), ctx)
        return repeated(only, rows.count)
    return _worth(step.value, block, rows, ctx)


def _worth(value: plan.BlockValue, block: Block, rows: Bindings, ctx: ReadContext) -> pa.Array:
    if not isinstance(value, plan.Aggregate):
        solved = _has_solution(block, rows, ctx)
        return pa.array(solved if value == "exists" else ~solved)
    if value == _PLAIN_COUNT:
        degrees = _degrees(block, rows, ctx)
        if degrees is not None:
            return pa.array(degrees)
    name, numbered = _numbered(rows)
    found = run_steps(block.steps, numbered, ctx)
    return fold(value, found, found.columns[name], rows.count, ctx)


def _each(step: plan.ForEach, rows: Bindings, ctx: ReadContext) -> Bindings:
    """A row for each element of the lists."""
    lists = values_of(step.items, BoundRows(rows, ctx))
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.take(parents).compute(step.name, took(pc.list_flatten(lists)))


def _optional(
    steps: Sequence[PhysicalStep], step: plan.Optional, rows: Bindings, ctx: ReadContext
) -> Bindings:
    name, numbered = _numbered(rows)
    found = run_steps(steps, numbered, ctx)
    solved = np.zeros(rows.count, dtype=bool)
    solved[found.columns[name]] = True
    kept = {one: found.columns[one] for one in (*numbered.columns, *step.introduces)}
    named = (*numbered.values, *(one for one, _ in step.values))
    found = Bindings(kept, found.count, {one: found.values[one] for one in named})
    alone = numbered.take(np.flatnonzero(~solved))
    for variable in step.introduces:
        need(POSITION * alone.count)
        alone = alone.bind(variable, took(np.full(alone.count, NO_NODE, dtype=np.int64)))
    for one, type_ in step.values:
        known = found.values[one].type if found.count else arrow_type(type_)
        alone = alone.compute(one, pa.nulls(alone.count, known))
    every = found.stacked(alone)
    del found, alone
    need(2 * POSITION * every.count)
    order = np.argsort(every.columns[name], kind="stable")
    return every.take(order).without(name)
