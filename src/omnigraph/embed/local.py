"""The providers of this process: the word vectors of the `wordllama` package, and the mock.

Owns loading them, once per process, and averaging them over the tokens of a text. Never
downloads anything, and never imports the package itself: only its data is needed, and importing
it would change the logging of the whole process. The vectors of the mock depend on the text
alone, are the same on every machine and mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.configuration import LOCAL, MOCK, EmbedderConfig
from omnigraph.embed.protocol import Role, Texts, Vectors, text_array, unit_rows
from omnigraph.errors import EmbeddingError
from omnigraph.extras import require_extra

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL = "wordllama-l2-supercat"
DIMENSIONS = (64, 128, 256)

_PACKAGE = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
# So many texts are tokenized at a time, and so many token vectors are gathered at a time: about
# what the processor's cache holds.
_TEXTS = 1024
_TOKENS = 2048

Ids = npt.NDArray[np.int64]
_loading = Lock()

_OFFSET = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_RANGE = 2.0**64

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """Averaged word vectors, computed here; 256 numbers, or the first 128 or 64 of them."""

    @classmethod
    def of(cls, config: EmbedderConfig) -> LocalEmbedder:
        """The one model there is."""
        if config.model not in (None, MODEL):
            raise EmbeddingError(
                f"the embedding provider 'local' has no model '{config.model}', only '{MODEL}': "
                "unset OMNIGRAPH_EMBED_MODEL, or name the provider of that model in "
                "OMNIGRAPH_EMBED_PROVIDER",
                kind="model",
                details={"provider": LOCAL, "model": config.model},
            )
        return cls()

    @property
    def provider(self) -> str:
        """Always `local`."""
        return LOCAL

    @property
    def model(self) -> str:
        """The one model there is."""
        return MODEL

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:  # noqa: ARG002 - the protocol
        """64, 128 or 256 dimensions; texts are not empty."""
        if dimension not in DIMENSIONS:
            raise EmbeddingError(
                f"the embedding provider 'local' makes vectors of 64, 128 or 256 numbers, not of "
                f"{dimension}: name another provider in OMNIGRAPH_EMBED_PROVIDER, or give the "
                "vectors",
                kind="dimension",
                details={"provider": LOCAL, "model": MODEL, "dimension": dimension},
            )
        asked = text_array(texts)
        words = _words()
        sums = np.zeros((len(asked), DIMENSIONS[-1]), dtype=np.float32)
        for start in range(0, len(asked), _TEXTS):
            batch = asked.slice(start, _TEXTS).to_pylist()
            words.add(batch, sums[start : start + len(batch)])
        return unit_rows(sums[:, :dimension], asked, self)


@dataclass(frozen=True, slots=True)
class _Words:
    """A tokenizer, and a vector for each token."""

    tokenizer: Tokenizer
    vectors: npt.NDArray[np.float32]

    def add(self, texts: Sequence[str], sums: npt.NDArray[np.float32]) -> None:
        """Add the vectors of the tokens of each text to its row."""
        encoded = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [np.array(one.ids, dtype=np.int64) for one in encoded]
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        for first, last in _groups(lengths):
            flat = np.concatenate(ids[first:last])
            if len(flat) > _TOKENS:
                for at in range(0, len(flat), _TOKENS):
                    some = self.vectors[flat[at : at + _TOKENS]]
                    sums[first] += np.add.reduceat(some, [0], axis=0)[0]
            elif len(flat):
                # A text that has no tokens would be given a token of the next one.
                filled = first + np.flatnonzero(lengths[first:last])
                starts = np.cumsum(lengths[filled]) - lengths[filled]
                sums[filled] += np.add.reduceat(self.vectors[flat], starts, axis=0)


def _groups(lengths: Ids) -> Iterator[tuple[int, int]]:
    """Ranges of texts that have few tokens together; a long text is alone.

    No text is cut but a long one, and that from its own beginning: so the sum over a
    text, to the last digit, does not depend on the others.
    """
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        begun = int(ends[first] - lengths[first])
        last = max(first + 1, int(np.searchsorted(ends, begun + _TOKENS, side="right")))
        yield first, last
        first = last


def _words() -> _Words:
    # The lock, because a cache alone would let two threads load at once.
    with _loading:
        return _load()


@cache
def _load() -> _Words:
    require_extra(
        "embed",
        f"the embedding provider '{LOCAL}'",
        otherwise="name another provider in OMNIGRAPH_EMBED_PROVIDER",
    )
    from safetensors import safe_open
    from tokenizers import Tokenizer

    root = _package()
    with safe_open(root / _WEIGHTS, framework="np") as weights:
        vectors = weights.get_tensor("embedding.weight").astype(np.float32)
    return _Words(Tokenizer.from_file(str(root / _TOKENIZER)), vectors)


def _package() -> Path:
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise AssertionError("an extra that is there has its modules")
    return Path(found.origin).parent


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
