"""Expressions: one array per expression, aligned with the rows of the bindings.

Owns the result columns of a query, from the rows it bound. Reads a property only for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.lang.expressions import leaves_of
from omnigraph.lang.query import plan
from omnigraph.lang.structural import ID, TYPE
from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.access.entity_sets import EntitySet
from omnigraph.read.access.ways import Ways
from omnigraph.read.execute.bindings import POSITION, Bindings, Positions
from omnigraph.read.execute.bound_rows import BoundRows, property_of
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.plan.planner import shown_properties
from omnigraph.rows.conditions import repeated
from omnigraph.rows.constants import constant_scalar
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import need, took


def ids_of(variable: str, rows: Bindings, ctx: ReadContext) -> Callable[[Positions], pa.Array]:
    """What tells the ids that some of the rows have for a variable; read when it is asked."""

    def ids(chosen: Positions) -> pa.Array:
        return ctx.variables[variable].values("@id", rows.columns[variable][chosen])

    return ids


def ties_of(
    names: Iterable[str], rows: Bindings, ctx: ReadContext
) -> list[Callable[[Positions], pa.Array]]:
    """What tells rows apart that are equal otherwise: ids, and types where these may be several."""
    ties: list[Callable[[Positions], pa.Array]] = []
    for name in names:
        if name not in rows.columns:
            continue
        ties.append(ids_of(name, rows, ctx))
        if isinstance(ctx.variables[name], EntitySet):
            ties.append(partial(_types_of, name, rows, ctx))
    return ties


def _types_of(variable: str, rows: Bindings, ctx: ReadContext, chosen: Positions) -> pa.Array:
    return ctx.variables[variable].values(TYPE, rows.columns[variable][chosen])


def bring(values: Iterable[plan.Output], rows: Bindings, ctx: ReadContext) -> None:
    """Have the properties at hand that some columns show, by few requests."""
    names: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, plan.Aggregate | plan.Score | plan.NodeRef):
            continue
        for leaf in leaves_of(value):
            if isinstance(leaf, plan.Property):
                names.setdefault(leaf.variable, []).append(leaf.name)
    for variable, wanted in names.items():
        ctx.variables[variable].bring(wanted, rows.columns[variable])


def output(value: plan.Output, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """One column."""
    match value:
        case plan.NodeRef():
            return node_objects(value, rows, ctx)
        case plan.ParamRef() | plan.Const() | plan.Now():
            need(POSITION * rows.count)
            return took(repeated(constant_scalar(ctx.value_of(value), value.type), rows.count))
        case plan.Aggregate():
            raise AssertionError("an aggregate is the column of a group, not of a row")
        case plan.Score(ranking):
            return pa.array(ctx.scores[ranking](rows), from_pandas=True)
        case _:
            return values_of(value, BoundRows(rows, ctx))


def node_objects(node: plan.NodeRef, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """Nodes as objects: `@id` and every property except blobs and vectors.

    One of several types has its `@type`, and the properties of its interface.
    """
    entities = ctx.variables[node.variable]
    positions = rows.columns[node.variable]
    if isinstance(entities, Ways):
        return way_objects(entities, positions)
    type_ = ctx.catalog.nodes_called(node.node_type)
    names = shown_properties(type_)
    entities.bring(names, positions)
    types = {name: found.type for name, found in type_.properties.items()}
    values = [property_of(entities, name, types.get(name, plan.TEXT), positions) for name in names]
    objects = pa.StructArray.from_arrays(values, names, mask=pa.array(positions == NO_NODE))
    del values  # which are the parts of the objects, and count once
    return took(objects)


def way_objects(ways: Ways, positions: Positions) -> pa.Array:
    """Ways as objects: their nodes and their edges, each as it would be shown by itself."""
    found = ways.laid_out(positions)
    missing = positions < 0
    nodes = _entity_objects(ways.nodes, found.nodes, {})
    ends = {
        "from": ways.edges.values("@src", found.edges),
        "to": ways.edges.values("@dst", found.edges),
    }
    edges = _entity_objects(ways.edges, found.edges, ends)
    lengths = np.maximum(np.diff(found.starts) - 1, 0)
    edge_starts = np.concatenate([[0], np.cumsum(lengths)])
    lists = [
        pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), values)
        for starts, values in ((found.starts, nodes), (edge_starts, edges))
    ]
    mask = pa.array(missing) if missing.any() else None
    return took(pa.StructArray.from_arrays(lists, ["nodes", "edges"], mask=mask))


def _entity_objects(
    entities: Entities | EntitySet, positions: Positions, more: dict[str, pa.Array]
) -> pa.Array:
    """Entities as parts of a way: with their type."""
    names = [name for name in shown_properties(entities.type) if name not in (TYPE, ID)]
    entities.bring([ID, *names], positions)
    if isinstance(entities, EntitySet):
        types = entities.values(TYPE, positions)
    else:
        same = pa.array(np.zeros(len(positions), dtype=np.int64))
        types = pa.array([entities.type.name]).take(same)
    columns = {TYPE: types, ID: entities.values(ID, positions), **more}
    columns |= {name: entities.values(name, positions) for name in names}
    values = [
        found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        for found in columns.values()
    ]
    return pa.StructArray.from_arrays(values, list(columns))
