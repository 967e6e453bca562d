"""Decisions: the rows that a strict write was decided on, and whether they are still the same.

Owns the answer across a change of the schema, where no question can be asked as it was: prepared
under the other schema, a write has to come to the very same rows, and nobody may have written
them since. Never looks at what rows say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.manifest.entries import TableIdentity
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID
from omnigraph.storage.tables.version_diff import fragment_delta
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import Dependency, RecordedRead, only_maintained

Numbers = npt.NDArray[np.uint64]

_NONE: Numbers = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Decision:
    """A base, and all that a write has asked of it to decide what it does."""

    base: Base
    reads: tuple[Dependency, ...]

    def broken(self, again: Decision) -> Dependency | None:
        """The first question that others have changed the rows of, given the second decision."""
        before, after = self.base, again.base
        old, new = self._found(ROW_ID), again._found(ROW_ID)
        places = self._found(ROW_ADDRESS)
        for read in self.reads:
            shown = before.snapshot.tables.get(read.type_key)
            if shown is None:
                holds = read.holds(before, after)
            elif shown.identity not in after.snapshot.by_identity:
                holds = True  # its rows have gone with their type
            elif isinstance(read, RecordedRead) and read.answer is not None:
                identity = shown.identity
                holds = np.array_equal(old[identity], new.get(identity, _NONE)) and (
                    _are_kept(before, after, identity, places[identity])
                )
            else:
                holds = only_maintained(before, after, shown.identity)
            if not holds:
                return read
        for read in again.reads:
            now = after.snapshot.tables.get(read.type_key)
            if now is not None and len(
                np.setdiff1d(new.get(now.identity, _NONE), old.get(now.identity, _NONE))
            ):
                return read
        return None

    def _found(self, column: str) -> Mapping[TableIdentity, Numbers]:
        """A column of the rows that were found, by table, each once and in order."""
        parts: defaultdict[TableIdentity, list[Numbers]] = defaultdict(list)
        for read in self.reads:
            if isinstance(read, RecordedRead) and read.answer is not None:
                identity = self.base.snapshot.tables[read.type_key].identity
                parts[identity].append(read.answer.column(column).to_numpy())
        return {
            identity: np.unique(np.concatenate([_NONE, *found]))
            for identity, found in parts.items()
        }


def _are_kept(before: Base, after: Base, identity: TableIdentity, places: Numbers) -> bool:
    """Whether rows lie where they lay, or were moved by nobody but maintenance."""
    if not len(places):
        return True
    old, new = (base.snapshot.by_identity[identity].pinned for base in (before, after))
    return fragment_delta(old, new).has_same(places) or only_maintained(before, after, identity)
