"""Ranks of ids: which of two entities comes first, without looking at the texts again.

Owns them for whole types, where they are kept, and for a few entities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.access.entities import Entities
from omnigraph.read.access.entity_sets import EntitySet, Many
from omnigraph.read.execute.sorting import distinct
from omnigraph.storage.budget import need, took

Positions = npt.NDArray[np.int64]
# The ids of fewer are compared by themselves, unless those are a good part of all.
FEW = 2_000
PART = 8


@dataclass(frozen=True, slots=True)
class _Ranks:
    """A rank for each position."""

    ranks: Positions

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.ranks.nbytes


def id_ranks(entities: Many, positions: Positions) -> Positions:
    """Numbers in the order of the ids of these entities, the same for the same entity."""
    if isinstance(entities, EntitySet) or len(positions) < min(FEW, entities.count // PART):
        known = distinct(positions)
        return _ranked(entities.values("@id", known))[np.searchsorted(known, positions)]
    whole = entities.cache.derived(entities.table, "@id_ranks", lambda: _whole(entities))
    return whole.ranks[positions]


def _whole(entities: Entities) -> _Ranks:
    return _Ranks(_ranked(entities.values("@id", entities.positions())))


def _ranked(ids: pa.Array) -> Positions:
    need(16 * len(ids))
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[pc.sort_indices(ids).to_numpy().astype(np.int64)] = np.arange(len(ids))
    return took(ranks)
