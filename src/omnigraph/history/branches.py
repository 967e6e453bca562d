"""The branches of a graph, as `graph.branches` offers them.

Owns the names of that part of the API; the rules for branches are the manifest's.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.history.opened import Opened
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import MAIN


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a graph."""

    _graph: Opened

    def list(self) -> list[str]:
        """Every branch by name, main included."""
        return self._refs().list()

    def create(self, name: str, from_branch: str = MAIN, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Fork a branch from the head of another; returns its normal name.

        A branch records nobody; ``actor`` is what a served graph decides by.
        """
        self._graph.require_writable()
        return self._refs().create(name, from_branch)

    def delete(self, name: str, actor: str | None = None) -> str:  # noqa: ARG002 - as for create
        """Remove a branch; commits that only it had are gone. Returns its normal name."""
        self._graph.require_writable()
        return self._refs().delete(name)

    def _refs(self) -> BranchRefs:
        return BranchRefs(self._graph.manifest)
