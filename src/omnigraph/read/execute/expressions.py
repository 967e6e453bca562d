"""Expressions: one array per expression, aligned with the rows of the bindings.

Owns the result columns of a query, from the rows it bound. Reads a property only for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.lang.query import plan
from omnigraph.lang.structural import TYPE
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.read.access.entities import NO_NODE, Entities, FoundRows
from omnigraph.read.access.entity_sets import EntitySet
from omnigraph.read.execute.bindings import Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.plan.planner import shown_properties
from omnigraph.rows.filters import arrow_values
from omnigraph.storage.budget import need, took
from omnigraph.storage.tables.columns import arrow_field


def operand(value: plan.Scalarish, bindings: Bindings, ctx: ReadContext) -> pa.Array | pa.Scalar:
    """The values of an operand: an array for a property, else one scalar."""
    if isinstance(value, plan.Property):
        found = ctx.variables[value.variable]
        return _values(found, value.name, value.type, bindings.columns[value.variable])
    return constant(ctx.value_of(value), compared_type(value))


def _values(
    found: Entities | EntitySet | FoundRows, name: str, type_: ValueType, positions: Positions
) -> pa.Array:
    """A property; of several types, as far as they have it in the type that is asked for."""
    if isinstance(found, EntitySet):
        return found.values_as(name, positions, arrow_field(name, type_).type)
    return found.values(name, positions)


def compared_type(value: plan.Scalarish) -> ValueType:
    """The type in which an operand is compared: a constant keeps all its digits."""
    type_ = value.type
    is_narrow = type_.scalar is Scalar.F32 and not isinstance(value, plan.Property)
    return replace(type_, scalar=Scalar.F64) if is_narrow else type_


def constant(value: Any, type_: ValueType) -> pa.Scalar:
    """A constant as a scalar of the type it has in storage."""
    stored = arrow_field("", type_).type
    if value is None:
        return pa.scalar(None, stored)
    if not isinstance(value, tuple):
        return arrow_values([value], type_.scalar)[0]
    items = pa.array(value, pa.float32()) if type_.is_vector else arrow_values(value, type_.scalar)
    whole = pa.ListArray.from_arrays([0, len(items)], items)
    return whole.cast(stored)[0] if len(items) or not type_.is_vector else pa.scalar(None, stored)


def repeated(value: pa.Scalar, count: int) -> pa.Array:
    """A scalar for every row."""
    # Arrow cannot repeat a list no times.
    if not value.is_valid or not count:
        return pa.nulls(count, value.type)
    need(count * 8)
    return took(pa.repeat(value, count))


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
        if isinstance(value, plan.Property):
            names.setdefault(value.variable, []).append(value.name)
    for variable, wanted in names.items():
        ctx.variables[variable].bring(wanted, rows.columns[variable])


def output(value: plan.Output, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """One column."""
    match value:
        case plan.Property():
            found = operand(value, rows, ctx)
            return took(found.combine_chunks()) if isinstance(found, pa.ChunkedArray) else found
        case plan.NodeRef():
            return node_objects(value, rows, ctx)
        case plan.ParamRef() | plan.Const() | plan.Now():
            return repeated(constant(ctx.value_of(value), value.type), rows.count)
        case plan.Aggregate():
            raise AssertionError("an aggregate is the column of a group, not of a row")
        case plan.Score(ranking):
            return pa.array(ctx.scores[ranking](rows), from_pandas=True)


def node_objects(node: plan.NodeRef, rows: Bindings, ctx: ReadContext) -> pa.Array:
    """Nodes as objects: `@id` and every property except blobs and vectors.

    One of several types has its `@type`, and the properties of its interface.
    """
    entities = ctx.variables[node.variable]
    positions = rows.columns[node.variable]
    type_ = ctx.catalog.nodes_called(node.node_type)
    names = shown_properties(type_)
    entities.bring(names, positions)
    types = {name: found.type for name, found in type_.properties.items()}
    values = [_values(entities, name, types.get(name, plan.TEXT), positions) for name in names]
    objects = pa.StructArray.from_arrays(values, names, mask=pa.array(positions == NO_NODE))
    del values  # which are the parts of the objects, and count once
    return took(objects)
