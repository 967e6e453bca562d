"""Vector indexes: which sort serves how many vectors, and how to search it.

Owns the numbers, all of them measured: how many partitions, how many of them a search
looks at. Must never decide what is searched for; the distance is the cosine everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Literal

VectorKind = Literal["IVF_FLAT", "IVF_SQ", "IVF_RQ"]
VECTOR_KINDS: tuple[VectorKind, ...] = ("IVF_FLAT", "IVF_SQ", "IVF_RQ")

EXACT_BELOW = 20_000
"""Below so many vectors, comparing all of them is exact and takes some tens of milliseconds."""
QUANTISED_FROM = 1_000_000
"""From so many on, an index keeps a few bits per number; the best are compared again exactly."""

REFINE = 4
"""So many times the wanted number are compared again, where an index keeps a few bits."""

_ROWS_PER_PARTITION = 500
_FEWEST_PROBES = 20
_PARTITIONS_PER_PROBE = 15
_BITS = 3
_DEEPER = 0.7
"""How fast more partitions are looked at, the more than ten of the nearest are wanted."""


def vector_kind(count: int, dimension: int) -> VectorKind | None:
    """The index that so many vectors want; None where an exact search does."""
    if count < EXACT_BELOW:
        return None
    if count < QUANTISED_FROM:
        return "IVF_FLAT"
    # Lance rotates vectors in groups of eight numbers before it rounds them.
    return "IVF_SQ" if dimension % 8 else "IVF_RQ"


def build_options(kind: VectorKind) -> Mapping[str, int]:
    """What is said about an index when it is built, besides its partitions and the distance."""
    return {"num_bits": _BITS} if kind == "IVF_RQ" else {}


def partitions(count: int) -> int:
    """How many partitions so many vectors are divided into."""
    return max(1, min(count // _ROWS_PER_PARTITION, 2 * isqrt(count)))


def probes(row_count: int, depth: int = 10) -> int:
    """How many partitions of the vector index of so many rows a search looks at.

    ``depth`` says how many of the nearest of all rows are to be found, hardly one missed.
    """
    every = partitions(row_count)
    share: float = max(depth / 10, 1.0) ** _DEEPER / _PARTITIONS_PER_PROBE
    return max(_FEWEST_PROBES, min(every, round(every * share)))
