"""Group keys: what rows are grouped by, as arrays that are told apart without reading much.

Owns that nodes are told apart by their positions, properties by codes that are kept, and what is
computed of one property by being computed once for each of its values. Groups nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.lang.expressions import leaves_of
from omnigraph.lang.query import plan
from omnigraph.read.execute.bindings import POSITION, Bindings, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.expressions import output
from omnigraph.read.execute.grouping import group_rows
from omnigraph.storage.budget import need, took

Key: TypeAlias = pa.Array | Positions
# So many rows of a value make it worth while to compute something for each value once.
SHARED = 8


def group_keys(values: Sequence[plan.Output], rows: Bindings, ctx: ReadContext) -> list[Key]:
    """Arrays that are equal in the same rows as these values are, perhaps fewer."""
    keys: list[Key] = []
    computed: dict[plan.Property, list[plan.Output]] = {}
    for value in values:
        only = _only_property(value)
        if only is None or only == value:
            keys.append(_key(value, rows, ctx))
        else:
            computed.setdefault(only, []).append(value)
    for only, several in computed.items():
        shared = _once_each(only, several, rows, ctx)
        keys += [output(one, rows, ctx) for one in several] if shared is None else [shared]
    return keys


def _key(value: plan.Output, rows: Bindings, ctx: ReadContext) -> Key:
    if isinstance(value, plan.NodeRef):
        return rows.columns[value.variable]
    if isinstance(value, plan.Property):
        codes = ctx.variables[value.variable].codes(value.name, rows.columns[value.variable])
        if codes is not None:
            return codes
    return output(value, rows, ctx)


def _only_property(value: plan.Output) -> plan.Property | None:
    """The one property that a value is told by, with constants; None where there is more to it."""
    if isinstance(value, plan.NodeRef | plan.Score | plan.Aggregate):
        return None
    found = {leaf for leaf in leaves_of(value) if not isinstance(leaf, plan.Fixed)}
    only = found.pop() if len(found) == 1 else None
    return only if isinstance(only, plan.Property) else None


def _once_each(
    only: plan.Property, values: Sequence[plan.Output], rows: Bindings, ctx: ReadContext
) -> Positions | None:
    """One number for what is computed of a property; None where few rows share a value of it."""
    bound, positions = ctx.variables[only.variable], rows.columns[only.variable]
    codes = bound.codes(only.name, positions)
    if codes is None or SHARED * (int(codes.max(initial=0)) + 1) > rows.count:
        return None
    need(2 * POSITION * rows.count)
    # Some row of each value; codes that no row has are not looked at.
    row_of = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    row_of[codes] = np.arange(rows.count)
    used = np.flatnonzero(row_of >= 0)
    some = rows.take(row_of[used])
    groups = group_rows([output(value, some, ctx) for value in values], some.count)
    table = np.zeros(len(row_of), dtype=np.int64)
    table[used] = groups.of_row
    return took(table[codes])
