"""Row addresses: the number of a fragment and the row in it, packed into one integer.

Owns the packing, which is Lance's own. An address holds for one version of a table
and is never kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]

_ROW_BITS = np.uint64(32)
_ROW_MASK = np.uint64(2**32 - 1)


def row_addresses(
    fragments: int | npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.integer[Any]]
) -> Addresses:
    """The addresses of rows, all of one fragment or each of its own."""
    numbers = np.asarray(fragments).astype(np.uint64, copy=False)
    return (numbers << _ROW_BITS) | rows.astype(np.uint64, copy=False)


def whole_fragment(fragment: int, rows: int) -> Addresses:
    """The addresses of all rows of a fragment."""
    return row_addresses(fragment, np.arange(rows, dtype=np.uint64))


def fragments_of(addresses: Addresses) -> npt.NDArray[np.int64]:
    """The number of the fragment of each address."""
    return (addresses >> _ROW_BITS).astype(np.int64)


def rows_of(addresses: Addresses) -> npt.NDArray[np.int64]:
    """The row in its fragment of each address."""
    return (addresses & _ROW_MASK).astype(np.int64)


def distinct_addresses(addresses: Addresses) -> Addresses:
    """Each address once, in their order: sorted, since hashing suits numbers in a row badly."""
    ordered = np.sort(addresses)
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    found: Addresses = ordered if is_new.all() else ordered[is_new]
    return found
