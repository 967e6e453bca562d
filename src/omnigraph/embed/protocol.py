"""The protocol of embedders, and what all of them share.

Owns what an embedder promises: one unit vector of the asked dimension for each
text, whatever else is in the batch. Knows no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import EmbeddingError

Role = Literal["document", "query"]
Texts: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str]
Vectors = npt.NDArray[np.float32]

_SHOWN = 60


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def provider(self) -> str:
        """The name it is configured by."""

    @property
    def model(self) -> str:
        """The model it uses; vectors of different models cannot be compared."""

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        """One row per text, each of length 1; texts are not null.

        ``role`` says whether the texts are stored or searched for: some models tell
        the two apart.
        """


def text_array(texts: Texts) -> pa.Array:
    """The texts as one Arrow array with wide offsets."""
    if isinstance(texts, pa.ChunkedArray):
        # Cast first: joined chunks may be more than narrow offsets can count.
        texts = texts.cast(pa.large_string()).combine_chunks()
    if not isinstance(texts, pa.Array):
        texts = pa.array(texts, pa.large_string())
    if texts.null_count:
        raise AssertionError("a null is not a text that could be embedded")
    return texts.cast(pa.large_string())


def unit_rows(raw: npt.NDArray[np.floating], texts: pa.Array, embedder: Embedder) -> Vectors:
    """Rows scaled to length 1; refuses what has no direction."""
    # In 64 bits, so that no square is lost and the batch cannot be seen in the last digit.
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.square(raw, dtype=np.float64).sum(axis=1))
    useless = ~(np.isfinite(norms) & (norms > 0))
    if useless.any():
        position = int(np.flatnonzero(useless)[0])
        text = texts[position].as_py()
        raise EmbeddingError(
            f"the embedding provider '{embedder.provider}' has no vector for the text "
            f"{text[:_SHOWN]!r}: change the text, or give the vector",
            kind="bad_answer",
            details={"provider": embedder.provider, "model": embedder.model},
            position=position,
        )
    return np.asarray(raw / norms[:, np.newaxis], dtype=np.float32)
