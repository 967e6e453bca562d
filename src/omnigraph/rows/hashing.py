"""Hashes of texts, many at once.

Owns one function. The hashes live in memory only and say "maybe equal": they look
at the ends of a long text alone, so that no text takes long.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

_WORD = 8
# So many bytes at each end of a text are looked at.
_END = 64
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
# So many texts are hashed at a time: what is made on the way stays in the processor's cache.
_AT_ONCE = 32_768


def hash_texts(texts: pa.Array | pa.ChunkedArray, *, salt: int = 0, whole: bool = False) -> Hashes:
    """One 64-bit hash per text; a null counts as the empty text.

    ``whole`` looks at every byte, however long a text is.
    """
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    hashes = np.empty(len(texts), dtype=np.uint64)
    done = 0
    for chunk in chunks:
        for start in range(0, len(chunk), _AT_ONCE):
            part = chunk.slice(start, _AT_ONCE)
            hashes[done : done + len(part)] = _hash_part(part, salt, whole=whole)
            done += len(part)
    return hashes


def _hash_part(texts: pa.Array, salt: int, *, whole: bool) -> Hashes:
    offsets, data = _laid_out(texts)
    words = _words_at_every_byte(data, int(offsets[0]), int(offsets[-1]))
    offsets = offsets - offsets[0]
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    longest = int(lengths.max())
    hashes: Hashes = (lengths.astype(np.uint64) + np.uint64(salt)) * _GOLDEN
    # The last word of a text reaches back, so that it never sees the bytes of the next one.
    last = ends - _WORD
    reach = longest if whole else min(longest, _END)
    for position in range(0, reach, _WORD):
        _mix(hashes, words, np.minimum(starts + position, last), starts, lengths - position)
    if longest > reach:
        tails = np.maximum(lengths - _END, _END)
        for position in range(0, min(longest - _END, _END), _WORD):
            at = np.minimum(starts + tails + position, last)
            _mix(hashes, words, at, starts, lengths - tails - position)
    # The last bytes of a text are yet to reach the low bits of its hash.
    hashes ^= hashes >> _HALF
    hashes *= _MIX
    hashes ^= hashes >> _HALF
    return hashes


def _laid_out(texts: pa.Array) -> tuple[Offsets, pa.Buffer | None]:
    """Where each text begins and ends, and the bytes of all."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        texts = texts.cast(pa.large_string())
    width = np.int32 if pa.types.is_string(texts.type) else np.int64
    _, offsets, data = texts.buffers()
    found = np.frombuffer(offsets, dtype=width)[texts.offset : texts.offset + len(texts) + 1]
    return found.astype(np.int64), data


def _mix(
    hashes: Hashes,
    words: npt.NDArray[np.uint64],
    at: Offsets,
    starts: Offsets,
    left: Offsets,
) -> None:
    """Mix one word into the hash of every text that has bytes left there."""
    ended = np.flatnonzero(left <= 0)
    if 2 * len(ended) < len(hashes):
        kept = hashes[ended]
        hashes[:] = _mixed(hashes, words, at, starts, left)
        hashes[ended] = kept
    else:
        some = np.flatnonzero(left > 0)
        hashes[some] = _mixed(hashes[some], words, at[some], starts[some], left[some])


def _mixed(
    hashes: Hashes,
    words: npt.NDArray[np.uint64],
    at: Offsets,
    starts: Offsets,
    left: Offsets,
) -> Hashes:
    word = words[np.maximum(at, starts)]
    short = at < starts
    if short.any():
        # Texts of less than a word.
        bits = np.maximum(left[short], 1).astype(np.uint64) * np.uint64(_WORD)
        word[short] &= _ALL >> (np.uint64(64) - bits)
    mixed: Hashes = (hashes ^ word) * _MIX
    # Twice, so that every byte of a word reaches every byte that the next one meets.
    mixed ^= mixed >> _HALF
    mixed *= _GOLDEN
    return mixed


def _words_at_every_byte(data: pa.Buffer | None, begin: int, end: int) -> npt.NDArray[np.uint64]:
    """The eight bytes that begin at each position of a span, past its end filled with zeros."""
    size = end - begin
    padded = np.zeros(size + _WORD, dtype=np.uint8)
    if data is not None:
        padded[:size] = np.frombuffer(data, dtype=np.uint8)[begin:end]
    return np.ndarray(shape=(size + 1,), dtype="<u8", buffer=padded, strides=(1,))
