"""The providers by name, and the embedder that a configuration describes.

Owns the list. A provider is a function from a configuration to an embedder; adding
one is a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.embed.cache import FrugalEmbedder
from omnigraph.embed.configuration import LOCAL, MOCK, EmbedderConfig
from omnigraph.embed.local import LocalEmbedder
from omnigraph.embed.mock import MockEmbedder
from omnigraph.embed.protocol import Embedder, Role, Texts, Vectors
from omnigraph.embed.store import VectorStore
from omnigraph.errors import BadRequest


def _not_available(config: EmbedderConfig) -> NoReturn:
    raise BadRequest(
        f"the embedding provider '{config.provider}' is not available in this version: unset "
        "OMNIGRAPH_EMBED_PROVIDER to use 'local', or give the vectors",
        details={"provider": config.provider},
    )


PROVIDERS: Mapping[str, Callable[[EmbedderConfig], Embedder]] = {
    LOCAL: LocalEmbedder.of,
    MOCK: MockEmbedder.of,
    "openai-compatible": _not_available,
    "openai": _not_available,
    "gemini": _not_available,
}


@dataclass(slots=True)
class ConfiguredEmbedder:
    """The embedder of a configuration, made when it is first asked for anything.

    So a wrong setting troubles only those who embed something. Without a configuration
    the environment is asked, then.
    """

    config: EmbedderConfig | None = None
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
        vectors = self._embedder.embed(texts, dimension, role)
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


def embedder_of(config: EmbedderConfig | None = None) -> ConfiguredEmbedder:
    """The embedder of a configuration, or of the environment; cheap to make, in any process."""
    return ConfiguredEmbedder(config)


def _make(config: EmbedderConfig) -> Embedder:
    make = PROVIDERS.get(config.provider)
    if make is None:
        raise BadRequest(
            f"there is no embedding provider '{config.provider}': set OMNIGRAPH_EMBED_PROVIDER "
            f"to one of {', '.join(PROVIDERS)}",
            details={"provider": config.provider},
        )
    store = None if config.cache is None else VectorStore(config.cache)
    return FrugalEmbedder(make(config), store)
