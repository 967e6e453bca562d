"""The rows of the branch benchmark: a table of people, and what two branches change in it.

Owns who changes what. Every system is handed the same rows, and what a merge must leave
behind is known from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SEED = 7
TARGET_SHARE = 0.1
NEW_AGE = 30

Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Delta:
    """What one round changes: rows for the source branch, and rows for the target or none."""

    name: str
    source: pa.Table
    target: pa.Table | None
    differing: int
    """How many rows the two branches have otherwise then."""


@dataclass(slots=True)
class People:
    """A table as it is now; the rows that were there at first are the ones that change."""

    size: int
    ages: Numbers = field(init=False)
    scores: npt.NDArray[np.float64] = field(init=False)
    moved: Numbers = field(init=False)
    added: int = 0
    added_age: int = 0
    rounds: int = 0

    def __post_init__(self) -> None:
        numbers = np.arange(self.size)
        self.ages = numbers % 90
        self.scores = numbers / 7
        self.moved = np.zeros(self.size, np.int64)

    def table(self) -> pa.Table:
        """All rows of the beginning."""
        return self._rows(np.arange(self.size), self.ages, self.moved, self.scores)

    def next_round(self, changed: int, *, fast_forward: bool) -> Delta:
        """The next rows to change; what is here afterwards is the outcome of the merge.

        Half of the source's rows are new, half change their age and city. The target changes
        the score of a tenth as many, half of them rows that the source changes too.
        """
        self.rounds += 1
        random = np.random.default_rng((SEED, self.rounds))
        new = changed // 2
        theirs = random.choice(self.size, changed - new, replace=False)
        ours = self._of_target(theirs, 0 if fast_forward else changed, random)
        ages, moved = self.ages[theirs] + 1, np.full(len(theirs), self.rounds)
        source = [self._new_rows(new), self._rows(theirs, ages, moved, self.scores[theirs])]
        target = self._rows(ours, self.ages[ours], self.moved[ours], self.scores[ours] + 1)
        self.ages[theirs], self.moved[theirs] = ages, moved
        self.scores[ours] += 1
        self.added += new
        self.added_age += NEW_AGE * new
        return Delta(
            f"round-{self.rounds}",
            pa.concat_tables(source),
            None if fast_forward else target,
            new + len(np.union1d(theirs, ours)),
        )

    def _of_target(self, theirs: Numbers, changed: int, random: np.random.Generator) -> Numbers:
        """The rows that the target changes."""
        count = int(np.ceil(changed * TARGET_SHARE))
        others = np.setdiff1d(np.arange(self.size), theirs)
        shared = theirs[: count // 2]
        return np.union1d(shared, random.choice(others, count - len(shared), replace=False))

    def _new_rows(self, count: int) -> pa.Table:
        names = pa.array([f"new-{self.rounds}-{number}" for number in range(count)], pa.string())
        moved = np.full(count, self.rounds)
        return _table(names, np.full(count, NEW_AGE), moved, np.zeros(count))

    @property
    def sums(self) -> tuple[int, int, float]:
        """How many rows there are, the sum of all ages, and of the scores of the first rows."""
        ages = int(self.ages.sum()) + self.added_age
        return self.size + self.added, ages, float(self.scores.sum())

    def _rows(
        self,
        numbers: Numbers,
        ages: Numbers,
        moved: Numbers,
        scores: npt.NDArray[np.float64],
    ) -> pa.Table:
        digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 8, "0")
        return _table(pc.binary_join_element_wise("p", digits, ""), ages, moved, scores)


def _table(
    names: pa.Array,
    ages: Numbers,
    moved: Numbers,
    scores: npt.NDArray[np.float64],
) -> pa.Table:
    cities = pc.binary_join_element_wise("city-", pa.array(moved).cast(pa.string()), "")
    return pa.table(
        {"name": names, "age": pa.array(ages, pa.int32()), "city": cities, "score": scores}
    )
