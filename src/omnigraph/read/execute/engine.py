"""The engine: one plan over one snapshot, to one table.

Owns the order of things after the rows are bound: group, distinct, order, cut,
project. Everything is whole arrays; a property is read when a column needs it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.read.execute.aggregates import aggregate_by
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import ids_of, operand
from omnigraph.read.execute.grouping import group_rows
from omnigraph.read.execute.operators import run_steps
from omnigraph.read.execute.ordering import ordered_rows, ranks
from omnigraph.read.execute.outputs import output
from omnigraph.read.plan.tail import DISTINCT, aggregate_text, order_text, project_text
from omnigraph.read.search.rankers import Rankers
from omnigraph.read.search.ranking import RankedRead, shown_scores


def execute(read: plan.ReadPlan, ctx: ReadContext) -> pa.Table:
    """The result of a read."""
    limit, offset = _row_count(read.limit, "limit", ctx), _row_count(read.offset, "offset", ctx)
    ranked = _ranked(read, ctx)
    if read.rank is not None:
        return _by_rank(read, read.rank.ranking, ranked, limit, offset)
    rows = run_steps(read.steps, Bindings.start(), ctx)
    ctx.budget.check(rows.size)
    ranked.fuse_all(rows)
    if read.group_by is not None:
        shown = _grouped(read, rows, ctx)
    elif read.distinct:
        shown = _distinct(_projected(read, rows, ctx), ctx)
    else:
        return _plain(read, rows, ctx, limit, offset)
    if read.group_by is not None and read.distinct:
        shown = _distinct(shown, ctx)
    text = order_text(read)
    if text is None:
        return shown
    with ctx.trace.operator(*text) as done:
        shown = _cut(_sorted(read, shown), limit, offset)
        done.rows = shown.num_rows
    return shown


def _ranked(read: plan.ReadPlan, ctx: ReadContext) -> RankedRead:
    """What ranks the rows, and tells the scores that are returned."""
    ranked = RankedRead(read, ctx, Rankers(ctx))
    for column in read.columns:
        if isinstance(column.value, plan.Score):
            ranking = column.value.ranking
            ctx.scores[ranking] = partial(shown_scores, ranking, rankers=ranked.rankers)
    return ranked


def _by_rank(
    read: plan.ReadPlan,
    ranking: plan.Ranking,
    ranked: RankedRead,
    limit: int | None,
    offset: int | None,
) -> pa.Table:
    """Rows in the order of a ranking; where equal ones are folded, the cut comes after that."""
    wanted = None if limit is None or read.distinct else limit + (offset or 0)
    rows = ranked.rows(ranking, wanted)
    ranked.ctx.budget.check(rows.size)
    if not read.distinct:
        return _projected(read, rows.take(np.arange(rows.count)[offset or 0 :]), ranked.ctx)
    return _cut(_distinct(_projected(read, rows, ranked.ctx), ranked.ctx), limit, offset)


def _plain(
    read: plan.ReadPlan, rows: Bindings, ctx: ReadContext, limit: int | None, offset: int | None
) -> pa.Table:
    """One result row for every bound row: ordered and cut before anything is shown."""
    wanted = None if limit is None else limit + (offset or 0)
    text = order_text(read)
    if text is not None:
        with ctx.trace.operator(*text) as done:
            chosen = _chosen(read, rows, ctx, wanted)
            rows = rows.take(chosen[offset or 0 :])
            done.rows = rows.count
    return _projected(read, rows, ctx)


def _chosen(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext, wanted: int | None) -> Positions:
    if not read.order:
        # Any order will do, but the same one however the rows were found and wherever the
        # cut is: pages must neither repeat a row nor leave one out.
        columns = [rows.columns[name] for name in sorted(rows.columns)]
        return (np.lexsort(columns[::-1]) if columns else np.arange(rows.count))[:wanted]
    named = {column.name: column.value for column in read.columns}
    keys = []
    for key in read.order:
        value = named[key.by] if isinstance(key.by, str) else key.by
        keys.append(ranks(output(value, rows, ctx), descending=key.descending))
    ties = [ids_of(name, rows, ctx) for name in read.tie_breakers if name in rows.columns]
    return ordered_rows(keys, ties, rows.count, wanted)


def _projected(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext) -> pa.Table:
    with ctx.trace.operator(*project_text(read)) as done:
        arrays = [output(column.value, rows, ctx) for column in read.columns]
        done.rows = rows.count
    return pa.Table.from_arrays(arrays, names=[column.name for column in read.columns])


def _grouped(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext) -> pa.Table:
    """One row for each group; without keys there is one group, whatever the rows."""
    with ctx.trace.operator(*aggregate_text(read)) as done:
        keys = [
            _group_key(column.value, rows, ctx)
            for column in read.columns
            if not isinstance(column.value, plan.Aggregate)
        ]
        groups = group_rows(keys, rows.count)
        count = groups.count if keys else 1
        firsts = rows.take(groups.first_rows)
        arrays = [
            _aggregated(column.value, rows, groups.of_row, count, ctx)
            if isinstance(column.value, plan.Aggregate)
            else output(column.value, firsts, ctx)
            for column in read.columns
        ]
        done.rows = count
    return pa.Table.from_arrays(arrays, names=[column.name for column in read.columns])


def _group_key(value: plan.Output, rows: Bindings, ctx: ReadContext) -> pa.Array | Positions:
    """Nodes are told apart by their positions; nothing of them is read for it."""
    if isinstance(value, plan.NodeRef):
        return rows.columns[value.variable]
    if isinstance(value, plan.Property):
        codes = ctx.variables[value.variable].codes(value.name, rows.columns[value.variable])
        if codes is not None:
            return codes
    return output(value, rows, ctx)


def _aggregated(
    aggregate: plan.Aggregate, rows: Bindings, groups: Positions, count: int, ctx: ReadContext
) -> pa.Array:
    argument = aggregate.argument
    if isinstance(argument, plan.NodeRef):
        positions = rows.columns[argument.variable]
        present = pa.array(positions, mask=positions < 0)
        return aggregate_by("count", groups, present, count)
    values = operand(argument, rows, ctx)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return aggregate_by(aggregate.function, groups, values, count)


def _distinct(shown: pa.Table, ctx: ReadContext) -> pa.Table:
    with ctx.trace.operator(*DISTINCT) as done:
        columns = [column.combine_chunks() for column in shown.columns]
        groups = group_rows(columns, shown.num_rows)
        kept = shown.take(pa.array(groups.first_rows)) if columns else shown
        done.rows = kept.num_rows
    return kept


def _sorted(read: plan.ReadPlan, shown: pa.Table) -> pa.Table:
    """Result rows by result columns; ties stay as they are."""
    if not read.order:
        return shown
    keys = [
        ranks(shown.column(_column_of(key, read)).combine_chunks(), descending=key.descending)
        for key in read.order
    ]
    rows = ordered_rows(keys, (), shown.num_rows, None)
    return shown.take(pa.array(rows))


def _column_of(key: plan.OrderKey, read: plan.ReadPlan) -> str:
    if isinstance(key.by, str):
        return key.by
    return next(column.name for column in read.columns if column.value == key.by)


def _cut(shown: pa.Table, limit: int | None, offset: int | None) -> pa.Table:
    return shown.slice(offset or 0, limit)


def _row_count(count: plan.RowCount | None, what: str, ctx: ReadContext) -> int | None:
    if count is None or isinstance(count, int):
        return count
    value = ctx.value_of(count)
    if isinstance(value, int) and value >= 0:
        return value
    raise ParamError(
        f"param '{count.name}': {what} is a number of rows, 0 or more; found {value}",
        details={"param": count.name},
    )
