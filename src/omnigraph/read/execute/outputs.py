"""Outputs: the result columns of a query, from the rows it bound.

Owns projections: properties, whole nodes as objects, constants. Reads only the
properties that a column shows, only for the rows that are left.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.execute.bindings import Bindings
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import constant, operand, repeated
from omnigraph.read.plan.properties import shown_properties


def output(value: plan.Output, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """One column."""
    match value:
        case plan.Property():
            found = operand(value, rows, ctx)
            return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        case plan.NodeRef(variable):
            return node_objects(variable, rows, ctx)
        case plan.ParamRef() | plan.Const() | plan.Now():
            return repeated(constant(ctx.value_of(value), value.type), rows.count)
        case plan.Aggregate():
            raise AssertionError("an aggregate is the column of a group, not of a row")
        case plan.Score(ranking):
            return pa.array(ctx.scores[ranking](rows), from_pandas=True)


def node_objects(variable: str, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """Nodes as objects: `@id` and every property except blobs and vectors."""
    entities = ctx.variables[variable]
    positions = rows.columns[variable]
    names = shown_properties(entities.type)
    values = [entities.values(name, positions) for name in names]
    return pa.StructArray.from_arrays(values, names, mask=pa.array(positions == NO_NODE))
