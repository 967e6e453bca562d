"""Scores: what a search says about nodes, by position.

Owns looking them up. A node that a search does not speak of has no score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.read.execute.bindings import Mask, Positions

Numbers = npt.NDArray[np.float64]


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
