"""Near spellings: the terms of a vocabulary within a number of edits of a word.

Owns the edit distance, for a whole vocabulary at once. An edit inserts, removes or
replaces one character.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


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
        here = np.empty_like(above)
        here[:, 0] = row
        replaced = above[:, :-1] + (terms != ord(character))
        best = np.minimum(replaced, above[:, 1:] + 1)
        for column in range(1, width + 1):
            here[:, column] = np.minimum(best[:, column - 1], here[:, column - 1] + 1)
        above = here
    found: npt.NDArray[np.int64] = above[np.arange(count), lengths]
    return found
