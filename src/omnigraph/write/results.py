"""What writes report: plain results with the names people and the wire use.

Owns their shape; imported by the façade and whoever renders them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.manifest.entries import Commit


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What a mutation did; ``commit`` is None when nothing changed."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor: str | None
    commit: Commit | None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did; ``nodes`` and ``edges`` count the input rows of each type."""

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit
    actor: str | None = None
    base_branch: str | None = None
    branch_created: bool = False
    rejected: int = 0
    engine: str = "inline"

    @property
    def total(self) -> int:
        """All input rows."""
        return sum(self.nodes.values()) + sum(self.edges.values())
