"""Candidates: the nodes that a ranking may choose from, and what a search says about them.

Owns both by position. Ranks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.lang.query import plan
from omnigraph.read.access.entities import Entities
from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.rows.filters import can_filter, row_filter
from omnigraph.rows.sql_conditions import Condition
from omnigraph.storage.indexes.table_indexes import is_indexed
from omnigraph.storage.tables.table import is_filterable

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Some nodes, ascending, and the condition that storage knows them by, if any."""

    positions: Positions
    condition: Condition | None = None


def condition_of(
    entities: Entities, where: Sequence[plan.Predicate], ctx: ReadContext
) -> Condition | None:
    """The predicates as one condition, if storage decides all of them through indexes."""
    if not entities.count or not all(can_filter(predicate) for predicate in where):
        return None
    wanted = row_filter(where, ctx.value_of, entities.names)
    if wanted.kept or wanted.memberships:
        return None
    if wanted.sql is None and not is_filterable(entities.table):
        return None
    if not all(is_indexed(entities.table, name) for name in wanted.columns):
        return None
    return wanted.condition


@dataclass(frozen=True, slots=True)
class Scores:
    """Positions in ascending order, each once, and the score of each."""

    positions: Positions
    numbers: Numbers

    @classmethod
    def of(cls, positions: Positions, numbers: Numbers) -> Scores:
        """From positions in any order."""
        order = np.argsort(positions, kind="stable")
        return cls(positions[order], numbers[order])

    def among(self, pool: Positions) -> Scores:
        """Those of a pool, which ascends."""
        kept = among(self.positions, pool)
        return Scores(self.positions[kept], self.numbers[kept])

    def lowest(self, count: int) -> tuple[Scores, bool]:
        """So many with the lowest scores and those as low as the last; whether others are left."""
        if len(self.numbers) <= count:
            return self, False
        kept = self.numbers <= np.partition(self.numbers, count - 1)[count - 1]
        return Scores(self.positions[kept], self.numbers[kept]), not bool(kept.all())

    def at(self, wanted: Positions) -> Numbers:
        """The score of each, NaN for those that have none."""
        places = np.searchsorted(self.positions, wanted)
        places = np.minimum(places, max(len(self.positions) - 1, 0))
        found = np.full(len(wanted), np.nan)
        if len(self.positions):
            hit = self.positions[places] == wanted
            found[hit] = self.numbers[places[hit]]
        return found


def among(wanted: Positions, found: Positions) -> Mask:
    """Which of the positions are among others, which ascend."""
    if not len(found):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
    mask: Mask = found[places] == wanted
    return mask
