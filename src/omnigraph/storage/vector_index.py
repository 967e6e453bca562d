"""Vector indexes: which sort serves how many vectors, and how to search it.

Owns the numbers, all of them measured: how many partitions, how many of them a search
looks at. Must never decide what is searched for; the distance is the cosine everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Literal

VectorKind = Literal["IVF_FLAT", "IVF_SQ"]
VECTOR_KINDS: tuple[VectorKind, ...] = ("IVF_FLAT", "IVF_SQ")

EXACT_BELOW = 20_000
"""Below so many vectors, comparing all of them is exact and takes some tens of milliseconds."""
QUANTISED_FROM = 1_000_000
"""From so many on, an index keeps one byte per number; the best are compared again exactly."""

_ROWS_PER_PARTITION = 500
_FEWEST_PROBES = 20
_PARTITIONS_PER_PROBE = 15
_REFINE = 4
_DEEPER = 0.6
"""How fast more partitions are looked at, the more than ten of the nearest are wanted."""


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """How an index is asked so that of the ten nearest hardly one is missed.

    ``nprobes`` partitions are looked at. With ``refine_factor``, so many times the wanted
    number are compared again with the vectors themselves.
    """

    nprobes: int
    refine_factor: int | None = None


def vector_kind(count: int) -> VectorKind | None:
    """The index that so many vectors want; None where an exact search does."""
    if count < EXACT_BELOW:
        return None
    return "IVF_FLAT" if count < QUANTISED_FROM else "IVF_SQ"


def partitions(count: int) -> int:
    """How many partitions so many vectors are divided into."""
    return max(1, min(count // _ROWS_PER_PARTITION, 2 * isqrt(count)))


def search_parameters(row_count: int, depth: int = 10) -> SearchParameters:
    """How to search the vector index of a table with so many rows, at its default quality.

    ``depth`` says how many of the nearest of all rows are to be found, hardly one missed.
    """
    every = partitions(row_count)
    share = max(depth / 10, 1.0) ** _DEEPER / _PARTITIONS_PER_PROBE
    probes = max(_FEWEST_PROBES, min(every, round(every * share)))
    return SearchParameters(probes, _REFINE if row_count >= QUANTISED_FROM else None)
