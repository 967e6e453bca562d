"""The engine: one physical plan over one snapshot, to one table.

Owns doing what the plan says after the rows are bound: group, distinct, order, cut,
project. Everything is whole arrays; a property is read when a column needs it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.read.execute.bindings import POSITION, Bindings, Positions
from omnigraph.read.execute.bound_rows import BoundRows
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import bring, output, ties_of
from omnigraph.read.execute.folding import aggregates_in, fold
from omnigraph.read.execute.group_keys import group_keys
from omnigraph.read.execute.grouping import group_rows
from omnigraph.read.execute.operators import run_steps, solutions
from omnigraph.read.execute.ordering import (
    key_ranks,
    leading_rows,
    ordered_rows,
    that_may_come_first,
    that_may_lead,
)
from omnigraph.read.execute.products import FirstRows
from omnigraph.read.execute.trace import Operator
from omnigraph.read.plan.physical import (
    PhysicalPlan,
    TailStep,
    bound_variables,
    comes_as_found,
    order_is_settled,
)
from omnigraph.read.plan.text import tail_text
from omnigraph.rows.arithmetic import alike
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import LITTLE, beside, need, took

if TYPE_CHECKING:
    from omnigraph.read.search.ranking import RankedRead

# A node that is ranked takes as long as so many rows.
RANKED = 3


def execute(planned: PhysicalPlan, ctx: ReadContext) -> pa.Table:
    """The result of a read, as it was planned."""
    read = planned.read
    ctx = replace(ctx, in_any_order=order_is_settled(planned))
    most = None if read.per is None else _row_count(read.per.count, "limit", ctx)
    limit, offset = _row_count(read.limit, "limit", ctx), _row_count(read.offset, "offset", ctx)
    cut = _Cut(limit, offset, most)
    ranked = _ranked(planned, ctx)
    rows, shown = Bindings.start(), pa.table({})
    if read.rank is None:
        rows = _bound(planned, ctx, cut)
        if ranked is not None:
            beside(rows.count, partial(ranked.fuse_all, rows))
    for step in planned.tail:
        ctx.budget.operator = partial(_described, read, step)
        ctx.budget.look()
        match step:
            case "union":
                shown = _united(planned, ctx)
            case "compute":
                rows = run_steps(planned.late, rows, ctx)
            case "rank" | "rank all":
                rows = _by_rank(ranked, None if step == "rank all" else cut)
            case "order rows":
                rows = beside(rows.count, partial(_ordered, planned, rows, ctx, cut))
            case "project":
                shown = beside(rows.count, partial(_projected, read, rows, ctx))
            case "aggregate":
                shown = beside(rows.count, partial(_grouped, read, rows, ctx))
            case "distinct":
                shown = beside(shown.num_rows, partial(_distinct, shown, ctx))
            case "distinct and cut":
                shown = cut.of(beside(shown.num_rows, partial(_distinct, shown, ctx)))
            case "order result":
                shown = beside(shown.num_rows, partial(_ordered_result, read, shown, ctx, cut))
    # Nobody gets rows after the time that they were wanted for.
    ctx.budget.look()
    return shown


def _bound(planned: PhysicalPlan, ctx: ReadContext, cut: _Cut) -> Bindings:
    """The rows that the steps bind; where only the first are wanted, of every piece the first."""
    if cut.end is None or planned.is_ranked or planned.tail[0] != "order rows":
        return run_steps(planned.steps, Bindings.start(), ctx)
    read = planned.read

    def choose(rows: Bindings) -> Bindings:
        chosen = beside(rows.count, partial(_chosen, planned, rows, ctx, cut.end))
        return rows.take(chosen)

    as_found = not read.order and comes_as_found(planned.steps)
    by = () if read.order or as_found else tuple(sorted({*bound_variables(planned.steps)}))
    first = FirstRows(cut.end, choose, by, as_found=as_found)
    start = Bindings.start()
    for rows in solutions(planned.steps, start, ctx, first):
        if not first.in_pieces:
            return rows
        first.add(rows)
    return first.rows or start


def _described(read: plan.ReadPlan, step: TailStep) -> str:
    return " ".join(tail_text(read, step))


@dataclass(frozen=True, slots=True)
class _Cut:
    """How many rows are wanted, and how many before them are not."""

    limit: int | None
    offset: int | None
    per: int | None = None
    """How many rows are wanted for each value of the keys of `limit … per`."""

    @property
    def end(self) -> int | None:
        """Beyond which row nothing matters."""
        if self.limit is None or self.per is not None:
            return None
        return self.limit + (self.offset or 0)

    def of(self, shown: pa.Table) -> pa.Table:
        """The rows of a result that are wanted."""
        return shown.slice(self.offset or 0, self.limit)


def _ranked(planned: PhysicalPlan, ctx: ReadContext) -> RankedRead | None:
    """What ranks the rows, and tells the scores that are returned; None where nothing does."""
    if not planned.is_ranked:
        return None
    from omnigraph.read.search.ranking import ranked_read

    return ranked_read(planned, ctx)


def _by_rank(ranked: RankedRead | None, cut: _Cut | None) -> Bindings:
    """Rows in the order of a ranking; where equal ones are folded, the cut comes after that."""
    if ranked is None or ranked.read.rank is None:
        raise AssertionError("a plan ranks rows that nothing ranks")
    ranking = ranked.read.rank.ranking
    among = max(ranked.ctx.nodes_of(found.node_type).count for found in ranked.read.rank.candidates)
    wanted = None if cut is None else cut.end
    rows = beside(RANKED * among, partial(ranked.rows, ranking, wanted))
    if cut is None or not cut.offset:
        return rows
    return rows.take(np.arange(rows.count)[cut.offset :])


def _ordered(planned: PhysicalPlan, rows: Bindings, ctx: ReadContext, cut: _Cut) -> Bindings:
    """One result row for every bound row: ordered and cut before anything is shown."""
    read = planned.read
    with _operator(read, "order rows", ctx) as done:
        rows = _that_may_stay(read, rows, ctx, cut)
        chosen = _chosen(planned, rows, ctx, cut.end)
        if cut.per is not None:
            keys = [output(value, rows, ctx) for value in _per_values(read)]
            chosen = leading_rows(chosen, keys, cut.per)
            chosen = chosen[: None if cut.limit is None else cut.limit + (cut.offset or 0)]
        rows = rows.take(chosen[cut.offset or 0 :])
        done.rows = rows.count
    return rows


def _that_may_stay(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext, cut: _Cut) -> Bindings:
    """Without rows that the first key alone tells to be beyond what is wanted.

    The other keys are then looked at for few.
    """
    if not read.order or (cut.per is None and (cut.end is None or cut.end >= rows.count // 2)):
        return rows
    named = {column.name: column.value for column in read.columns}
    first = read.order[0]
    value = named[first.by] if isinstance(first.by, str) else first.by
    found = output(value, rows, ctx)
    key, *_ = key_ranks(found, descending=first.descending, nulls=first.nulls)
    if cut.per is None:
        kept = that_may_come_first(key, cut.end or 0)
    else:
        keys = group_keys(_per_values(read), rows, ctx)
        kept = that_may_lead(key, group_rows(keys, rows.count).of_row, cut.per)
    return rows if len(kept) == rows.count else rows.take(kept)


def _ordered_result(read: plan.ReadPlan, shown: pa.Table, ctx: ReadContext, cut: _Cut) -> pa.Table:
    with _operator(read, "order result", ctx) as done:
        shown = cut.of(_sorted(read, shown, ctx, cut.per))
        done.rows = shown.num_rows
    return shown


def _operator(
    read: plan.ReadPlan, step: TailStep, ctx: ReadContext
) -> AbstractContextManager[Operator]:
    """An operator of the tail at work."""
    return ctx.trace.operator(*(tail_text(read, step) if ctx.trace.is_on else ("",)))


def _chosen(
    planned: PhysicalPlan, rows: Bindings, ctx: ReadContext, wanted: int | None
) -> Positions:
    read = planned.read
    if not read.order and comes_as_found(planned.steps):
        return np.arange(rows.count)[:wanted]
    if not read.order:
        # Any order will do, but the same one however the rows were found and wherever the
        # cut is: pages must neither repeat a row nor leave one out.
        columns = [rows.columns[name] for name in sorted(rows.columns)]
        need(3 * POSITION * rows.count)
        return (np.lexsort(columns[::-1]) if columns else np.arange(rows.count))[:wanted]
    named = {column.name: column.value for column in read.columns}
    keys = []
    for key in read.order:
        value = named[key.by] if isinstance(key.by, str) else key.by
        found = output(value, rows, ctx)
        keys.extend(key_ranks(found, descending=key.descending, nulls=key.nulls))
    ties = ties_of(read.tie_breakers, rows, ctx)
    return ordered_rows(keys, ties, rows.count, wanted)


def _projected(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext) -> pa.Table:
    with _operator(read, "project", ctx) as done:
        bring((column.value for column in read.columns), rows, ctx)
        arrays = [output(column.value, rows, ctx) for column in read.columns]
        done.rows = rows.count
    return _table(read, arrays)


def _grouped(read: plan.ReadPlan, rows: Bindings, ctx: ReadContext) -> pa.Table:
    """One row for each group; without keys there is one group, whatever the rows."""
    with _operator(read, "aggregate", ctx) as done:
        group_by = read.group_by or ()
        keys = group_keys(
            [column.value for column in read.columns if column.name in group_by], rows, ctx
        )
        groups = group_rows(keys, rows.count)
        count = groups.count if keys else 1
        firsts = rows.take(groups.first_rows)
        values = [column.value for column in read.columns]
        made = {
            aggregate: fold(aggregate, rows, groups.of_row, count, ctx)
            for aggregate in aggregates_in(values)
        }
        if not keys and not rows.count:
            firsts = Bindings({}, 1)
        groups_as_rows = BoundRows(firsts, ctx, made)
        arrays = [
            values_of(column.value, groups_as_rows)
            if column.name not in group_by
            and not isinstance(column.value, plan.NodeRef | plan.Score)
            else output(column.value, firsts, ctx)
            for column in read.columns
        ]
        done.rows = count
    return _table(read, arrays)


def _united(planned: PhysicalPlan, ctx: ReadContext) -> pa.Table:
    """The rows of all parts of a union, one part after the other."""
    tables: list[pa.Table] = []
    for number, branch in enumerate(planned.branches):
        with ctx.trace.operator("branch", f"{number + 1}") as done:
            tables.append(execute(branch, ctx))
            done.rows = tables[-1].num_rows
    columns = []
    for column in planned.read.columns:
        parts = [table.column(column.name).combine_chunks() for table in tables]
        columns.append(pa.concat_arrays(alike(parts)))
    return _table(planned.read, columns)


def _table(read: plan.ReadPlan, arrays: list[pa.Array]) -> pa.Table:
    table = pa.Table.from_arrays(arrays, names=[column.name for column in read.columns])
    is_large = sum(array.get_total_buffer_size() for array in arrays) >= LITTLE
    arrays.clear()  # they are the columns of the table, and count once
    return took(table) if is_large else table


def _distinct(shown: pa.Table, ctx: ReadContext) -> pa.Table:
    with ctx.trace.operator("distinct") as done:
        columns = [column.combine_chunks() for column in shown.columns]
        groups = group_rows(columns, shown.num_rows)
        need(int(shown.get_total_buffer_size()) * groups.count // max(1, shown.num_rows))
        kept = took(shown.take(pa.array(groups.first_rows))) if columns else shown
        done.rows = kept.num_rows
    return kept


def _sorted(read: plan.ReadPlan, shown: pa.Table, ctx: ReadContext, per: int | None) -> pa.Table:
    """Result rows by result columns; ties stay as they are."""
    if not read.order and per is None:
        return shown
    columns = _ResultRows(shown, ctx)
    keys: list[Positions] = []
    for key in read.order:
        found = columns.of(key.by)
        keys.extend(key_ranks(found, descending=key.descending, nulls=key.nulls))
    rows = ordered_rows(keys, (), shown.num_rows, None)
    if per is not None and read.per is not None:
        rows = leading_rows(rows, [columns.of(key) for key in read.per.keys], per)
    need(int(shown.get_total_buffer_size()))
    return took(shown.take(pa.array(rows)))


def _per_values(read: plan.ReadPlan) -> list[plan.Output]:
    named = {column.name: column.value for column in read.columns}
    keys = () if read.per is None else read.per.keys
    return [named[key] if isinstance(key, str) else key for key in keys]


@dataclass(frozen=True, slots=True)
class _ResultRows:
    """The rows of a result, whose columns expressions name."""

    shown: pa.Table
    ctx: ReadContext

    def of(self, key: str | plan.Expression) -> pa.Array:
        """A column, or an expression over some."""
        if isinstance(key, str):
            return self.shown.column(key).combine_chunks()
        names = self.shown.column_names
        values = {name: self.shown.column(name).combine_chunks() for name in names}
        return values_of(key, BoundRows(Bindings({}, self.shown.num_rows, values), self.ctx))


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
