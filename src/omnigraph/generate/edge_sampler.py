"""Fans: which nodes the edges of one type join.

Owns the two skews (a few sources have many edges, a few targets are found by many) and that no
two edges join the same pair. Knows nodes by their numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from omnigraph.generate.draws import Draws, Integers, Scattering, distinct_ranks


@dataclass(frozen=True)
class EdgeSampler:
    """So many edges from ``sources`` to ``targets``.

    ``even`` is the part of the edges that all sources share alike; ``power`` is how much targets
    differ: with 3 the number of targets with d edges falls like d to the power of -2.5.
    """

    draws: Draws
    name: str
    sources: int
    targets: int
    edges: int
    even: float
    power: int
    within_one_type: bool = False
    """Sources and targets are the same nodes, and none has an edge to itself."""

    def ends(self, rows: Integers) -> tuple[Integers, Integers]:
        """The numbers of the source and of the target of some edges."""
        if not len(rows):
            return rows, rows
        # Edges come in no order of their sources, as they do from the world.
        ordinals = self._order.place(rows)
        source_ranks = np.searchsorted(self._starts, ordinals, side="right") - 1
        first = self._starts[source_ranks]
        count = self._starts[source_ranks + 1] - first
        sources = self._source_order.place(source_ranks)
        fractions = self.draws.unit(f"{self.name}.target", rows)
        others = self.targets - self.within_one_type
        ranks = distinct_ranks(ordinals - first, count, fractions, others, self.power)
        if self.within_one_type:
            ranks += ranks >= self._target_order.number(sources)
        return sources, self._target_order.place(ranks)

    @cached_property
    def _order(self) -> Scattering:
        return self.draws.scattering(f"{self.name}.order", self.edges)

    @cached_property
    def _source_order(self) -> Scattering:
        return self.draws.scattering(f"{self.name}.sources", self.sources)

    @cached_property
    def _target_order(self) -> Scattering:
        return self.draws.scattering(f"{self.name}.targets", self.targets)

    @cached_property
    def _starts(self) -> Integers:
        """Where the edges of each source begin, busy sources first; and where they end."""
        numbers = np.arange(self.sources + 1, dtype=np.uint64)
        alike = self._alike()
        starts = (numbers * np.uint64(alike) // np.uint64(self.sources)).astype(np.int64)
        if alike < self.edges:
            skewed = np.sqrt(numbers.astype(np.float64) / self.sources) * (self.edges - alike)
            starts += skewed.astype(np.int64)
        return starts

    def _alike(self) -> int:
        """How many edges are shared alike: more than asked for where targets would run out."""
        share, root = 1 / self.sources, 1 / sqrt(self.sources)
        least = round(self.edges * self.even)
        # Three: each of the two roundings can add one, and so can their sum.
        excess = self.edges * root + 3 - (self.targets - self.within_one_type)
        if excess > 0:
            least = max(
                least, self.edges if self.sources == 1 else int(excess / (root - share)) + 1
            )
        return min(least, self.edges)
