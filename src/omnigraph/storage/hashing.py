"""Hashes of texts, many at once.

Owns one function. The hashes live in memory only and say "maybe equal": they look
at the ends of a long text alone, so that no text takes long.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_WORD = 8
_WORDS_AT_EACH_END = 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


def hash_texts(texts: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """One 64-bit hash per text; a null counts as the empty text."""
    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    array = array.cast(pa.large_string())
    count = len(array)
    if count == 0:
        return np.empty(0, dtype=np.uint64)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[array.offset : array.offset + count + 1]
    words = _words_at_every_byte(data_buffer)
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashes = lengths.astype(np.uint64) * _GOLDEN
    ends = lengths - _WORD * _WORDS_AT_EACH_END
    for position in range(0, _WORD * _WORDS_AT_EACH_END, _WORD):
        _mix(hashes, words, starts + position, lengths - position)
        # The last words of a text, so far as the first ones do not reach them.
        tail = np.maximum(ends, _WORD * _WORDS_AT_EACH_END) + position
        if (lengths > tail).any():
            _mix(hashes, words, starts + tail, lengths - tail)
    return hashes


def _mix(
    hashes: npt.NDArray[np.uint64],
    words: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
) -> None:
    """Mix one word into the hash of every text that has bytes left there."""
    live = np.flatnonzero(left > 0)
    if not len(live):
        return
    word = words[starts[live]]
    # A word at the end of a text must not see the bytes of the next one.
    short = np.minimum(left[live], _WORD).astype(np.uint64) * np.uint64(_WORD)
    word &= _ALL >> (np.uint64(64) - short)
    mixed = (hashes[live] ^ word) * _MIX
    hashes[live] = mixed ^ (mixed >> _HALF)


def _words_at_every_byte(data: pa.Buffer | None) -> npt.NDArray[np.uint64]:
    """The eight bytes that begin at each position, past the end filled with zeros."""
    size = data.size if data is not None else 0
    padded = np.zeros(size + _WORD, dtype=np.uint8)
    if data is not None:
        padded[:size] = np.frombuffer(data, dtype=np.uint8)
    return np.ndarray(shape=(size + 1,), dtype="<u8", buffer=padded, strides=(1,))
