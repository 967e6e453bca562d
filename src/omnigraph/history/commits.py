"""The commits of a graph, as `graph.commits` offers them.

Owns the names of that part of the API; what a commit is, the manifest knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.history.commit_changes import CommitChanges, commit_changes
from omnigraph.history.selection import Names
from omnigraph.history.stream import PausedStreams
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.branch_state import ancestors_of
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.graph_handle import GraphHandle


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits of a graph."""

    _graph: GraphHandle
    _paused: PausedStreams = field(default_factory=PausedStreams)

    def list(
        self, branch: str = MAIN, *, actor: str | None = None, merged: bool = False
    ) -> list[Commit]:
        """The commits of a branch, newest first; only those of an actor, if one is given.

        With ``merged`` also those that merges brought along from other branches, which may
        be gone: all that the branch descends from, by time.
        """
        manifest, branch = self._graph.manifest, normalise_branch(branch)
        if merged:
            every = manifest.look_back(branch, ancestors_of).values()
            found = sorted(every, key=lambda one: (one.created_at, one.id), reverse=True)
        else:
            found = manifest.commits(branch)
        return found if actor is None else [commit for commit in found if commit.actor == actor]

    def get(self, commit_id: str) -> Commit:
        """One commit, on whatever branch it is."""
        return self._graph.manifest.find_commit(commit_id)

    def changes(
        self,
        commit_id: str,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> CommitChanges:
        """A page of what a commit changed against its first parent, with both images.

        Without filters everything; the token of a page leads to the next one.
        """
        return commit_changes(
            self._graph,
            commit_id,
            kinds=kinds,
            types=types,
            ops=ops,
            limit=limit,
            page_token=page_token,
            paused=self._paused,
        )
