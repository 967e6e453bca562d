"""Pools: the nodes that a ranking may choose from.

Owns telling when storage can find them by itself, with what the query says about them:
through indexes, that is, and never by looking at every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.lang.query import plan
from omnigraph.read.access.entities import Entities
from omnigraph.read.execute.bindings import Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.rows.filters import can_filter, row_filter
from omnigraph.storage.indexes.table_indexes import is_indexed
from omnigraph.storage.tables.table import is_filterable


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Some nodes, ascending, and the condition that storage knows them by, if any."""

    positions: Positions
    condition: pc.Expression | None = None


def condition_of(
    entities: Entities, where: Sequence[plan.Predicate], ctx: ReadContext
) -> pc.Expression | None:
    """The predicates as one condition, if storage decides all of them through indexes."""
    if not entities.count or not all(can_filter(predicate) for predicate in where):
        return None
    wanted = row_filter(where, ctx.value_of)
    if wanted.kept or wanted.memberships or not is_filterable(entities.table):
        return None
    if not all(is_indexed(entities.table, name) for name in wanted.columns):
        return None
    return wanted.expression
