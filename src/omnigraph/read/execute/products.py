"""Products: every row with every node, for variables that nothing connects.

Owns making them in pieces, so that what follows can drop most of a piece before the next one
is made, and knowing when no further piece matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from omnigraph.errors import QueryError
from omnigraph.read.execute.bindings import POSITION, Bindings
from omnigraph.read.plan.physical import PhysicalStep, ScanNodes
from omnigraph.storage.budget import look

# A product of so many rows is made as a whole.
PIECE = 1 << 20
# So many pairs are more than anybody means, unless only the first of them are wanted.
MAX_PAIRS = 10_000_000


@dataclass(slots=True)
class FirstRows:
    """The first rows in some order, of all that were added."""

    count: int
    choose: Callable[[Bindings], Bindings]
    """The first of some rows, in their order."""
    by: tuple[str, ...] = ()
    """The variables whose positions make the order, if nothing else does."""
    in_pieces: bool = False
    """Whether rows come in several pieces, as far as that is known."""
    rows: Bindings | None = None
    as_found: bool = False
    """Whether the first rows are those that are found first."""

    @property
    def is_full(self) -> bool:
        """Whether nothing that is found from now on can be among them."""
        return self.as_found and self.rows is not None and self.rows.count >= self.count

    def add(self, more: Bindings) -> None:
        """Add rows that may be among the first."""
        self.rows = self.choose(more if self.rows is None else self.rows.stacked(more))

    def leading(self, known: Iterable[str]) -> list[str]:
        """The variables that the order begins with, as far as they are known."""
        among = set(known)
        return list(takewhile(among.__contains__, self.by))

    def precede(self, names: Sequence[str], positions: Sequence[int]) -> bool:
        """Whether enough rows come before every row that begins with these positions."""
        if self.rows is None or self.rows.count < self.count:
            return False
        if not self.count:
            return True
        return [int(self.rows.columns[name][-1]) for name in names] < list(positions)


@dataclass(frozen=True, slots=True)
class Product:
    """Every row of one side with every row of the other."""

    left: Bindings
    right: Bindings

    @property
    def count(self) -> int:
        """How many rows it has."""
        return self.left.count * self.right.count

    def refuse_if_endless(self, variable: str) -> None:
        """Refuse what is hardly meant: all pairs of what nothing connects."""
        if self.count <= MAX_PAIRS or 1 in (self.left.count, self.right.count):
            return
        raise QueryError(
            f"${variable} is connected with nothing: that would be {self.count:,} pairs, of "
            f"{self.left.count:,} rows and {self.right.count:,} nodes. Connect it by an edge or by "
            f"an equality such as `$a.x = ${variable}.y`, or bound it by a `limit` without `order`",
            code="T31",
            details={"pairs": self.count, "limit": MAX_PAIRS, "variable": variable},
        )

    def whole(self) -> Bindings:
        """All of it."""
        return self.left.times(self.right)

    def least_bytes(self, rest: Sequence[PhysicalStep]) -> int:
        """What the rows are known to take, where nothing but further products follows."""
        rows, columns = self.count, len(self.left.columns) + len(self.right.columns)
        for step in rest:
            if not isinstance(step, ScanNodes) or step.path.access != "every row" or step.path.left:
                return 0
            rows, columns = rows * step.path.entities, columns + 1
        return rows * columns * POSITION

    def pieces(self, first: FirstRows | None) -> Iterator[Bindings]:
        """It in pieces; once ``first`` has what it wants, no more of them."""
        left, right = self.left, self.right
        names: list[str] = []
        if first is not None:
            if not first.leading(left.columns):
                left, right = right, left
            names = first.leading(left.columns)
        if names:
            left = left.take(np.lexsort([left.columns[name] for name in reversed(names)]))
        size = max(1, PIECE // max(1, right.count))
        for start in range(0, left.count, size):
            look()
            if first is not None and first.is_full:
                return
            begin = [int(left.columns[name][start]) for name in names]
            if first is not None and names and first.precede(names, begin):
                return
            yield left.part(start, start + size).times(right)
