"""The questions every system answers: three rankings, each in three surroundings.

Owns our texts and the limits. What a peer does for a question stands with the peer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench.search.data import DIMENSION, Asked, Library, Numbers, exact

Params = dict[str, Any]
Ranking = Literal["nearest", "bm25", "rrf"]
Shape = Literal["plain", "filter", "traversal"]

WANTED = 10
# So many rows have as many documents as count when two rankings are fused.
DEEP = 1_024
PLAIN_LIMIT = 1.3
TRAVERSAL_LIMIT = 1.0

_NEAREST, _BM25 = "nearest($d.meaning, $vector)", "bm25($d.text, $words)"
_RANKINGS: Mapping[Ranking, str] = {
    "nearest": _NEAREST,
    "bm25": _BM25,
    "rrf": f"rrf({_NEAREST}, {_BM25})",
}
_TYPES: Mapping[str, str] = {
    "vector": f"Vector({DIMENSION})",
    "words": "String",
    "year": "I32",
    "city": "String",
}
_MATCHES: Mapping[Shape, str] = {
    "plain": "$d: Document",
    "filter": "$d: Document { year: $year }",
    "traversal": "$a: Author { city: $city } $a wrote $d",
}
_COLUMNS: Mapping[Shape, str] = {
    "plain": "$d.slug",
    "filter": "$d.slug",
    "traversal": "$d.slug, $a.name",
}
_NAMES: Mapping[Shape, str] = {
    "plain": "",
    "filter": ", one year",
    "traversal": ", authors of a city",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One line of the table; an answer is rows of a document, its author if asked for, a score."""

    ranking: Ranking
    shape: Shape
    rows: int = WANTED

    @property
    def name(self) -> str:
        """What the line is called."""
        deep = "" if self.rows == WANTED else f", {self.rows} rows"
        return self.ranking + _NAMES[self.shape] + deep

    @property
    def limit(self) -> float:
        """What our time over that of the peer may be at most.

        There is none with a filter: with its defaults the peer looks for the nearest where
        few rows pass, and finds few of them.
        """
        limits = {"plain": PLAIN_LIMIT, "filter": math.inf, "traversal": TRAVERSAL_LIMIT}
        return limits[self.shape]

    @property
    def needs(self) -> tuple[str, ...]:
        """The parameters it has."""
        ranked = {"nearest": ("vector",), "bm25": ("words",), "rrf": ("vector", "words")}
        more = {"plain": (), "filter": ("year",), "traversal": ("city",)}
        return (*ranked[self.ranking], *more[self.shape])

    @property
    def text(self) -> str:
        """In our language."""
        params = ", ".join(f"${name}: {_TYPES[name]}" for name in self.needs)
        ranking = _RANKINGS[self.ranking]
        return (
            f"query q({params}) {{ match {{ {_MATCHES[self.shape]} }} "
            f"return {{ {_COLUMNS[self.shape]}, {ranking} as score }} "
            f"order {{ {ranking} }} limit {self.rows} }}"
        )

    def params(self, asked: Asked) -> Params:
        """What it needs of one search."""
        return {name: getattr(asked, name) for name in self.needs}

    def rows_of(self, library: Library, asked: Asked) -> Numbers:
        """How many rows of the answer each document may be in."""
        match self.shape:
            case "plain":
                return np.ones(library.count, dtype=np.int64)
            case "filter":
                return np.equal(library.years, asked.year).astype(np.int64)
            case "traversal":
                return library.written_in(asked.city)


_SHAPES: tuple[Shape, ...] = ("plain", "filter", "traversal")
QUESTIONS = tuple(
    Question(ranking, shape) for shape in _SHAPES for ranking in ("nearest", "bm25", "rrf")
)

ARMS = tuple(Question(ranking, shape, DEEP) for shape in _SHAPES for ranking in ("nearest", "bm25"))


def nearest_of(library: Library, question: Question, asked: Asked) -> Numbers:
    """The numbers of the documents that a search for the nearest should find."""
    rows = question.rows_of(library, asked)
    found = exact(library.vectors, asked.vector, rows > 0, WANTED)
    before = np.cumsum(rows[found]) - rows[found]
    return found[before < WANTED]
