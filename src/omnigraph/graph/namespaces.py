"""The parts of a session that look back: its commits and its change feed.

Owns their public methods, each written once. The rules are those of the manifest and of history.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import overload

from omnigraph.display.history import Commits as ShownCommits
from omnigraph.graph.access import (
    Access,
    Surface,
    action,
    made_on,
)
from omnigraph.history.baseline import Baseline, BaselineLines
from omnigraph.history.changes import Filters, Names
from omnigraph.history.commit_search import CommitSearch
from omnigraph.history.feed import CommitChanges, Feed, FeedPage, commit_changes
from omnigraph.history.stream import PausedStreams
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, MESSAGE, Commit
from omnigraph.manifest.revisions import find_revision


class Commits(Surface):
    """The commits of a graph."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._paused = PausedStreams()

    @action("read", branch="branch", hides=True)
    def list(
        self,
        branch: str = MAIN,
        *,
        actor: str | None = None,
        merged: bool = False,
        since: datetime | None = None,
        grep: str | None = None,
        types: Names = None,
    ) -> list[Commit]:
        """The commits of a branch, newest first.

        With ``merged`` also those that merges brought along from other branches, which may
        be gone: all that the branch descends from, by time. Only those of an ``actor``, ``since`` a
        time, whose message has a text (``grep``), or that changed one of some ``types``.

        >>> [commit.message for commit in graph.commits.list()]
        ['Two films', None]
        >>> [commit.actor for commit in graph.commits.list("draft", actor="ann")]
        ['ann']
        """
        access, branch = self._access, normalise_branch(branch)
        if types is not None:
            # Which tables a commit changed also tells of rows that are hidden.
            access.require_unlimited("read", branch, None)
        manifest = access.handle.manifest
        commits = manifest.ancestors(branch) if merged else manifest.commits(branch)
        found = CommitSearch(actor, since, grep, types).among(access.handle, commits)
        return ShownCommits(self._shown(commit) for commit in found)

    @action("read", hides=True)
    def get(self, commit_id: str) -> Commit:
        """One commit, on whatever branch it is, by its id or another name of it.

        >>> graph.commits.get("draft~1").message
        'Two films'
        """
        return self._shown(find_revision(self._access.handle.manifest, commit_id))

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

        >>> page = graph.commits.changes("draft")
        >>> page.cause.actor_id, [(change.op, change.id) for change in page.changes]
        ('ann', [('update', 'John Wick')])
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

        >>> page = graph.changes.poll(start="beginning")
        >>> [len(block.changes) for block in page.blocks], page.caught_up
        ([7], True)
        >>> done = graph.mutate('create Person { name: "Dan" }')
        >>> [block] = graph.changes.poll(cursor=page.cursor).blocks
        >>> [change.id for change in block.changes]
        ['Dan']
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

        >>> baseline = graph.changes.baseline("film.jsonl")
        >>> baseline.report.total
        7
        >>> graph.changes.poll(cursor=baseline.resume_cursor).caught_up
        True
        """
        return self._feed.baseline(path, branch, Filters(kinds, types, ops))
