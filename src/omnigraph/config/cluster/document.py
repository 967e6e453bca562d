"""A cluster as it is declared: graphs, their queries, who embeds for them, and policies.

Owns the shapes. What the files say that a declaration names is read elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

BlobScope = Literal["server_safe", "embedded_only"]
ProviderKind = Literal["openai-compatible", "openai", "gemini", "local", "mock"]
CLUSTER = "cluster"
"""The binding of a policy that is on the server as a whole."""


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """Who makes vectors; the key is the name of an environment variable, and never the key."""

    name: str
    kind: ProviderKind
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None

    @property
    def profile(self) -> dict[str, str]:
        """What the ledger keeps of it."""
        known = {"kind": self.kind, "base_url": self.base_url, "model": self.model}
        found = {name: value for name, value in known.items() if value is not None}
        return found if self.api_key is None else {**found, "api_key": f"${{{self.api_key}}}"}


@dataclass(frozen=True, slots=True)
class BlobBase:
    """Where blobs of a graph may lie outside of it."""

    base: str
    scope: BlobScope


@dataclass(frozen=True, slots=True)
class QueryDeclaration:
    """Where stored queries are: a file or directory, of which one query if it is named."""

    path: str
    key: str
    """The key of the file that says it."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GraphDeclaration:
    """One graph."""

    id: str
    schema: str
    queries: tuple[QueryDeclaration, ...] = ()
    embedding_provider: str | None = None
    external_blobs: tuple[BlobBase, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyDeclaration:
    """One policy bundle; it binds `cluster`, or graphs by their ids."""

    name: str
    file: str
    applies_to: tuple[str, ...]

    @property
    def is_of_cluster(self) -> bool:
        """Whether it is on the server as a whole."""
        return CLUSTER in self.applies_to

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its bindings as addresses."""
        return tuple(one if one == CLUSTER else f"graph.{one}" for one in self.applies_to)


@dataclass(frozen=True, slots=True)
class ClusterDocument:
    """A whole `cluster.yaml`."""

    name: str | None = None
    storage: str | None = None
    locks: bool = True
    providers: Mapping[str, EmbeddingProvider] = field(default_factory=dict)
    graphs: Mapping[str, GraphDeclaration] = field(default_factory=dict)
    policies: Mapping[str, PolicyDeclaration] = field(default_factory=dict)
    parsed: Any = None
    """The file as plain values, for its digest."""
