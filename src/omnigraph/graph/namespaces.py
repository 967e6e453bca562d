"""The parts of a session that have a name: its branches, its commits, its change feed.

Owns their public methods, each written once. The rules are those of the manifest and of history.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import overload

from omnigraph.errors import BranchNotFound, Conflict, OmniGraphError
from omnigraph.graph.access import Access, Surface, action, made_on, shows_the_same
from omnigraph.history.baseline import Baseline, BaselineLines
from omnigraph.history.changes import Filters, Names
from omnigraph.history.feed import CommitChanges, Feed, FeedPage, commit_changes
from omnigraph.history.merge.conflicts import MergeResult, Resolve
from omnigraph.history.merge.operation import merge_branch
from omnigraph.history.stream import PausedStreams
from omnigraph.manifest.branches import BranchRefs, normalise_branch
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.root_copies import refresh_copies

MESSAGE = "message"
"""What a commit notes for people."""


class Branches(Surface):
    """The branches of a graph."""

    @action("read", hides=True)
    def list(self) -> list[str]:
        """Every branch by name, main included."""
        return self._refs().list()

    @action("branch_create", branch="from_branch", target="name", hides=shows_the_same)
    def create(self, name: str, from_branch: str = MAIN, actor: str | None = None) -> str:
        """Fork a branch from the head of another; returns its normal name."""
        return self._refs().create(name, from_branch, actor or self._access.actor)

    @action("branch_delete", target="name", hides=True)
    def delete(self, name: str, actor: str | None = None) -> str:  # noqa: ARG002 - see below
        """Remove a branch; commits that only it had are gone. Returns its normal name.

        A name that is gone records nobody; ``actor`` is who has to be allowed to do it.
        """
        return self._refs().delete(name)

    @action("branch_merge", branch="source", target="into", dry_run_looks=True)
    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        delete_source: bool = False,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        ``resolve`` says which side wins in a conflict: `"source"` or `"target"`, or a mapping
        from kinds of conflict, or entities such as `"Person:ann"`, to a side. Conflicts that it
        does not settle raise `MergeConflicts`, all of them at once, and nothing is merged. A
        ``dry_run`` changes nothing and returns them. ``delete_source`` deletes the source
        afterwards; should that fail, the result says why. A merge that is repeated under its
        ``run_id`` gives the first result, whatever became of the source since.
        """
        result = merge_branch(
            self._access.handle,
            source,
            into,
            resolve=resolve,
            delete_source=delete_source,
            dry_run=dry_run,
            run_id=run_id,
            actor=actor or self._access.actor,
        )
        if result.commit is not None and result.target == MAIN and result.schema.steps:
            manifest = self._access.handle.manifest
            refresh_copies(self._access.handle.location, manifest.view(MAIN).state.schema)
        if not delete_source or result.is_dry_run:
            return result
        try:
            if not result.repeats_run or self._is_left(result):
                self.delete(result.source, actor)
        except OmniGraphError as error:
            return result.with_deletion(error.message)
        return result.with_deletion(None)

    def _is_left(self, merged: MergeResult) -> bool:
        """Whether the source of a merge is there still that was to be deleted after it.

        Another branch may have its name by now; and what was written to it since then must
        not go with it.
        """
        try:
            view = self._access.handle.manifest.view(merged.source)
        except BranchNotFound:
            return False
        if view.branch_id != merged.source_id:
            return False
        commit = merged.commit
        if commit is not None and view.state.head_commit_id != commit.merged_parent_id:
            raise Conflict(f"branch {merged.source} has commits that this merge did not bring")
        return True

    def _refs(self) -> BranchRefs:
        return BranchRefs(self._access.handle.manifest)


class Commits(Surface):
    """The commits of a graph."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._paused = PausedStreams()

    @action("read", branch="branch", hides=True)
    def list(
        self, branch: str = MAIN, *, actor: str | None = None, merged: bool = False
    ) -> list[Commit]:
        """The commits of a branch, newest first; only those of an actor, if one is given.

        With ``merged`` also those that merges brought along from other branches, which may
        be gone: all that the branch descends from, by time.
        """
        manifest, branch = self._access.handle.manifest, normalise_branch(branch)
        found = manifest.ancestors(branch) if merged else manifest.commits(branch)
        found = [self._shown(commit) for commit in found]
        return found if actor is None else [commit for commit in found if commit.actor == actor]

    @action("read", hides=True)
    def get(self, commit_id: str) -> Commit:
        """One commit, on whatever branch it is."""
        return self._shown(self._access.handle.manifest.find_commit(commit_id))

    def _shown(self, commit: Commit) -> Commit:
        """Without what it notes of types and properties, for an actor who may not see them all."""
        if self._access.limits(commit.branch or MAIN) is None:
            return commit
        noted = {name: value for name, value in commit.metadata.items() if name == MESSAGE}
        return replace(commit, metadata=noted)

    @action("read", branch=made_on("commit_id"), hides=True)
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
            self._access.handle,
            commit_id,
            Filters(kinds, types, ops),
            self._paused,
            self._access.limited,
            limit=limit,
            page_token=page_token,
        )


class Changes(Surface):
    """The change feed of a graph."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._feed = Feed(access.handle, access.limited)

    @action("read", branch="branch", hides=True)
    def poll(
        self,
        *,
        branch: str = MAIN,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        limit: int | None = None,
    ) -> FeedPage:
        """What was committed to a branch since a cursor, or since where ``start`` says.

        ``start`` is `now`, `beginning` or `after:<commit id>`. Every commit is delivered at
        least once; a commit larger than a page goes on with the page's token.
        """
        return self._feed.poll(
            branch,
            Filters(kinds, types, ops),
            start=start,
            cursor=cursor,
            page_token=page_token,
            limit=limit,
        )

    @overload
    def baseline(
        self,
        path: None = None,
        *,
        branch: str = MAIN,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> BaselineLines: ...

    @overload
    def baseline(
        self,
        path: str | Path,
        *,
        branch: str = MAIN,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Baseline: ...

    @action("export", branch="branch", hides=True)
    def baseline(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Baseline | BaselineLines:
        """Everything a branch holds now, and the cursor from which its feed goes on.

        Written to a file; or, without a path, lines of which the last is the handshake. The
        operations only bind the cursor.
        """
        return self._feed.baseline(path, branch, Filters(kinds, types, ops))
