"""Bindings: the rows of a query on its way, one position per variable and row.

Owns their shape. Immutable; properties are never part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.rows.arithmetic import alike
from omnigraph.storage.budget import need, took

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# The bytes of a position.
POSITION = 8


@dataclass(frozen=True, slots=True)
class Bindings:
    """``columns`` has one array of ``count`` positions per variable; -1 is nobody.

    ``values`` has what was computed for each row and given a name.
    """

    columns: Mapping[str, Positions]
    count: int
    values: Mapping[str, pa.Array] = field(default_factory=dict)

    @classmethod
    def start(cls) -> Bindings:
        """One row that binds nothing."""
        return cls({}, 1)

    def take(self, rows: Positions) -> Bindings:
        """Some rows, in this order."""
        need(POSITION * len(rows) * len(self.columns))
        columns = {name: took(found[rows]) for name, found in self.columns.items()}
        return Bindings(columns, len(rows), self._values_of(rows))

    def _values_of(self, rows: Positions) -> dict[str, pa.Array]:
        if not self.values:
            return {}
        indices = pa.array(rows)
        taken: dict[str, pa.Array] = {}
        for name, found in self.values.items():
            need(found.nbytes * len(rows) // max(1, self.count))
            taken[name] = took(found.take(indices))
        return taken

    def part(self, start: int, end: int) -> Bindings:
        """The rows between two places, which are not copied."""
        columns = {name: found[start:end] for name, found in self.columns.items()}
        count = min(end, self.count) - start
        values = {name: found.slice(start, count) for name, found in self.values.items()}
        return Bindings(columns, count, values)

    def keep(self, mask: Mask) -> Bindings:
        """The rows of a mask."""
        if mask.all():
            return self
        need(POSITION * len(mask))
        return self.take(took(np.flatnonzero(mask)))

    def bind(self, variable: str, positions: Positions) -> Bindings:
        """With one variable more."""
        return Bindings({**self.columns, variable: positions}, self.count, self.values)

    def compute(self, name: str, values: pa.Array) -> Bindings:
        """With one value more."""
        return Bindings(self.columns, self.count, {**self.values, name: values})

    def without(self, variable: str) -> Bindings:
        """With one variable less."""
        kept = {name: found for name, found in self.columns.items() if name != variable}
        return Bindings(kept, self.count, self.values)

    def cross(self, variable: str, positions: Positions) -> Bindings:
        """Every row with every position."""
        if self.count == 1 and not self.columns and not self.values:
            return Bindings({variable: positions}, len(positions))
        return self.times(Bindings({variable: positions}, len(positions)))

    def times(self, other: Bindings) -> Bindings:
        """Every row with every row of others, which bind other variables."""
        shape = (self.count, other.count)
        need(POSITION * self.count * other.count * (len(self.columns) + len(other.columns)))
        columns = {name: _spread(found[:, None], shape) for name, found in self.columns.items()}
        columns |= {name: _spread(found[None, :], shape) for name, found in other.columns.items()}
        values: dict[str, pa.Array] = {}
        if self.values:
            values |= self._values_of(_spread(np.arange(self.count)[:, None], shape))
        if other.values:
            values |= other._values_of(_spread(np.arange(other.count)[None, :], shape))
        return Bindings(columns, self.count * other.count, values)

    def stacked(self, *others: Bindings) -> Bindings:
        """The rows of all, which bind the same variables."""
        every = (self, *others)
        count = sum(rows.count for rows in every)
        need(POSITION * count * len(self.columns))
        columns = {
            name: took(np.concatenate([rows.columns[name] for rows in every]))
            for name in self.columns
        }
        values = {
            name: pa.concat_arrays(alike([rows.values[name] for rows in every]))
            for name in self.values
        }
        return Bindings(columns, count, values)

    @property
    def size(self) -> int:
        """Bytes held."""
        computed: int = sum(found.nbytes for found in self.values.values())
        return computed + sum(found.nbytes for found in self.columns.values())


def _spread(values: Positions, shape: tuple[int, int]) -> Positions:
    # Not with `repeat` or `tile`, for which every other thread has to wait.
    spread = np.empty(shape, dtype=np.int64)
    spread[:] = values
    return took(spread.reshape(-1))
