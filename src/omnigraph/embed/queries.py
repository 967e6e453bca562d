"""The vector of a text that is searched for, made when a query runs.

Owns remembering the last ones, so that a query that is asked again costs nothing. Never
looks at stored vectors.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.fill import check_model
from omnigraph.embed.protocol import Vectors
from omnigraph.embed.providers import make_embedder

KEPT = 1024

_Key = tuple[str, str, str | None, int, str]


class _Remembered:
    """The last vectors, the least recently used forgotten first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._vectors: OrderedDict[_Key, Vectors] = OrderedDict()

    def get(self, key: _Key) -> Vectors | None:
        with self._lock:
            found = self._vectors.get(key)
            if found is not None:
                self._vectors.move_to_end(key)
            return found

    def keep(self, key: _Key, vector: Vectors) -> None:
        with self._lock:
            self._vectors[key] = vector
            while len(self._vectors) > KEPT:
                self._vectors.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._vectors.clear()


_remembered = _Remembered()


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
    vector = _remembered.get(key)
    if vector is None:
        vector = embedder.embed([text], dimension, "query")[0]
        vector.flags.writeable = False
        _remembered.keep(key, vector)
    return vector


def forget_queries() -> None:
    """Forget every vector."""
    _remembered.clear()
