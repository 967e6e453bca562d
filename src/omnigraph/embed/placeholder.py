"""A stand-in for an embedder: the same names, and vectors that mean nothing.

For reading rows once more when their vectors are stored already: whether a row obeys the
rules depends on having a vector, not on which. Never asks a provider for anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.protocol import Embedder, Role, Texts, Vectors
from omnigraph.embed.providers import embedder_of


@dataclass(frozen=True, slots=True)
class PlaceholderEmbedder:
    """Takes the place of another embedder."""

    other: Embedder

    @property
    def provider(self) -> str:
        """That of the other embedder."""
        return self.other.provider

    @property
    def model(self) -> str:
        """That of the other embedder."""
        return self.other.model

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:  # noqa: ARG002 - the protocol
        """The same unit vector for every text."""
        return np.full((len(texts), dimension), dimension**-0.5, dtype=np.float32)


def stand_in(config: EmbedderConfig) -> PlaceholderEmbedder:
    """The stand-in for the embedder of a configuration."""
    return PlaceholderEmbedder(embedder_of(config))
