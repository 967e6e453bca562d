"""The mock provider: vectors that depend on the text alone, for tests.

Owns the numbers of the contract. They are the same on every machine and mean
nothing: similar texts are not near each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.configuration import MOCK, EmbedderConfig
from omnigraph.embed.protocol import Role, Texts, Vectors, text_array

_OFFSET = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_RANGE = 2.0**64

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class MockEmbedder:
    """Pseudo-random vectors, seeded by a hash of the text."""

    model: str = ""

    @classmethod
    def of(cls, config: EmbedderConfig) -> MockEmbedder:
        """The mock, under whatever model name is wanted."""
        return cls(config.model or "")

    @property
    def provider(self) -> str:
        """Always `mock`."""
        return MOCK

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:  # noqa: ARG002 - the protocol
        """Any dimension."""
        seeds = fnv1a(text_array(texts))
        vectors = np.empty((len(seeds), dimension), dtype=np.float32)
        squares = np.zeros(len(seeds))
        for at in range(dimension):
            seeds ^= seeds << np.uint64(13)
            seeds ^= seeds >> np.uint64(7)
            seeds ^= seeds << np.uint64(17)
            ratios = (seeds.astype(np.float64) / _RANGE).astype(np.float32)
            column = np.float32(2) * ratios - np.float32(1)
            vectors[:, at] = column
            # Component by component: the contract says the order of the sum by saying its digits.
            squares += np.square(column, dtype=np.float64)
        norms = np.sqrt(squares).astype(np.float32)
        return vectors / norms[:, np.newaxis]


def fnv1a(texts: pa.Array) -> Words:
    """The 64-bit FNV-1a hash of each text's UTF-8 bytes."""
    _, offsets_buffer, data_buffer = texts.buffers()
    count = len(texts)
    hashes = np.full(count, _OFFSET)
    if not count or data_buffer is None:
        return hashes
    offsets = np.frombuffer(offsets_buffer, np.int64)[texts.offset : texts.offset + count + 1]
    data = np.frombuffer(data_buffer, np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    # Longest first: the texts that still have a byte at a position are then the first ones.
    order = np.argsort(-lengths, kind="stable")
    starts, falling = starts[order], -lengths[order]
    longest_first = hashes[order]
    for position in range(-int(falling[0])):
        left = int(np.searchsorted(falling, -position))
        part = longest_first[:left]
        part ^= data[starts[:left] + position]
        part *= _PRIME
    hashes[order] = longest_first
    return hashes
