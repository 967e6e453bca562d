"""The commits of a graph, as `graph.commits` offers them.

Owns the names of that part of the API; what a commit is, the manifest knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.history.opened import Opened
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN, Commit


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits of a graph."""

    _graph: Opened

    def list(self, branch: str = MAIN, *, actor: str | None = None) -> list[Commit]:
        """The commits a branch can see, newest first; only those of an actor, if one is given."""
        found = self._graph.manifest.commits(normalise_branch(branch))
        return found if actor is None else [commit for commit in found if commit.actor == actor]

    def get(self, commit_id: str) -> Commit:
        """One commit, on whatever branch it is."""
        return self._graph.manifest.find_commit(commit_id)
