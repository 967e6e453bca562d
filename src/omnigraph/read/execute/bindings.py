"""Bindings: the rows of a query on its way, one position per variable and row.

Owns their shape. Immutable; properties are never part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bindings:
    """``columns`` has one array of ``count`` positions per variable; -1 is nobody."""

    columns: Mapping[str, Positions]
    count: int

    @classmethod
    def start(cls) -> Bindings:
        """One row that binds nothing."""
        return cls({}, 1)

    def take(self, rows: Positions) -> Bindings:
        """Some rows, in this order."""
        return Bindings({name: found[rows] for name, found in self.columns.items()}, len(rows))

    def keep(self, mask: Mask) -> Bindings:
        """The rows of a mask."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def bind(self, variable: str, positions: Positions) -> Bindings:
        """With one variable more."""
        return Bindings({**self.columns, variable: positions}, self.count)

    def without(self, variable: str) -> Bindings:
        """With one variable less."""
        kept = {name: found for name, found in self.columns.items() if name != variable}
        return Bindings(kept, self.count)

    def cross(self, variable: str, positions: Positions) -> Bindings:
        """Every row with every position."""
        if self.count == 1 and not self.columns:
            return Bindings({variable: positions}, len(positions))
        rows = np.repeat(np.arange(self.count), len(positions))
        return self.take(rows).bind(variable, np.tile(positions, self.count))

    def stacked(self, other: Bindings) -> Bindings:
        """The rows of both, which bind the same variables."""
        columns = {
            name: np.concatenate([found, other.columns[name]])
            for name, found in self.columns.items()
        }
        return Bindings(columns, self.count + other.count)

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(found.nbytes for found in self.columns.values())
