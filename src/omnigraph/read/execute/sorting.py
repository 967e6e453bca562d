"""Sorting of positions: the few ways that the engine needs, each the fastest NumPy has.

Owns them in one place: NumPy's own `unique` is many times slower than a sort.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]
_WIDEST = 63


def distinct(values: Positions) -> Positions:
    """The distinct values, ascending."""
    if len(values) < 2:
        return values
    ordered = np.sort(values)
    found: Positions = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return found


def missing_from(values: Positions, known: Positions) -> Positions:
    """The values that are not among the known ones; both are ascending and distinct."""
    if not len(known):
        return values
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: Positions = values[known[at] != values]
    return found


def pair_keys(first: Positions, second: Positions) -> tuple[Positions, int] | None:
    """Pairs as single numbers in the same order, and the bits of the second; None if too wide."""
    bits = int(second.max(initial=0)).bit_length()
    if int(first.max(initial=0)).bit_length() + bits > _WIDEST:
        return None
    return (first << bits) | second, bits


def sort_pairs(first: Positions, second: Positions) -> Positions:
    """The order by first, then by second."""
    keys = pair_keys(first, second)
    if keys is None:
        return np.lexsort([second, first])
    return np.argsort(keys[0], kind="stable")


def distinct_pairs(first: Positions, second: Positions) -> tuple[Positions, Positions]:
    """The distinct pairs, by first and then by second."""
    keys = pair_keys(first, second)
    if keys is None:
        pairs = np.unique(np.stack([first, second]), axis=1)
        return pairs[0], pairs[1]
    found = distinct(keys[0])
    return found >> keys[1], found & ((1 << keys[1]) - 1)
