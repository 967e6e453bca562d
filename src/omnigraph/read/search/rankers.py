"""Rankers: one ranking call of a query, ready to be asked about nodes.

Owns making them from a plan, once for each call of a query: the score that is shown is
the score that ordered. A score of a ranker is a key: smaller is better, NaN is no match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from omnigraph.errors import ParamError
from omnigraph.lang.query import plan
from omnigraph.read.access.entities import NO_NODE
from omnigraph.read.execute.bindings import Positions
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.search.candidates import CandidateSet, Numbers, Scores, among
from omnigraph.read.search.tiers import Tiers, tiers
from omnigraph.read.search.vectors import Vector, Vectors
from omnigraph.read.search.words import Words

# About so few nodes, storage is asked by name; of more, all that match are fetched.
FEW = 5_000


class Ranker(Protocol):
    """Orders the nodes of one variable."""

    def keys(self, positions: Positions) -> Numbers:
        """The key of each node."""

    def best(self, pool: CandidateSet | None, count: int) -> tuple[Positions, bool]:
        """So many of the best among a pool and those as good as the last; whether that is all."""

    def shown(self, positions: Positions) -> Numbers:
        """What a result says about each node."""

    @property
    def asks_storage(self) -> bool:
        """Whether it may have to wait for storage, every time."""

    @property
    def way(self) -> str:
        """How it was answered last, for people."""


@dataclass(slots=True)
class NearestRanker:
    """By cosine distance, the nearest first."""

    vectors: Vectors
    query: Vector
    at_least: int = 1
    """So many are wanted of it, whatever is wanted of the query."""
    way: str = "vectors in memory"
    _known: Scores | None = None
    _tiers: Tiers | None = None

    @property
    def asks_storage(self) -> bool:
        """Whether there are so many vectors that they are not kept in memory."""
        return self.vectors.way(None) != "vectors in memory"

    def keys(self, positions: Positions) -> Numbers:
        """The distances; where storage finds them, those of nodes it finds later are larger."""
        if self._tiers is not None:
            found = self._tiers.keys.at(positions)
            if not np.isnan(found).any():
                return found
        return self.shown(positions)

    def best(self, pool: CandidateSet | None, count: int) -> tuple[Positions, bool]:
        """The nearest."""
        positions = None if pool is None else pool.positions
        self.way = self.vectors.way(positions)
        if self.way == "vectors in memory":
            self._known, complete = self.vectors.best(positions, self.query, count)
            return self._known.positions, complete
        if self._tiers is None or self._tiers.pool is not positions:
            self._tiers = tiers(self.vectors, self.query, positions, at_least=self.at_least)
        best, complete = self._tiers.first(count)
        self._known = self._tiers.distances
        return best, complete

    def shown(self, positions: Positions) -> Numbers:
        """The distances."""
        if self._known is not None:
            found = self._known.at(positions)
            if not np.isnan(found).any():
                return found
        return self.vectors.scored(positions, self.query).at(positions)


@dataclass(slots=True)
class WordsRanker:
    """By BM25, the best first."""

    words: Words
    query: str
    _every: Scores | None = None
    _best: Scores | None = None
    _pool: Positions | None = None
    """The nodes that the best were chosen from, if not from all."""

    @property
    def asks_storage(self) -> bool:
        """Whether there are so many texts that an index is asked."""
        return self.words.is_indexed

    def keys(self, positions: Positions) -> Numbers:
        """The scores, turned round."""
        return -self.shown(positions)

    def best(self, pool: CandidateSet | None, count: int) -> tuple[Positions, bool]:
        """The best that have any of the words."""
        if self._every is None and self.words.is_indexed:
            self._best, self._pool = self.words.best(self.query, count, pool), None
            return self._best.positions, len(self._best.positions) < count
        every = self._scores()
        return (every if pool is None else every.among(pool.positions)).positions, True

    def shown(self, positions: Positions) -> Numbers:
        """The scores."""
        if self._best is not None:
            found = self._best.at(positions)
            is_known = self._pool is not None and bool(among(positions, self._pool).all())
            if is_known or not np.isnan(found).any():
                return found
        each = distinct(positions)
        if self._is_narrow(each):
            return self._narrowed(each[each != NO_NODE]).at(positions)
        return self._scores().at(positions)

    def _is_narrow(self, pool: Positions) -> bool:
        """Whether storage is asked about these nodes alone."""
        return self._every is None and self.words.is_indexed and 0 < len(pool) <= FEW

    def _narrowed(self, pool: Positions) -> Scores:
        self._best, self._pool = self.words.scored(self.query, pool), pool
        return self._best

    @property
    def way(self) -> str:
        """Through the index, or from the terms that are kept."""
        return "text index" if self.words.is_indexed else "terms in memory"

    def _scores(self) -> Scores:
        if self._every is None:
            self._every = self.words.scored(self.query)
        return self._every


@dataclass(slots=True)
class Rankers:
    """The rankers of one query, and what its fusions came to."""

    ctx: ReadContext
    at_least: int = 1
    """So many nodes are wanted of each, whatever is wanted of the query."""
    fused: dict[plan.Fusion, Scores] = field(default_factory=dict)
    _made: dict[plan.Nearest | plan.Bm25, Ranker] = field(default_factory=dict)

    def of(self, ranking: plan.Nearest | plan.Bm25) -> Ranker:
        """The ranker of a call; made once."""
        known = self._made.get(ranking)
        if known is None:
            known = self._made[ranking] = self._make(ranking)
        return known

    def _make(self, ranking: plan.Nearest | plan.Bm25) -> Ranker:
        entities = self.ctx.nodes_of(ranking.node_type)
        if isinstance(ranking, plan.Bm25):
            words = Words(entities, ranking.property_name)
            return WordsRanker(words, text_of(ranking.query, self.ctx))
        vectors = Vectors(entities, ranking.property_name, ranking.dimension)
        return NearestRanker(vectors, self._query(ranking), self.at_least)

    def _query(self, ranking: plan.Nearest) -> Vector:
        if ranking.query_is_text:
            from omnigraph.embed.providers import embed_query

            text = text_of(ranking.query, self.ctx)
            place = f"{ranking.node_type}.{ranking.property_name}"
            return embed_query(
                text, ranking.dimension, ranking.model, self.ctx.embedding, place=place
            )
        value = self.ctx.value_of(ranking.query)
        if not isinstance(value, tuple):
            raise _missing(ranking.query, "a vector")
        return np.array(value, dtype=np.float32)


def text_of(query: plan.ParamRef | plan.Const, ctx: ReadContext) -> str:
    """The text that is searched for."""
    value = ctx.value_of(query)
    if not isinstance(value, str):
        raise _missing(query, "a text")
    return value


def _missing(query: plan.ParamRef | plan.Const, what: str) -> ParamError:
    name = query.name if isinstance(query, plan.ParamRef) else "?"
    return ParamError(
        f"param '{name}': a search needs {what} to search for, found null", details={"param": name}
    )
