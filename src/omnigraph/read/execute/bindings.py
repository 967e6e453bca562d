"""Bindings: the rows of a query on its way, one position per variable and row.

Owns their shape. Immutable; properties are never part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.storage.budget import need, took

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# The bytes of a position.
POSITION = 8


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
        need(POSITION * len(rows) * len(self.columns))
        columns = {name: took(found[rows]) for name, found in self.columns.items()}
        return Bindings(columns, len(rows))

    def part(self, start: int, end: int) -> Bindings:
        """The rows between two places, which are not copied."""
        columns = {name: found[start:end] for name, found in self.columns.items()}
        return Bindings(columns, min(end, self.count) - start)

    def keep(self, mask: Mask) -> Bindings:
        """The rows of a mask."""
        if mask.all():
            return self
        need(POSITION * len(mask))
        return self.take(took(np.flatnonzero(mask)))

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
        return self.times(Bindings({variable: positions}, len(positions)))

    def times(self, other: Bindings) -> Bindings:
        """Every row with every row of others, which bind other variables."""
        shape = (self.count, other.count)
        need(POSITION * self.count * other.count * (len(self.columns) + len(other.columns)))
        columns = {name: _spread(found[:, None], shape) for name, found in self.columns.items()}
        columns |= {name: _spread(found[None, :], shape) for name, found in other.columns.items()}
        return Bindings(columns, self.count * other.count)

    def stacked(self, *others: Bindings) -> Bindings:
        """The rows of all, which bind the same variables."""
        every = (self, *others)
        count = sum(rows.count for rows in every)
        need(POSITION * count * len(self.columns))
        columns = {
            name: took(np.concatenate([rows.columns[name] for rows in every]))
            for name in self.columns
        }
        return Bindings(columns, count)

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(found.nbytes for found in self.columns.values())


def _spread(values: Positions, shape: tuple[int, int]) -> Positions:
    # Not with `repeat` or `tile`, for which every other thread has to wait.
    spread = np.empty(shape, dtype=np.int64)
    spread[:] = values
    return took(spread.reshape(-1))
