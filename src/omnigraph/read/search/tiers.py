"""Tiers: the order of the nearest that storage finds, the same however many are wanted.

Owns that order. A vector index that is asked for more looks further, and may then find what
it missed before. So it is asked for numbers of nodes that follow from the query alone: first
for a few, then for many times as many. Each time what is new comes after all that was there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from omnigraph.read.execute.bindings import Positions
from omnigraph.read.search.candidates import Numbers, Scores, among
from omnigraph.read.search.vectors import Vector, Vectors

# So many nodes are in the first tier.
FIRST = 128
# And so many if the index is rough, so that each of them costs looking at some vectors.
FIRST_ROUGH = 16
# Every tier is so many times as large as the one before.
GROWTH = 8
# No two distances are so far from each other.
_APART = 4.0


def _nothing() -> Scores:
    return Scores(np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(slots=True)
class Tiers:
    """The nearest of a pool to a query, None for all nodes, as far as they were asked for.

    ``size`` is how many are found with the next tier. The last one has all that are left.
    """

    vectors: Vectors
    query: Vector
    pool: Positions | None
    size: int
    distances: Scores = field(default_factory=_nothing)
    keys: Scores = field(default_factory=_nothing)
    """Smaller is better: by tier, and within it by distance."""
    is_complete: bool = False
    _depth: int = 0

    def first(self, count: int) -> tuple[Positions, bool]:
        """So many in their order, and those with the same place as the last; whether it is all."""
        while len(self.keys.positions) < count and not self.is_complete:
            self._look_further()
        best, is_cut = self.keys.lowest(count)
        return best.positions, self.is_complete and not is_cut

    def _look_further(self) -> None:
        pool, vectors = self.pool, self.vectors
        self.is_complete = self.size >= (vectors.entities.count if pool is None else len(pool))
        if self.is_complete:
            found = vectors.every(pool, self.query)
        else:
            found = vectors.stored(pool, self.query, self.size)
        is_new = ~among(found.positions, self.distances.positions)
        positions, numbers = found.positions[is_new], found.numbers[is_new]
        self.distances = _with(self.distances, positions, numbers)
        self.keys = _with(self.keys, positions, numbers + _APART * self._depth)
        self.size *= GROWTH
        self._depth += 1


def tiers(vectors: Vectors, query: Vector, pool: Positions | None, *, at_least: int) -> Tiers:
    """The tiers of a query that always wants some nodes."""
    return Tiers(vectors, query, pool, max(FIRST_ROUGH if vectors.is_rough else FIRST, at_least))


def _with(known: Scores, positions: Positions, numbers: Numbers) -> Scores:
    return Scores.of(
        np.concatenate([known.positions, positions]), np.concatenate([known.numbers, numbers])
    )
