"""Who makes the vectors of a graph of a project: its provider, with the key of now.

Owns putting the two together. A key goes to the provider that it is of, and to no address of the
file that it was not made for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from omnigraph.config.project import EmbeddingProvider, ProjectFile, ProjectGraph
from omnigraph.config.variables import value_of
from omnigraph.embed.configuration import LOCAL, MOCK, EmbedderConfig

_PREFIX = "provider.embedding."


def embedding_of(
    project: ProjectFile, graph: ProjectGraph, environment: Mapping[str, str] = os.environ
) -> EmbedderConfig | None:
    """The embedder of a graph; None where the environment says."""
    name = graph.embedding_provider
    usual = EmbedderConfig.of_environment(environment)
    forced = environment.get("OMNIGRAPH_EMBEDDINGS_MOCK", "").strip().lower()
    if name is None or forced not in ("", "0", "false"):
        return None
    provider = project.embedding.get(name.removeprefix(_PREFIX))
    if provider is None:
        # The reader has let no other names pass.
        return EmbedderConfig(MOCK if name == MOCK else LOCAL, cache=usual.cache)
    return _of_provider(provider, environment)


def _of_provider(provider: EmbeddingProvider, environment: Mapping[str, str]) -> EmbedderConfig:
    asked = {**environment, "OMNIGRAPH_EMBED_PROVIDER": provider.kind}
    usual = EmbedderConfig.of_environment(asked)
    # Without an address of the file it is asked where it always is, with the key that it has.
    key = usual.api_key if provider.base_url is None else None
    problem = usual.problem
    if provider.key_variable is not None:
        key = value_of(provider.key_variable, environment)
        if key is None:
            problem = (
                f"the embedding provider '{provider.name}' needs {provider.key_variable}, which is "
                "not set"
            )
    return replace(
        usual, model=provider.model, base_url=provider.base_url, api_key=key, problem=problem
    )
