"""Vectors of a column: how far they are from a query, by cosine distance.

Owns exact distances and the choice of where they are computed: the vectors of few nodes
are read, those of many are kept like a column, and a large table is asked in storage,
through its index where it has one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.read.access.entities import NO_NODE, Entities
from omnigraph.read.execute.bindings import Positions
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.search.candidates import Numbers, Scores, among
from omnigraph.storage.budget import HEAVY, beside, look
from omnigraph.storage.indexes.search import has_vector_index, is_rough, nearest_hits
from omnigraph.storage.tables.table import ROW_ID, column_names

# So many nodes are compared here even if there is an index.
DIRECT = 20_000
# And so many if their vectors have to be read first.
SCATTERED = 2_000
# Of more than so many, those that are far away are told by a rough look.
EXACT = 2_000
# So many vectors are compared at a time.
_AT_ONCE = 16_384
# Two ways to sum a product differ by less than this.
_SLACK = 1e-4
# Vectors of such lengths are multiplied without a loss that matters.
_SHORT, _LONG = 1e-12, 1e12
# Distances that differ beyond this are those of equal directions, summed differently.
_DECIMALS = 12
# So many more are asked for, to see whether the last of them ties with others.
_MORE = 6
# And so many times as many, where that was not enough.
_WIDER = 4
# Of so many for each that is wanted, what an index roughly says is made exact.
_LOOKED = 4
# Of so many that are found, hardly one is missed of the nearest one.
_SURE = 4

Vector = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float32]
Way = Literal["vectors in memory", "vector index", "scan"]


@dataclass(frozen=True, slots=True)
class Vectors:
    """One vector property of the nodes of a type."""

    entities: Entities
    name: str
    dimension: int

    @property
    def is_indexed(self) -> bool:
        """Whether there is an index, and so many vectors that it is of use."""
        return self.entities.count > DIRECT and has_vector_index(self.entities.table, self.name)

    @property
    def _is_missing(self) -> bool:
        """An old snapshot may not have the property yet."""
        return not self.entities.count or self.name not in column_names(self.entities.table)

    @property
    def _fits(self) -> bool:
        """Whether all vectors can be kept in memory."""
        size = self.entities.count * self.dimension * 4
        return 2 * size <= self.entities.cache.max_bytes

    def scored(self, positions: Positions, query: Vector) -> Scores:
        """The distances of these nodes; one without a vector has none."""
        each = distinct(positions)
        each = each[each != NO_NODE]
        if self._is_missing or not len(each):
            return Scores(np.empty(0, dtype=np.int64), np.empty(0))
        parts = [
            _distances(*self._rows(each[start : start + _AT_ONCE]), query)
            for start in range(0, len(each), _AT_ONCE)
        ]
        distances = np.concatenate(parts)
        known = ~np.isnan(distances)
        return Scores(each[known], distances[known])

    def way(self, pool: Positions | None) -> Way:
        """How the nearest of a pool are found, None for all nodes; however many are wanted."""
        size = self.entities.count if pool is None else len(pool)
        if self._is_missing or size <= (DIRECT if self._fits else SCATTERED):
            return "vectors in memory"
        if self.is_indexed:
            return "vector index"
        return "vectors in memory" if self._fits else "scan"

    @property
    def is_rough(self) -> bool:
        """Whether there is an index, and it has to look at vectors again to tell distances."""
        return self.is_indexed and is_rough(self.entities.table, self.name)

    def best(self, pool: Positions | None, query: Vector, count: int) -> tuple[Scores, bool]:
        """So many of the nearest, and those as near as the last; whether they are all there are.

        All are compared here. ``pool`` are the nodes to choose from, ascending, None for all.
        """
        if self._is_missing:
            return Scores(np.empty(0, dtype=np.int64), np.empty(0)), True
        return self._best_of(self.entities.positions() if pool is None else pool, query, count)

    def stored(self, pool: Positions | None, query: Vector, count: int) -> Scores:
        """So many of the nearest, as storage finds them, and those as near as the last.

        An index may miss some: hardly one of the first quarter, and more of the last.
        """
        rows = self.entities.count
        share = 1.0 if pool is None else len(pool) / rows
        depth = math.ceil(count / _SURE / share)
        # The vectors of a pool are looked at here, without those of all other nodes.
        rough = pool is not None and self.is_rough
        asked = math.ceil(((_LOOKED if rough else 1) * count + _MORE) / share)
        while True:
            found, distances = self._hits(query, min(asked, rows), depth, refined=not rough)
            # Storage finds no distance to a vector without a direction, and says so at the end.
            known = ~np.isnan(distances)
            is_all = len(found) < asked or not known.all()
            if pool is not None:
                known &= among(found, pool)
            if rough:
                best, is_cut = self._made_exact(found[known], query, count)
            else:
                best, is_cut = Scores.of(found[known], distances[known]).lowest(count)
            if is_cut or is_all:
                return best
            asked *= _WIDER

    def every(self, pool: Positions | None, query: Vector) -> Scores:
        """The distances of all nodes of a pool that have a vector, found by looking at each."""
        positions: list[Positions] = []
        distances: list[Numbers] = []
        for batch in self.entities.table.batches([self.name], with_row_id=True):
            look()
            found = _distances(*_matrix(batch.column(self.name), self.dimension), query)
            known = ~np.isnan(found)
            row_ids = batch.column(ROW_ID).to_numpy().astype(np.int64)[known]
            positions.append(self.entities.row_ids.positions_of(row_ids))
            distances.append(found[known])
        every = Scores.of(np.concatenate(positions), np.concatenate(distances))
        return every if pool is None else every.among(pool)

    def _made_exact(self, near: Positions, query: Vector, count: int) -> tuple[Scores, bool]:
        """So many of the nearest, of nodes that are roughly in order, and those as near.

        Also whether others are known to be farther away: if not, more may be as near.
        """
        looked = _LOOKED * count + _MORE
        while True:
            exact, is_cut = self.scored(near[:looked], query).lowest(count)
            if is_cut or looked >= len(near):
                return exact, is_cut
            looked *= _WIDER

    def _hits(
        self, query: Vector, count: int, depth: int, *, refined: bool
    ) -> tuple[Positions, Numbers]:
        ask = partial(nearest_hits, self.entities.table, self.name, query, count)
        found, distances = beside(HEAVY, partial(ask, depth=depth, refined=refined))
        return self.entities.row_ids.positions_of(found), distances

    def _best_of(self, every: Positions, query: Vector, count: int) -> tuple[Scores, bool]:
        if len(every) <= max(min(DIRECT, EXACT), count):
            return self.scored(every, query), True
        rough = np.concatenate(
            [
                self._rough(every[start : start + _AT_ONCE], query)
                for start in range(0, len(every), _AT_ONCE)
            ]
        )
        sure = rough[np.isfinite(rough)]
        bound = np.inf
        if len(sure) > count:
            bound = np.partition(sure, count - 1)[count - 1] + _SLACK
        near = self.scored(every[rough <= bound], query)
        best, is_cut = near.lowest(count)
        return best, not is_cut and bound == np.inf

    def _rough(self, positions: Positions, query: Vector) -> Numbers:
        """Fast, to tell which ones are worth a second look; -inf for those that always are."""
        rows, valid = self._rows(positions)
        length = np.linalg.norm(query.astype(np.float64))
        unit = (query / length).astype(np.float32) if length > 0 else query
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            products = (rows @ unit).astype(np.float64)
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)).astype(np.float64)
        unsure = ~((lengths > _SHORT) & (lengths < _LONG))
        lengths[unsure] = 1.0
        distances = 1.0 - products / lengths if length > 0 else np.ones(len(lengths))
        distances[unsure] = -np.inf
        distances[~valid] = np.nan
        return distances

    def _rows(self, positions: Positions) -> tuple[Rows, pa.Array]:
        look()
        values = self.entities.values(self.name, positions)
        return _matrix(values, self.dimension)


def _matrix(values: pa.Array | pa.ChunkedArray, dimension: int) -> tuple[Rows, pa.Array]:
    """One row per vector, and which of them are there."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    flat = values.values.slice(values.offset * dimension, len(values) * dimension)
    rows = flat.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, dimension)
    return rows, values.is_valid().to_numpy(zero_copy_only=False)


def _distances(rows: Rows, valid: npt.NDArray[np.bool_], query: Vector) -> Numbers:
    """Exact, and the same for the same two vectors wherever they stand; NaN for none."""
    wide, asked = rows.astype(np.float64), query.astype(np.float64)
    products = np.einsum("ij,j->i", wide, asked)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide)) * np.sqrt(asked @ asked)
    return _cosine(products, lengths, valid)


def _cosine(products: Numbers, lengths: Numbers, valid: npt.NDArray[np.bool_]) -> Numbers:
    """A vector without a direction is as far from everything as one at a right angle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(lengths > 0, 1.0 - products / lengths, 1.0)
    # Adding zero makes a zero of a negative one.
    distances = np.round(np.clip(distances, 0.0, 2.0), _DECIMALS) + 0.0
    distances[~valid] = np.nan
    return distances
