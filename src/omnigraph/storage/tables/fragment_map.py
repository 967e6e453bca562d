"""The map of one text column: from the hashes of its texts to the rows that may hold them.

Owns its shape: a few sorted runs, which versions share. Must never read a row; it only says
"maybe", and also where rows have been that have moved since.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omnigraph.storage.tables.row_address import fragments_of

FileId: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class _Run:
    """Hashes in order, each with the address of the row it was seen in."""

    hashes: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, hashes: npt.NDArray[np.uint64], addresses: npt.NDArray[np.uint64]) -> _Run:
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], addresses[order])

    def spans(self, wanted: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.intp], ...]:
        """For each wanted hash, the positions from and up to which it stands."""
        return (
            np.searchsorted(self.hashes, wanted, side="left"),
            np.searchsorted(self.hashes, wanted, side="right"),
        )


@dataclass(frozen=True, slots=True)
class FragmentMap:
    """Where a text may stand, for one column of one version of a table."""

    runs: tuple[_Run, ...] = ()
    files: frozenset[FileId] = frozenset()
    """The fragments it knows, by id and data file: branches use the same ids for others."""

    def find(
        self, wanted: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
        """Which of the hashes may be there, and the addresses of the rows that may hold them."""
        maybe = np.zeros(len(wanted), dtype=bool)
        found: list[npt.NDArray[np.uint64]] = [np.empty(0, dtype=np.uint64)]
        for run in self.runs:
            start, end = run.spans(wanted)
            count = end - start
            maybe |= count > 0
            # Every position of every span: a row that was moved has left its old address there.
            before = np.cumsum(count) - count
            positions = np.arange(count.sum()) + np.repeat(start - before, count)
            found.append(run.addresses[positions])
        return maybe, np.unique(np.concatenate(found))

    def extended(
        self,
        hashes: npt.NDArray[np.uint64],
        addresses: npt.NDArray[np.uint64],
        files: frozenset[FileId],
    ) -> FragmentMap:
        """With more texts; small runs are merged, so that there are few of them."""
        runs = list(self.runs)
        if len(hashes):
            added = _Run.of(hashes, addresses)
            while runs and len(runs[-1].hashes) <= 2 * len(added.hashes):
                last = runs.pop()
                added = _Run.of(
                    np.concatenate([last.hashes, added.hashes]),
                    np.concatenate([last.addresses, added.addresses]),
                )
            runs.append(added)
        return FragmentMap(tuple(runs), files)

    @property
    def size(self) -> int:
        """How many addresses there are."""
        return sum(len(run.addresses) for run in self.runs)

    def within(self, fragments: Collection[int]) -> FragmentMap:
        """Without what it knows of other fragments than these."""
        kept = [np.isin(fragments_of(run.addresses), list(fragments)) for run in self.runs]
        runs = (
            _Run(run.hashes[held], run.addresses[held])
            for run, held in zip(self.runs, kept, strict=True)
            if held.any()
        )
        return FragmentMap(
            tuple(runs), frozenset(found for found in self.files if found[0] in fragments)
        )
