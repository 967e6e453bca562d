"""Folding rows: what an aggregate makes of the rows of each group.

Owns evaluating its argument, and the lists that `collect` makes: in the order that is asked for,
then by the ids of the variables. Knows groups by numbers, whatever they are groups of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.lang.structural import ID
from omnigraph.read.access.entities import NO_NODE, Entities, FoundRows
from omnigraph.read.execute.aggregates import aggregate_by, counts_of_codes
from omnigraph.read.execute.bindings import POSITION, Bindings, Mask, Positions
from omnigraph.read.execute.bound_rows import BoundRows
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import output, ties_of
from omnigraph.read.execute.grouping import NULL, group_rows
from omnigraph.read.execute.ordering import key_ranks, ordered_rows
from omnigraph.rows.evaluation import constant_of, values_of
from omnigraph.storage.budget import need


def fold(
    aggregate: plan.Aggregate, rows: Bindings, groups: Positions, count: int, ctx: ReadContext
) -> pa.Array:
    """One value for each of ``count`` groups."""
    if aggregate.function == "collect":
        return _collected(aggregate, rows, groups, count, ctx)
    argument = aggregate.argument
    if argument is None:
        return aggregate_by(aggregate.function, groups, None, count)
    if isinstance(argument, plan.NodeRef):
        return _counted(rows.columns[argument.variable], aggregate, groups, count)
    if aggregate.function == "count" and isinstance(argument, plan.Property):
        bound, positions = ctx.variables[argument.variable], rows.columns[argument.variable]
        if argument.name == ID and isinstance(bound, Entities | FoundRows):
            # Whoever is there has an id, and nobody else of the type has it.
            return _counted(positions, aggregate, groups, count)
        if aggregate.distinct:
            codes = bound.codes(argument.name, positions)
            if codes is not None:
                return counts_of_codes(groups, codes, count)
    return aggregate_by(
        aggregate.function,
        groups,
        values_of(argument, BoundRows(rows, ctx)),
        count,
        distinct=aggregate.distinct,
        fraction=_fraction(aggregate, ctx),
    )


def _counted(
    positions: Positions, aggregate: plan.Aggregate, groups: Positions, count: int
) -> pa.Array:
    """How many nodes or edges there are."""
    if aggregate.distinct:
        # Nobody is the one below all positions.
        return counts_of_codes(groups, positions - NO_NODE + NULL, count)
    nobody = positions == NO_NODE
    return aggregate_by("count", groups[~nobody] if nobody.any() else groups, None, count)


def aggregates_in(values: Sequence[plan.Output]) -> list[plan.Aggregate]:
    """Every aggregate of some columns, each once."""
    found: dict[plan.Aggregate, None] = {}
    for value in values:
        if isinstance(value, plan.Score):
            continue
        waiting: list[plan.Expression | plan.NodeRef] = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, plan.Aggregate):
                found[part] = None
            else:
                waiting.extend(plan.parts_of(part))
    return list(found)


def _fraction(aggregate: plan.Aggregate, ctx: ReadContext) -> float:
    if aggregate.fraction is None:
        return 0.5
    value = constant_of(aggregate.fraction, ctx.value_of)
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    raise ParamError(f"`percentile` takes a part between 0 and 1, found {value}")


def _collected(
    aggregate: plan.Aggregate, rows: Bindings, groups: Positions, count: int, ctx: ReadContext
) -> pa.Array:
    """A list for each group, empty for one without anything to collect."""
    if aggregate.fields:
        kept = _present(aggregate, rows)
        rows, groups = rows.take(np.flatnonzero(kept)), groups[kept]
        names = [name for name, _ in aggregate.fields]
        parts = [output(value, rows, ctx) for _, value in aggregate.fields]
        values: pa.Array = pa.StructArray.from_arrays(parts, names)
    else:
        if aggregate.argument is None or isinstance(aggregate.argument, plan.NodeRef):
            raise AssertionError("nodes are collected as objects")
        values = values_of(aggregate.argument, BoundRows(rows, ctx))
        if values.null_count:
            known = pc.is_valid(values).to_numpy(zero_copy_only=False)
            values = values.filter(pa.array(known))
            rows, groups = rows.take(np.flatnonzero(known)), groups[known]
    order = _order(aggregate, rows, groups, ctx)
    groups = groups[order]
    if aggregate.distinct:
        firsts = group_rows([groups, values.take(pa.array(order))], len(groups)).first_rows
        firsts = np.sort(firsts)
        order, groups = order[firsts], groups[firsts]
    sizes = np.bincount(groups, minlength=count)
    if aggregate.limit is not None:
        most = _most(aggregate.limit, ctx)
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        kept = np.arange(len(groups)) - begins[groups] < most
        order, sizes = order[kept], np.minimum(sizes, most)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    need(2 * int(values.get_total_buffer_size()))
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(order)))


def _present(aggregate: plan.Aggregate, rows: Bindings) -> Mask:
    """The rows whose objects are of somebody: not all of their variables are missing."""
    variables = {
        name
        for _, value in aggregate.fields
        for name in plan.variables_of(value)
        if name in rows.columns
    }
    if not variables:
        return np.ones(rows.count, dtype=bool)
    found: Mask = np.any([rows.columns[name] != NO_NODE for name in variables], axis=0)
    return found


def _order(
    aggregate: plan.Aggregate, rows: Bindings, groups: Positions, ctx: ReadContext
) -> Positions:
    """Rows by group, then by the keys of the aggregate, then by ids."""
    need(2 * POSITION * rows.count)
    keys: list[Positions] = [groups]
    for key in aggregate.order:
        found = values_of(key.by, BoundRows(rows, ctx))
        keys.extend(key_ranks(found, descending=key.descending, nulls=key.nulls))
    named = sorted((name for name in rows.columns if name[0] not in "#@"), key=_id_column)
    return ordered_rows(keys, ties_of(named, rows, ctx), rows.count, None)


def _id_column(name: str) -> str:
    return f"{name}.id"


def _most(limit: plan.Fixed, ctx: ReadContext) -> int:
    value = ctx.value_of(limit)
    if isinstance(value, int) and value >= 0:
        return value
    name = limit.name if isinstance(limit, plan.ParamRef) else "limit"
    raise ParamError(
        f"param '{name}': limit is a number of rows, 0 or more; found {value}",
        details={"param": name},
    )
