"""The mock vectors are those of the contract, whatever they are embedded together with."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.embed.local import MockEmbedder, fnv1a
from omnigraph.embed.protocol import text_array

MASK = 2**64 - 1
TEXTS = ["hello", "", "a film about rain", "naïve 日本 🧿", "x" * 1000, "hello "]


def single(value: float) -> float:
    """A number rounded to 32 bits."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def spelled_out(text: str, dimension: int) -> list[float]:
    """One vector, number by number as the contract says it."""
    seed = 14695981039346656037
    for byte in text.encode():
        seed = (seed ^ byte) * 1099511628211 & MASK
    values = []
    for _ in range(dimension):
        seed ^= seed << 13 & MASK
        seed ^= seed >> 7
        seed ^= seed << 17 & MASK
        ratio = single(float(seed) / 2**64)
        values.append(single(single(2 * ratio) - 1))
    norm = single(math.sqrt(sum(value * value for value in values)))
    return [single(value / norm) for value in values]


@pytest.mark.parametrize("dimension", [1, 4, 64, 100])
def test_the_numbers_of_the_contract(dimension: int) -> None:
    made = MockEmbedder().embed(TEXTS, dimension)
    assert made.dtype == np.float32
    assert made.tolist() == [spelled_out(text, dimension) for text in TEXTS]


def test_known_hashes() -> None:
    # The published test values of FNV-1a 64.
    known = {"": 0xCBF29CE484222325, "a": 0xAF63DC4C8601EC8C, "foobar": 0x85944171F73967E8}
    assert fnv1a(text_array(list(known))).tolist() == list(known.values())


def test_a_slice_and_chunks_of_a_column() -> None:
    whole = MockEmbedder().embed(TEXTS, 8)
    column = pa.array(["before", *TEXTS, "after"])
    assert np.array_equal(MockEmbedder().embed(column.slice(1, len(TEXTS)), 8), whole)
    chunks = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], pa.string())
    assert np.array_equal(MockEmbedder().embed(chunks, 8), whole)


def test_nothing() -> None:
    assert MockEmbedder().embed([], 8).shape == (0, 8)
