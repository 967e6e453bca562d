"""The providers by name, and the embedder that a configuration describes or a query needs.

Owns the list: a provider is a function from a configuration to an embedder, adding one is a
line here. Remembers the last texts that were searched for. Never looks at stored vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from omnigraph.embed.cache import CachingEmbedder, Memory, VectorStore, WrappedEmbedder, embed_new
from omnigraph.embed.configuration import LOCAL, MOCK, EmbedderConfig
from omnigraph.embed.fill import check_model
from omnigraph.embed.local import LocalEmbedder, MockEmbedder
from omnigraph.embed.protocol import Embedder, Role, Texts, Vectors
from omnigraph.embed.remote import RemoteEmbedder
from omnigraph.embed.request_formats import FORMATS
from omnigraph.errors import EmbeddingError
from omnigraph.lang.cache import Cache

PROVIDERS: Mapping[str, Callable[[EmbedderConfig], Embedder]] = {
    LOCAL: LocalEmbedder.of,
    MOCK: MockEmbedder.of,
    **{format_.provider: partial(RemoteEmbedder, format_) for format_ in FORMATS},
}

KEPT = 1024

_remembered: Cache[tuple[str, str, str | None, int, str], Vectors] = Cache(limit=KEPT)


@dataclass(slots=True)
class ConfiguredEmbedder:
    """The embedder of a configuration, made when it is first asked for anything.

    So a wrong setting troubles only those who embed something. Without a configuration
    the environment is asked, then. What is ``known`` is not asked for, and is added to.
    """

    config: EmbedderConfig | None = None
    known: Memory | None = None
    _made: Embedder | None = None
    _has_embedded: bool = False

    @property
    def provider(self) -> str:
        """The name it is configured by."""
        return self._embedder.provider

    @property
    def model(self) -> str:
        """The model it uses."""
        return self._embedder.model

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:
        """One unit vector per text."""
        if self.known is None:
            vectors = self._embedder.embed(texts, dimension, role)
        else:
            vectors = embed_new(self._embedder, self.known, texts, dimension, role)
        self._has_embedded = True
        return vectors

    @property
    def used(self) -> dict[str, str] | None:
        """The provider and model of what was embedded; None if nothing was."""
        if not self._has_embedded:
            return None
        return {"provider": self.provider, "model": self.model}

    @property
    def _embedder(self) -> Embedder:
        if self._made is None:
            self._made = _make(self.config or EmbedderConfig.of_environment())
        return self._made


def embedder_of(
    config: EmbedderConfig | None = None, known: Memory | None = None
) -> ConfiguredEmbedder:
    """The embedder of a configuration, or of the environment; cheap to make, in any process."""
    return ConfiguredEmbedder(config, known)


def _make(config: EmbedderConfig) -> Embedder:
    store = None if config.cache is None else VectorStore(config.cache)
    return CachingEmbedder(make_embedder(config), store)


def make_embedder(config: EmbedderConfig) -> Embedder:
    """The very embedder of a configuration, which keeps nothing."""
    make = PROVIDERS.get(config.provider)
    if make is None:
        raise EmbeddingError(
            f"there is no embedding provider '{config.provider}': set OMNIGRAPH_EMBED_PROVIDER "
            f"to one of {', '.join(PROVIDERS)}",
            kind="configuration",
            details={"provider": config.provider},
        )
    if config.problem is not None:
        raise EmbeddingError(
            config.problem, kind="configuration", details={"provider": config.provider}
        )
    return make(config)


@dataclass(frozen=True, slots=True)
class PlaceholderEmbedder(WrappedEmbedder):
    """Takes the place of another embedder: the same names, and vectors that mean nothing.

    For reading rows once more when their vectors are stored already: whether a row obeys the
    rules depends on having a vector, not on which. Never asks a provider for anything.
    """

    def embed(self, texts: Texts, dimension: int, role: Role = "document") -> Vectors:  # noqa: ARG002 - the protocol
        """The same unit vector for every text."""
        return np.full((len(texts), dimension), dimension**-0.5, dtype=np.float32)


def stand_in(config: EmbedderConfig) -> PlaceholderEmbedder:
    """The stand-in for the embedder of a configuration."""
    return PlaceholderEmbedder(embedder_of(config))


def embed_query(
    text: str,
    dimension: int,
    model: str | None,
    config: EmbedderConfig | None = None,
    *,
    place: str = "the property that is searched",
) -> Vectors:
    """The unit vector of a text to search for; read-only, since it may be handed out again.

    ``model`` is what the `@embed` of the property records, if anything: another one is
    refused. ``place`` is the property as a person knows it, such as `Film.meaning`. Without a
    configuration the environment is asked.
    """
    config = config or EmbedderConfig.of_environment()
    embedder = make_embedder(config)
    check_model(place, model, embedder)
    key = (embedder.provider, embedder.model, config.base_url, dimension, text)

    def embed() -> Vectors:
        vector: Vectors = embedder.embed([text], dimension, "query")[0]
        vector.flags.writeable = False
        return vector

    return _remembered.get(key, embed)
