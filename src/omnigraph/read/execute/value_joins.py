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
from omnigraph.read.execute.grouping import NULL, SPARSE, small_codes, value_codes
from omnigraph.read.execute.sorting import stable_order
from omnigraph.rows.conditions import repeated
from omnigraph.rows.evaluation import values_of
from omnigraph.storage.budget import need, took


def joined(
    rows: Bindings, variable: str, found: Positions, on: Sequence[plan.Comparison], ctx: ReadContext
) -> Bindings:
    """Every row with every node that equals it in all of these."""
    nodes = Bindings({variable: found}, len(found))
    codes: tuple[Positions, Positions] | None = None
    alike = True
    for one in on:
        sides = _values(one.left, rows, ctx), _values(one.right, nodes, ctx)
        alike = alike and sides[0].type == sides[1].type
        both = _codes(*sides)
        codes = both if codes is None else _combined(*codes, *both)
    if codes is None:
        raise AssertionError("a join is by some value")
    origins, places = _equal(*codes)
    made = rows.take(origins).bind(variable, took(found[places]))
    # Numbers of several kinds were compared as what is nearest to them.
    return made if alike else made.keep(passing(on, made, ctx))


def _values(value: plan.Expression, rows: Bindings, ctx: ReadContext) -> pa.Array:
    values = values_of(value, BoundRows(rows, ctx))
    if isinstance(values, pa.Scalar):
        return repeated(values, rows.count)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _codes(left: pa.Array, right: pa.Array) -> tuple[Positions, Positions]:
    """A number for each distinct value of both; equal values have equal ones."""
    if left.equals(right):
        codes = _codes_of(left)
        return codes, codes
    if left.type != right.type:
        are_whole = all(_is_whole(side.type) for side in (left, right))
        wanted = pa.int64() if are_whole else pa.float64()
        left, right = left.cast(wanted, safe=False), right.cast(wanted, safe=False)
    need(int(left.nbytes + right.nbytes) + 3 * POSITION * (len(left) + len(right)))
    codes = _codes_of(pa.concat_arrays([left, right]))
    return codes[: len(left)], codes[len(left) :]


def _codes_of(values: pa.Array) -> Positions:
    if pa.types.is_floating(values.type):
        # Zero equals minus zero, and what is no number equals nothing.
        values = pc.add(values, pa.scalar(0.0, values.type))
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    return small_codes(values, len(values))


def _is_whole(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_)) and type_ != pa.uint64()


def _combined(
    left: Positions, right: Positions, more_left: Positions, more_right: Positions
) -> tuple[Positions, Positions]:
    """One number for two; nothing where one of them is nothing."""
    if left is right and more_left is more_right:
        joint = _joint(left, more_left)
        return joint, joint
    need(2 * (left.nbytes + right.nbytes))
    joint = _joint(np.concatenate([left, right]), np.concatenate([more_left, more_right]))
    return joint[: len(left)], joint[len(left) :]


def _joint(codes: Positions, more: Positions) -> Positions:
    need(3 * codes.nbytes)
    absent = (codes == NULL) | (more == NULL)
    joint = codes * (int(more.max(initial=0)) + 1) + more
    if int(joint.max(initial=0)) > SPARSE * len(joint):
        joint = value_codes(pa.array(joint))
    joint[absent] = NULL
    return joint


def _equal(left: Positions, right: Positions) -> tuple[Positions, Positions]:
    """Every pair of places that hold the same number, ascending."""
    need(4 * POSITION * (len(left) + len(right)))
    order = stable_order(right)
    # The codes are few enough to tell of each one where its places begin.
    sizes = np.bincount(right, minlength=int(left.max(initial=0)) + 1)
    begins = np.cumsum(sizes) - sizes
    sizes[NULL] = 0
    begin, size = begins[left], sizes[left]
    whole = int(size.sum())
    need(4 * POSITION * whole)
    origins = took(np.repeat(np.arange(len(left)), size))
    shift = begin - (np.cumsum(size) - size)
    places = took(order[np.arange(whole) + np.repeat(shift, size)])
    return origins, places
