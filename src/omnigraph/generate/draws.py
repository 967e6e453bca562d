"""Chance without state: what is drawn for a row depends on the seed, a name and the row alone.

Owns the numbers behind every made-up value, so that rows can be made in any order and in pieces
of any size. Uses whole numbers, `+ - * /` and square roots only: they are the same on every
machine, which powers and logarithms are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import gcd, sqrt

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Fractions = npt.NDArray[np.float64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws by the name of what is drawn and the number of the row."""

    seed: int

    def unit(self, name: str, rows: Integers) -> Fractions:
        """Evenly from 0 to below 1."""
        return (self._bits(name, rows) >> np.uint64(11)).astype(np.float64) / 2**53

    def below(self, name: str, rows: Integers, limit: int) -> Integers:
        """Evenly from the whole numbers 0 to below ``limit``."""
        return (self.unit(name, rows) * limit).astype(np.int64)

    def skewed(self, name: str, rows: Integers, limit: int, power: int = 2) -> Integers:
        """From the whole numbers 0 to below ``limit``, the small ones far more often."""
        return (steep(self.unit(name, rows), power) * limit).astype(np.int64)

    def scattering(self, name: str, size: int) -> Scattering:
        """A fixed order of so many things in which neighbours lie far apart."""
        size = max(size, 1)
        key = self._key(name)
        factor = int(size * _GOLDEN) + key % 1024
        while gcd(factor, size) != 1:
            factor += 1
        return Scattering(size, factor % size, (key >> 32) % size)

    def _bits(self, name: str, rows: Integers) -> npt.NDArray[np.uint64]:
        mixed = rows.astype(np.uint64) * _STEP + np.uint64(self._key(name))
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST_FACTOR
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND_FACTOR
        return mixed ^ (mixed >> np.uint64(31))

    def _key(self, name: str) -> int:
        digest = blake2b(f"{self.seed}/{name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class Scattering:
    """A permutation that needs no memory: every number below ``size`` has one place."""

    size: int
    factor: int
    shift: int

    def place(self, numbers: Integers) -> Integers:
        """Where each number goes."""
        scaled = numbers.astype(np.uint64) * np.uint64(self.factor) + np.uint64(self.shift)
        return (scaled % np.uint64(self.size)).astype(np.int64)

    def number(self, places: Integers) -> Integers:
        """Which number went to each place."""
        back = (places + (self.size - self.shift)).astype(np.uint64) % np.uint64(self.size)
        return (back * np.uint64(self._inverse) % np.uint64(self.size)).astype(np.int64)

    @cached_property
    def _inverse(self) -> int:
        return pow(self.factor, -1, self.size)


def steep(fractions: Fractions, power: int) -> Fractions:
    """Fractions raised to a whole power: the larger it is, the more of them are near 0."""
    result = fractions
    for _ in range(power - 1):
        result = result * fractions
    return result


def distinct_ranks(
    nth: Integers, count: Integers, fractions: Fractions, limit: int, power: int
) -> Integers:
    """The ``nth`` of ``count`` different ranks below ``limit``, small ones more often.

    Each is drawn from its own part of the interval, so they rise; adding the number of those
    before it makes them different.
    """
    spread = steep((nth + fractions) / count, power) * (limit - count + 1)
    # The last fraction below 1 may be rounded to it.
    return nth + np.minimum(spread.astype(np.int64), limit - count)


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
