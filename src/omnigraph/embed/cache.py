"""Embedding each text once: within a call, and across runs when there is a store.

Owns finding equal texts. What it keeps is named by the provider, the model, the
role, the dimension and a hash of the text, so nothing kept is ever out of date.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.protocol import Embedder, Role, Texts, Vectors, text_array
from omnigraph.embed.store import KEY, VectorStore
from omnigraph.errors import EmbeddingError

Memory = dict[tuple[str, int, Role], Vectors]
"""Vectors by text, dimension and role, all of one model."""

# What a run that is stopped has to pay for again, at most.
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class CachingEmbedder:
    """Asks another embedder for each different text once."""

    inner: Embedder
    store: VectorStore | None = None

    @property
    def provider(self) -> str:
        """That of the other embedder."""
        return self.inner.provider

    @property
    def model(self) -> str:
        """That of the other embedder."""
        return self.inner.model

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        """The vectors of the other embedder."""
        encoded = text_array(texts).dictionary_encode()
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
        try:
            if self.store is None:
                distinct = self.inner.embed(encoded.dictionary, dimension, role)
            else:
                distinct = self._kept(self.store, encoded.dictionary, dimension, role)
        except EmbeddingError as error:
            if error.position is not None:
                error.position = int(np.flatnonzero(places == error.position)[0])
            raise
        return distinct[places]

    def _kept(self, store: VectorStore, texts: pa.Array, dimension: int, role: Role) -> Vectors:
        shelf = store.shelf(self.provider, self.model, role, dimension)
        keys = _keys(texts.to_pylist())
        vectors = np.empty((len(texts), dimension), dtype=np.float32)
        missing = shelf.read(keys, vectors)
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            try:
                made = self.inner.embed(texts.take(pa.array(some)), dimension, role)
            except EmbeddingError as error:
                if error.position is not None:
                    error.position = int(some[error.position])
                raise
            shelf.write(keys.take(pa.array(some)), made)
            vectors[some] = made
        return vectors


def embed_new(
    embedder: Embedder, known: Memory, texts: Texts, dimension: int, role: Role
) -> Vectors:
    """One vector per text; only what is not known yet is asked for, and known from then on."""
    wanted = [(text, dimension, role) for text in text_array(texts).to_pylist()]
    new = [place for place, key in enumerate(wanted) if key not in known]
    if new:
        try:
            made = embedder.embed([wanted[place][0] for place in new], dimension, role)
        except EmbeddingError as error:
            if error.position is not None:
                error.position = new[error.position]
            raise
        known.update({wanted[place]: made[row] for row, place in enumerate(new)})
    return np.stack([known[key] for key in wanted])


def _keys(texts: Iterable[str]) -> pa.Array:
    return pa.array((sha256(text.encode()).digest() for text in texts), KEY)
