"""Reciprocal rank fusion by hand: what two rankings of rows come to together.

Owns the formula, for a peer that has to do it itself and for judging those that do it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Rows = list[list[Any]]

SMOOTHING = 60
WINDOW = 128
"""So many documents of a ranking have a place that counts."""


def fused(arms: Iterable[Rows], wanted: int) -> Rows:
    """The best rows by the places of their documents, which come first in a row.

    The rows of a document are those of the first ranking that knows it.
    """
    scores: dict[str, float] = {}
    rows: list[list[Any]] = []
    for arm in arms:
        places = {slug: place for place, slug in enumerate(_slugs(arm)[:WINDOW], 1)}
        rows += [row[:-1] for row in arm if row[0] in places and row[0] not in scores]
        for slug, place in places.items():
            scores[slug] = scores.get(slug, 0.0) + 1.0 / (SMOOTHING + place)
    return sorted(([*row, scores[row[0]]] for row in rows), key=lambda row: -row[-1])[:wanted]


def _slugs(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row[0] for row in rows))
