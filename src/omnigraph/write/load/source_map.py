"""Places of chosen rows: a batch may become smaller, its rows still know where they came from.

Owns that one indirection. Never finds a place itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from omnigraph.write.rules.violations import SourceLocation, SourceMap


@dataclass(frozen=True, slots=True)
class NumberedPlaces:
    """The rows of a table, some of which may be missing: each has the number it is known by."""

    name: str
    numbers: npt.NDArray[np.int64]

    def place(self, row: int, member: str | None) -> SourceLocation | None:  # noqa: ARG002 - the protocol
        """The number, counted from 1; the columns of a table have names, not numbers."""
        return SourceLocation(self.name, int(self.numbers[row]) + 1, row=row)


@dataclass(frozen=True, slots=True)
class ChosenPlaces:
    """The places of some rows of a batch.

    ``row`` of a place is the row among the chosen, or with ``by_batch`` the row of the
    batch that they were chosen from.
    """

    places: SourceMap
    rows: npt.NDArray[np.int64]
    by_batch: bool = False

    def place(self, row: int, member: str | None) -> SourceLocation | None:
        """The place of the row that was chosen there."""
        at = int(self.rows[row])
        found = self.places.place(at, member)
        if found is None:
            return None
        return replace(found, row=at if self.by_batch else row)
