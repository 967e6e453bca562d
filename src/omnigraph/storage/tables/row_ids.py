"""Row ids: which rows a version of a table has, by the numbers that they keep wherever they lie.

Owns runs of row ids, which are few where rows are many, and finding those of a version without
reading a fragment twice. Never tells where a row lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from lance.fragment import RowIdSequence

from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import (
    FragmentPart,
    fragment_of,
    layout_of,
    read_parts,
)
from omnigraph.storage.tables.table import ROW_ID, Table

# What runs of row ids take besides their numbers.
RUNS_BYTES = 200

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowIds:
    """Row ids in ascending order, as runs of consecutive ones: mostly they are very few.

    The position of a row id is the number of those before it.
    """

    firsts: Numbers
    ends: Numbers
    """One more than the last of each run."""

    @classmethod
    def of(cls, row_ids: Numbers) -> RowIds:
        """From distinct row ids in any order."""
        if not len(row_ids):
            return cls(_NONE, _NONE)
        ordered = np.sort(row_ids)
        starts = np.flatnonzero(np.diff(ordered, prepend=-2) != 1)
        return cls(ordered[starts], ordered[np.append(starts[1:], len(ordered)) - 1] + 1)

    @classmethod
    def joined(cls, several: Sequence[RowIds]) -> RowIds:
        """All that occur in any."""
        firsts = np.concatenate([_NONE, *(found.firsts for found in several)])
        ends = np.concatenate([_NONE, *(found.ends for found in several)])
        order = np.argsort(firsts, kind="stable")
        firsts, reached = firsts[order], np.maximum.accumulate(ends[order])
        starts = np.flatnonzero(np.append(True, firsts[1:] > reached[:-1])[: len(firsts)])
        return cls(firsts[starts], reached[np.append(starts[1:], len(firsts))[: len(starts)] - 1])

    @cached_property
    def _before(self) -> Numbers:
        """How many row ids stand before each run, and how many there are."""
        counts = np.cumsum(self.ends - self.firsts, dtype=np.int64)
        return np.concatenate([np.zeros(1, dtype=np.int64), counts])

    @cached_property
    def _shift(self) -> Numbers:
        """By how much the row ids of each run are ahead of their positions."""
        return self.firsts - self._before[:-1]

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self._before[-1])

    @property
    def size(self) -> int:
        """Bytes held."""
        return 4 * self.firsts.nbytes + RUNS_BYTES

    def positions_of(self, row_ids: Numbers) -> Numbers:
        """The positions of row ids that are among these."""
        shift: Numbers = self._shift
        if len(shift) > 1:
            shift = shift[np.searchsorted(self.firsts, row_ids, side="right") - 1]
        return row_ids - shift

    def at(self, positions: Numbers) -> Numbers:
        """The row ids at positions."""
        shift: Numbers = self._shift
        if len(shift) > 1:
            shift = shift[np.searchsorted(self._before, positions, side="right") - 1]
        return positions + shift

    def hold(self, row_ids: Numbers) -> npt.NDArray[np.bool_]:
        """Which row ids are among these."""
        if not len(self.firsts):
            return np.zeros(len(row_ids), dtype=bool)
        run = np.searchsorted(self.firsts, row_ids, side="right") - 1
        held: npt.NDArray[np.bool_] = (run >= 0) & (row_ids < self.ends[run])
        return held

    def meet(self, others: RowIds) -> bool:
        """Whether any row id is among both."""
        return bool(self.hold(others.firsts).any() or others.hold(self.firsts).any())

    def begin_with(self, others: RowIds) -> bool:
        """Whether others are here at the same positions."""
        runs = len(others.firsts)
        if not runs or len(self.firsts) < runs:
            return not runs
        return (
            np.array_equal(self.firsts[:runs], others.firsts)
            and np.array_equal(self.ends[: runs - 1], others.ends[:-1])
            and bool(self.ends[runs - 1] >= others.ends[-1])
        )


_NONE: Numbers = np.empty(0, dtype=np.int64)
_runs: Cache[tuple[str, FragmentPart], RowIds] = Cache(
    "row_ids", lambda found: [(found, found.size)], budget
)


def row_ids_of(table: Table) -> RowIds:
    """The row ids of a version; only fragments that no version before it had are looked at."""
    if table.shown_rows is not None:
        return table.shown_rows
    parts = layout_of(table).parts
    written = RowIds.joined([_written(table, part) for part in parts])
    # A changed row has left one fragment and stands in another under the same id: where no id
    # is missing, none was deleted, and nobody has to look which rows are left.
    if written.count == table.pin.row_count:
        return written
    return RowIds.joined(
        [_left(table, part) if part.deletions else _written(table, part) for part in parts]
    )


def _written(table: Table, part: FragmentPart) -> RowIds:
    """The row ids that a fragment was written with; a version tells them without being read."""
    whole = replace(part, rows=0, deletions="", physical=0, size=0)
    known = _runs.get((table.location.uri, whole))
    if known is None:
        _runs.missed()
        meta = fragment_of(table.dataset(), part).metadata.row_id_meta
        if meta is None:
            return _left(table, part)
        with storage_errors(f"reading the row ids of {table.location}"):
            stored = RowIdSequence.from_inline_metadata(meta).to_pyarrow()
        known = RowIds.of(stored.to_numpy().astype(np.int64))
        _runs.keep((table.location.uri, whole), known)
    return known


def _left(table: Table, part: FragmentPart) -> RowIds:
    """The row ids of those rows of a fragment that were not deleted."""
    known = _runs.get((table.location.uri, part))
    if known is None:
        _runs.missed()
        (read,) = read_parts(table, [ROW_ID], [part])[ROW_ID]
        known = RowIds.of(read.to_numpy().astype(np.int64))
        _runs.keep((table.location.uri, part), known)
    return known


def in_row_id_order(table: Table, parts: Sequence[FragmentPart]) -> bool:
    """Whether the rows of some fragments, one after the other, have ascending row ids."""
    found = [_NONE]
    for part in parts:
        meta = fragment_of(table.dataset(), part).metadata.row_id_meta
        if meta is None:
            return False
        with storage_errors(f"reading the row ids of {table.location}"):
            stored = RowIdSequence.from_inline_metadata(meta).to_pyarrow()
        found.append(stored.to_numpy().astype(np.int64))
    return bool((np.diff(np.concatenate(found)) > 0).all())
