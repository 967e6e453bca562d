"""Sorting of positions: the few ways that the engine needs, each the fastest NumPy has.

Owns them in one place: NumPy's own `unique` is many times slower than a sort.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from omnigraph.storage.budget import look, need, took

Positions = npt.NDArray[np.int64]
# So many numbers are made at a time, between two looks.
PIECE = 1 << 20
_WIDEST = 63


def distinct(values: Positions) -> Positions:
    """The distinct values, ascending."""
    if len(values) < 2:
        return values
    need(2 * values.nbytes + 2 * len(values))
    ordered = np.sort(values)
    found: Positions = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return took(found)


def missing_from(values: Positions, known: Positions) -> Positions:
    """The values that are not among the known ones; both are ascending and distinct."""
    if not len(known):
        return values
    need(3 * values.nbytes)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Positions = values[known[at] != values]
    return found


def pair_keys(first: Positions, second: Positions) -> tuple[Positions, int] | None:
    """Pairs as single numbers in the same order, and the bits of the second; None if too wide."""
    bits = int(second.max(initial=0)).bit_length()
    if int(first.max(initial=0)).bit_length() + bits > _WIDEST:
        return None
    return (first << bits) | second, bits


def stable_order(values: Positions) -> Positions:
    """The order that sorts values, none below zero; equal ones stay as they stand."""
    need(3 * values.nbytes)
    keys = pair_keys(values, np.arange(len(values)))
    if keys is None:
        return took(np.argsort(values, kind="stable"))
    # Numbers are sorted several times faster than places by their numbers.
    packed, bits = keys
    packed.sort()
    packed &= (1 << bits) - 1
    return took(packed)


def sort_pairs(first: Positions, second: Positions) -> Positions:
    """The order by first, then by second."""
    need(3 * first.nbytes)
    keys = pair_keys(first, second)
    if keys is None:
        return took(np.lexsort([second, first]))
    return took(np.argsort(keys[0], kind="stable"))


def distinct_pairs(first: Positions, second: Positions) -> tuple[Positions, Positions]:
    """The distinct pairs, by first and then by second."""
    need(3 * first.nbytes)
    keys = pair_keys(first, second)
    if keys is None:
        pairs = np.unique(np.stack([first, second]), axis=1)
        return pairs[0], pairs[1]
    found = distinct(took(keys[0]))
    need(2 * found.nbytes)
    return took(found >> keys[1]), took(found & ((1 << keys[1]) - 1))


def pieces(counts: Positions) -> Iterator[tuple[slice, slice]]:
    """Runs of rows that are repeated so often, and where what comes of them stands."""
    ends = np.cumsum(counts)
    whole = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(PIECE, whole + PIECE, PIECE), side="left") + 1
    start = place = 0
    for end in np.minimum(cuts, len(counts)).tolist():
        look()
        if end > start:
            until = int(ends[end - 1])
            yield slice(start, end), slice(place, until)
            start, place = end, until
