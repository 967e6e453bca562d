"""Joins by value: rows and nodes that are equal in something, found by hash.

Owns what equals what across types of numbers. Never makes a pair that is not equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.read.execute.bindings import POSITION, Bindings, Positions
from omnigraph.read.execute.bound_rows import BoundRows, passing
from omnigraph.read.execute.context import ReadContext
from omnigraph.rows.conditions import repeated
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import need, took

NO_VALUE = -1


def joined(
    rows: Bindings, variable: str, found: Positions, on: Sequence[plan.Comparison], ctx: ReadContext
) -> Bindings:
    """Every row with every node that equals it in all of these."""
    nodes = Bindings({variable: found}, len(found))
    left = np.zeros(rows.count, dtype=np.int64)
    right = np.zeros(nodes.count, dtype=np.int64)
    alike = True
    for one in on:
        sides = _values(one.left, rows, ctx), _values(one.right, nodes, ctx)
        alike = alike and sides[0].type == sides[1].type
        codes = _codes(*sides)
        left, right = _combined(left, codes[: rows.count], right, codes[rows.count :])
    origins, places = _equal(left, right)
    made = rows.take(origins).bind(variable, took(found[places]))
    # Numbers of several kinds were compared as what is nearest to them.
    return made if alike else made.keep(passing(on, made, ctx))


def _values(value: plan.Expression, rows: Bindings, ctx: ReadContext) -> pa.Array:
    values = values_of(value, BoundRows(rows, ctx))
    if isinstance(values, pa.Scalar):
        return repeated(values, rows.count)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _codes(left: pa.Array, right: pa.Array) -> Positions:
    """A number for each distinct value of both; equal values have equal ones."""
    if left.type != right.type:
        are_whole = all(_is_whole(side.type) for side in (left, right))
        wanted = pa.int64() if are_whole else pa.float64()
        left, right = left.cast(wanted, safe=False), right.cast(wanted, safe=False)
    need(int(left.nbytes + right.nbytes) + 3 * POSITION * (len(left) + len(right)))
    values = pa.concat_arrays([left, right])
    if pa.types.is_floating(values.type):
        # Zero equals minus zero, and what is no number equals nothing.
        values = pc.add(values, pa.scalar(0.0, values.type))
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    codes = values.dictionary_encode().indices
    filled = codes.cast(pa.int64()).fill_null(NO_VALUE)
    return took(np.asarray(filled.to_numpy(zero_copy_only=False)))


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_)) and type_ != pa.uint64()


def _combined(
    left: Positions, more_left: Positions, right: Positions, more_right: Positions
) -> tuple[Positions, Positions]:
    """One number for two; nothing where one of them is nothing."""
    codes, more = np.concatenate([left, right]), np.concatenate([more_left, more_right])
    need(5 * codes.nbytes)
    absent = (codes == NO_VALUE) | (more == NO_VALUE)
    if codes.any():
        _, more = np.unique(codes * (int(more.max(initial=0)) + 1) + more, return_inverse=True)
        more = more.reshape(-1).astype(np.int64)
    joint = np.where(absent, NO_VALUE, more)
    return joint[: len(left)], joint[len(left) :]


def _equal(left: Positions, right: Positions) -> tuple[Positions, Positions]:
    """Every pair of places that hold the same number, ascending."""
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    begin = np.searchsorted(ordered, left)
    size = np.where(left == NO_VALUE, 0, np.searchsorted(ordered, left, side="right") - begin)
    whole = int(size.sum())
    need(4 * POSITION * whole)
    origins = took(np.repeat(np.arange(len(left)), size))
    shift = begin - (np.cumsum(size) - size)
    places = took(order[np.arange(whole) + np.repeat(shift, size)])
    return origins, places
