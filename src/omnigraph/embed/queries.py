"""The vector of a text that is searched for, made when a query runs.

Owns remembering the last ones, so that a query that is asked again costs nothing. Never
looks at stored vectors.
"""

from __future__ import annotations

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.fill import check_model
from omnigraph.embed.protocol import Vectors
from omnigraph.embed.providers import make_embedder
from omnigraph.lang.cache import Cache

KEPT = 1024

_remembered: Cache[tuple[str, str, str | None, int, str], Vectors] = Cache(limit=KEPT)


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
