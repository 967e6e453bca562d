"""The branches of a graph, as `graph.branches` offers them.

Owns the names of that part of the API; the rules for branches are the manifest's.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import OmniGraphError
from omnigraph.history.merge.operation import merge_branch
from omnigraph.history.merge.resolution import Resolve
from omnigraph.history.merge.results import MergeResult
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.graph_handle import GraphHandle


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a graph."""

    _graph: GraphHandle

    def list(self) -> list[str]:
        """Every branch by name, main included."""
        return self._refs().list()

    def create(self, name: str, from_branch: str = MAIN, actor: str | None = None) -> str:
        """Fork a branch from the head of another; returns its normal name."""
        self._graph.require_writable()
        return self._refs().create(name, from_branch, actor or self._graph.actor)

    def delete(self, name: str, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Remove a branch; commits that only it had are gone. Returns its normal name.

        A name that is gone records nobody; ``actor`` is what a served graph decides by.
        """
        self._graph.require_writable()
        return self._refs().delete(name)

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        delete_source: bool = False,
        resolve: Resolve = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        ``resolve`` says which side wins in a conflict: `"source"` or `"target"`, or a mapping
        from kinds of conflict, or entities such as `"Person:ann"`, to a side. Conflicts that it
        does not settle raise `MergeConflicts`, all of them at once, and nothing is merged. A
        ``dry_run`` changes nothing and returns them. ``delete_source`` deletes the source
        afterwards; should that fail, the result says why.
        """
        if not dry_run:
            self._graph.require_writable()
        actor = actor or self._graph.actor
        result = merge_branch(
            self._graph, source, into, resolve=resolve, dry_run=dry_run, actor=actor
        )
        if not delete_source or dry_run:
            return result
        try:
            self._refs().delete(result.source)
        except OmniGraphError as error:
            return result.with_deletion(error.message)
        return result.with_deletion(None)

    def _refs(self) -> BranchRefs:
        return BranchRefs(self._graph.manifest)
