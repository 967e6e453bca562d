"""Words in a column: which nodes have them or nearly, and how well they fit.

Owns near spellings and scores without an index. Never decides how many are wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.query.plan import TextMode
from omnigraph.read.access.entities import Entities
from omnigraph.read.execute.bindings import Positions
from omnigraph.read.search.analysis import Terms, analyze, query_terms
from omnigraph.read.search.candidates import CandidateSet, Numbers, Scores, among
from omnigraph.rows.sql_conditions import Condition
from omnigraph.storage.budget import HEAVY, beside, look, need, took
from omnigraph.storage.indexes.search import covers_every_row, has_text_index, text_hits
from omnigraph.storage.tables.table import column_names

# Up to so many texts are analyzed here even if there is an index: they stay in memory.
ANALYZED = 50_000
# So many more are asked for, to see whether the last of them ties with others.
_MORE = 16
# And so many times as many, where that was not enough.
_WIDER = 8
# Telling storage about a node costs as much as this many more that it returns.
_NAMED = 4
# A condition that so few nodes pass is decided while storage searches.
SELECTIVE = 0.02
# How much a word counts that is repeated, and how much the length of its text.
K1 = 1.2
B = 0.75
# Scores that differ beyond this are sums of the same parts, added in another order.
_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Words:
    """One text property of the nodes of a type."""

    entities: Entities
    name: str

    @property
    def is_indexed(self) -> bool:
        """Whether storage is asked instead of the terms in memory."""
        return self.entities.count > ANALYZED and has_text_index(self.entities.table, self.name)

    @property
    def _may_name(self) -> bool:
        """Whether storage finds the same scores when it is told which nodes matter."""
        return covers_every_row(self.entities.table, self.name)

    @property
    def _is_missing(self) -> bool:
        """An old snapshot may not have the property yet."""
        return not self.entities.count or self.name not in column_names(self.entities.table)

    # -- predicates ------------------------------------------------------------------

    def matching(self, mode: TextMode, query: str, edits: int) -> Positions:
        """The nodes that have any of the words, the phrase, or near spellings; ascending."""
        terms = query_terms(query)
        if self._is_missing or not terms:
            return np.empty(0, dtype=np.int64)
        if self.is_indexed and mode != "fuzzy":
            is_phrase = mode == "match_text"
            found, _ = self._hits(query, is_phrase=is_phrase)
            return np.sort(found)
        if mode == "match_text":
            return self._positions(_phrase(self._terms(), terms))
        words = [term for term, _ in terms]
        known = self._terms()
        codes = _codes(known, words) if mode == "search" else _near(known, words, edits)
        return self._positions(_owners(known, np.isin(known.codes, codes)))

    # -- scores ----------------------------------------------------------------------

    def scored(self, query: str, pool: Positions | None = None) -> Scores:
        """Every node that has any of the words, with its BM25 score; of a few nodes, or of all."""
        terms = query_terms(query)
        if self._is_missing or not terms or (pool is not None and not len(pool)):
            return Scores(np.empty(0, dtype=np.int64), np.empty(0))
        if self.is_indexed and self._may_name:
            return Scores.of(*self._hits(query, among=pool))
        if self.is_indexed:
            every = Scores.of(*self._hits(query))
            return every if pool is None else every.among(pool)
        known = self._terms()
        numbers = _bm25(known, [term for term, _ in terms])
        rows = np.flatnonzero(numbers)
        found = Scores.of(self.entities.in_order[rows], numbers[rows])
        return found if pool is None else found.among(pool)

    def best(self, query: str, count: int, pool: CandidateSet | None = None) -> Scores:
        """So many of the best nodes and all that are as good as the last of them.

        ``pool`` are the nodes to choose from, None for all.
        """
        positions = None if pool is None else pool.positions
        if (
            not self.is_indexed
            or not query_terms(query)
            or (pool is not None and not len(pool.positions))
        ):
            return self.scored(query, positions)
        rows = self.entities.count
        named = _named(pool, count, rows) if pool is not None and self._may_name else None
        # Where storage chooses from all nodes, so many are asked for that enough are in the pool.
        chance = 1.0 if positions is None or named is not None else len(positions) / rows
        asked = math.ceil((count + _MORE) / chance)
        while True:
            limit = asked if asked < rows else None
            found, scores = self._hits(query, limit=limit, among=named)
            is_all = len(found) < asked
            # Of nodes as good as the last one that was found, there may be more.
            bound = -np.inf if is_all else scores[-1]
            if positions is not None and named is None:
                held = among(found, positions)
                found, scores = found[held], scores[held]
            if is_all or np.count_nonzero(scores > bound) >= count:
                kept = scores >= scores[min(count, len(scores)) - 1] if len(scores) else slice(0)
                return Scores.of(found[kept], scores[kept])
            asked *= _WIDER

    def _hits(
        self,
        query: str,
        *,
        is_phrase: bool = False,
        limit: int | None = None,
        among: Positions | Condition | None = None,
    ) -> tuple[Positions, Numbers]:
        """What storage finds, by position; ``among`` are the nodes it may choose from."""
        row_ids = self.entities.row_ids
        within = row_ids.at(among) if isinstance(among, np.ndarray) else among
        table = self.entities.table
        ask = partial(
            text_hits, table, self.name, query, is_phrase=is_phrase, limit=limit, among=within
        )
        found, scores = beside(HEAVY, ask)
        return row_ids.positions_of(found), scores

    # -- terms -----------------------------------------------------------------------

    def _terms(self) -> Terms:
        entities = self.entities
        return entities.cache.derived(
            entities.table,
            f"@terms:{entities.names.of(self.name)}",
            lambda: analyze(_whole(entities.cache.get(entities.table, self.name))),
        )

    def _positions(self, rows: Positions) -> Positions:
        return np.sort(self.entities.in_order[rows])


def _named(pool: CandidateSet, count: int, rows: int) -> Positions | Condition | None:
    """How storage is told about a pool; None where it better chooses from all nodes."""
    size = len(pool.positions)
    if pool.condition is not None and size <= SELECTIVE * rows:
        return pool.condition
    return pool.positions if _NAMED * size**2 <= (count + _MORE) * rows else None


def _whole(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _codes(known: Terms, words: list[str]) -> Positions:
    found = pc.index_in(pa.array(words), value_set=known.vocabulary.cast(pa.string()))
    codes: Positions = found.drop_null().to_numpy().astype(np.int64)
    return codes


def _near(known: Terms, words: list[str], edits: int) -> Positions:
    each = [near_terms(known.vocabulary, word, edits) for word in dict.fromkeys(words)]
    return np.unique(np.concatenate(each))


def _owners(known: Terms, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Positions:
    need(2 * 8 * len(mask))
    return np.unique(known.owners()[mask])


def _phrase(known: Terms, terms: list[tuple[str, int]]) -> Positions:
    """The texts in which the terms stand as far apart as in the phrase."""
    words = list(dict.fromkeys(term for term, _ in terms))
    codes = _codes(known, words)
    nothing = np.empty(0, dtype=np.int64)
    if len(codes) < len(words):
        return nothing
    width = int(known.places.max(initial=0)) + 1
    found = _occurrences(known, codes)
    # Where each word stands, in one number with its text: the places of all words of a text
    # follow each other.
    stands = {
        word: found[code].owners * width + found[code].places
        for word, code in zip(words, codes.tolist(), strict=True)
    }
    first = terms[0][1]
    # From the rarest word on, there are fewest places to look at.
    rarest, *others = sorted(terms, key=lambda term: len(stands[term[0]]))
    ahead = rarest[1] - first
    starts = stands[rarest[0]]
    starts = starts[starts % width >= ahead] - ahead
    for word, place in others:
        look()
        ahead = place - first
        starts = starts[starts % width + ahead < width]
        starts = starts[among(starts + ahead, stands[word])]
        if not len(starts):
            return nothing
    return np.unique(starts // width)


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """The texts that a term stands in, ascending, and its places in them."""

    owners: Positions
    places: Positions


def _occurrences(known: Terms, codes: Positions) -> dict[int, _Occurrences]:
    """Where each of some terms stands, found in one walk through all texts."""
    need(known.codes.nbytes + len(known.codes))
    is_wanted = np.zeros(len(known.vocabulary), dtype=bool)
    is_wanted[codes] = True
    at = took(np.flatnonzero(is_wanted[known.codes]))
    need(6 * at.nbytes)
    at = at[np.argsort(known.codes[at], kind="stable")]
    owners = np.searchsorted(known.offsets, at, side="right") - 1
    places = known.places[at].astype(np.int64)
    ordered = known.codes[at]
    each = np.unique(codes)
    starts, ends = (np.searchsorted(ordered, each, side=side) for side in ("left", "right"))
    return {
        code: _Occurrences(owners[start:end], places[start:end])
        for code, start, end in zip(each.tolist(), starts.tolist(), ends.tolist(), strict=True)
    }


def _bm25(known: Terms, words: list[str]) -> Numbers:
    """The score of every text; 0 for those that have none of the words."""
    lengths = known.lengths
    filled = lengths > 0
    texts = int(filled.sum())
    scores = np.zeros(len(lengths))
    if not texts:
        return scores
    weight = K1 * (1 - B + B * lengths / (lengths.sum() / texts))
    codes = _codes(known, words)
    found = _occurrences(known, codes)
    for code in codes.tolist():
        look()
        owners, counts = np.unique(found[code].owners, return_counts=True)
        rarity = np.log(1 + (texts - len(owners) + 0.5) / (len(owners) + 0.5))
        scores[owners] += rarity * counts * (K1 + 1) / (counts + weight[owners])
    return np.round(scores, _DECIMALS)


def near_terms(vocabulary: pa.Array, word: str, edits: int) -> npt.NDArray[np.int64]:
    """Where the terms stand that are at most so many edits away from a word."""
    lengths = pc.utf8_length(vocabulary).to_numpy(zero_copy_only=False).astype(np.int64)
    likely = np.flatnonzero(np.abs(lengths - len(word)) <= edits)
    if not len(likely):
        return likely
    terms = vocabulary.take(pa.array(likely))
    distances = _distances(_characters(terms, int(lengths[likely].max())), lengths[likely], word)
    return likely[distances <= edits]


def _characters(terms: pa.Array, width: int) -> npt.NDArray[np.uint32]:
    """One row of code points for each term, filled up with zeros."""
    padded = np.array(terms.to_pylist(), dtype=f"<U{max(width, 1)}")
    return padded.view("<u4").reshape(len(terms), -1)


def _distances(
    terms: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], word: str
) -> npt.NDArray[np.int64]:
    """The table of edits row by row, for all terms together."""
    count, width = terms.shape
    above = np.tile(np.arange(width + 1), (count, 1))
    for row, character in enumerate(word, 1):
        look()
        here = np.empty_like(above)
        here[:, 0] = row
        replaced = above[:, :-1] + (terms != ord(character))
        best = np.minimum(replaced, above[:, 1:] + 1)
        for column in range(1, width + 1):
            here[:, column] = np.minimum(best[:, column - 1], here[:, column - 1] + 1)
        above = here
    found: npt.NDArray[np.int64] = above[np.arange(count), lengths]
    return found
