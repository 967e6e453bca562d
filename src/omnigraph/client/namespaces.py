"""The branches, the commits and the change feed of a served graph.

Owns their public methods, which are those of `graph.namespaces`, as requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import overload

from omnigraph.client import results
from omnigraph.client.connection import Ask, Connection
from omnigraph.client.streams import ServedBaseline, write_baseline
from omnigraph.client.unserved import refuse, unserved_method
from omnigraph.display.history import Commits
from omnigraph.errors import BadRequest
from omnigraph.graph.guard import guarded
from omnigraph.history.baseline import Baseline
from omnigraph.history.changes import Names
from omnigraph.history.feed import CommitChanges, FeedPage
from omnigraph.history.merge.conflicts import MergeResult, Resolve
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.wire.body import encode
from omnigraph.wire.changes import BlockBody, FeedBody
from omnigraph.wire.graphs import (
    BranchCreatedBody,
    BranchDeletedBody,
    BranchesBody,
    CommitBody,
    CommitsBody,
    MergeBody,
)
from omnigraph.wire.requests import BranchMergeRequest

Pairs = tuple[tuple[str, str], ...]


def run_headers(run_id: str | None) -> dict[str, str]:
    """The header of a write that happens once."""
    if run_id is None:
        return {}
    if not run_id.isprintable() or not run_id.isascii() or not run_id.strip():
        raise BadRequest("a run id that is sent to a server has printable ASCII letters alone")
    return {"idempotency-key": run_id}


def _filters(kinds: Names, types: Names, ops: Names) -> Iterator[tuple[str, list[str]]]:
    for name, given in (("kind", kinds), ("type", types), ("op", ops)):
        yield name, [given] if isinstance(given, str) else list(given or ())


def _pairs(**given: object) -> Iterator[tuple[str, str]]:
    return ((name, str(value)) for name, value in given.items() if value is not None)


class _Namespace:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection


class ServedBranches(_Namespace):
    """The branches of a served graph."""

    rename = unserved_method("branches.rename")
    reset = unserved_method("branches.reset")
    revert = unserved_method("branches.revert")
    cherry_pick = unserved_method("branches.cherry_pick")

    @guarded
    def list(self) -> list[str]:
        """Every branch by name, main included."""
        ask = Ask(method="GET", parts=("branches",))
        return self._connection.json(ask, BranchesBody).branches

    @guarded
    def create(self, name: str, from_branch: str = MAIN, actor: str | None = None) -> str:
        """Fork a branch from the head of another; returns its normal name."""
        refuse(actor=actor)
        body = encode({"name": name, "from": from_branch})
        ask = Ask(method="POST", parts=("branches",), body=body, repeatable=False)
        made = self._connection.json(ask, BranchCreatedBody).name
        self._connection.forget(made)
        return made

    @guarded
    def delete(self, name: str, actor: str | None = None) -> str:
        """Remove a branch; commits that only it had are gone. Returns its normal name."""
        refuse(actor=actor)
        # Known before it is asked: the name is a part of the address.
        branch = normalise_branch(name)
        ask = Ask(method="DELETE", parts=("branches", branch), repeatable=False)
        gone = self._connection.json(ask, BranchDeletedBody).name
        self._connection.forget(gone)
        return gone

    @guarded
    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        delete_source: bool = False,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult:
        """Merge a branch into another, as one commit with two parents.

        All conflicts are told at once, as `MergeConflicts`; nothing is merged then.
        """
        refuse(actor=actor, resolve=resolve, dry_run=dry_run, message=message)
        ask = Ask(
            method="POST",
            parts=("branches", "merge"),
            body=encode(BranchMergeRequest(source, into, delete_source)),
            headers=run_headers(run_id),
            repeatable=run_id is not None,
        )
        merged = results.merge(self._connection.json(ask, MergeBody))
        if merged.commit is not None:
            self._connection.note(merged.target, merged.commit.id)
        if merged.branch_deleted:
            self._connection.forget(merged.source)
        return merged


class ServedTags:
    """The tags of a served graph, of which a server tells nothing."""

    list = unserved_method("tags.list")
    create = unserved_method("tags.create")
    delete = unserved_method("tags.delete")


class ServedCommits(_Namespace):
    """The commits of a served graph."""

    @guarded
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
        """The commits of a branch, newest first; only those of an actor, if one is given."""
        refuse(merged=merged, since=since, grep=grep, types=types)
        ask = Ask(
            method="GET",
            parts=("commits",),
            query=(("branch", branch),),
            branch=normalise_branch(branch),
        )
        found = map(results.commit, self._connection.json(ask, CommitsBody).commits)
        return Commits(one for one in found if actor is None or one.actor == actor)

    @guarded
    def get(self, commit_id: str) -> Commit:
        """One commit, on whatever branch it is."""
        ask = Ask(method="GET", parts=("commits", _id(commit_id)))
        return results.commit(self._connection.json(ask, CommitBody))

    @guarded
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
        """A page of what a commit changed against its first parent, with both images."""
        query: Pairs = (
            *_pairs(limit=limit, page_token=page_token),
            *((name, one) for name, given in _filters(kinds, types, ops) for one in given),
        )
        ask = Ask(method="GET", parts=("commits", _id(commit_id), "changes"), query=query)
        return results.commit_page(self._connection.json(ask, BlockBody))


def _id(commit_id: str) -> str:
    if not commit_id.strip() or commit_id.strip() in (".", ".."):
        raise BadRequest("the commit id is empty")
    return commit_id.strip()


class ServedChanges(_Namespace):
    """The change feed of a served graph."""

    @guarded
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
        wait: float | None = None,
    ) -> FeedPage:
        """What was committed to a branch since a cursor, or since where ``start`` says.

        With ``wait`` the server answers when there is something, or after so many seconds.
        """
        query: Pairs = (
            *_pairs(branch=branch, start=start, cursor=cursor, page_token=page_token, limit=limit),
            *_pairs(wait=wait),
            *((name, one) for name, given in _filters(kinds, types, ops) for one in given),
        )
        ask = Ask(method="GET", parts=("changes",), query=query, wait=max(wait or 0.0, 0.0))
        return results.feed_page(self._connection.json(ask, FeedBody))

    @overload
    def baseline(
        self,
        path: None = None,
        *,
        branch: str = MAIN,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> ServedBaseline: ...

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

    @guarded
    def baseline(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Baseline | ServedBaseline:
        """Everything a branch holds now, and the cursor from which its feed goes on.

        Written to a file; or, without a path, lines of which the last is the handshake.
        """
        asked = {name: given for name, given in _filters(kinds, types, ops) if given}
        ask = Ask(
            method="POST",
            parts=("changes", "baseline"),
            body=encode({"branch": branch, **asked}),
            accept="application/x-ndjson",
        )
        lines = ServedBaseline(self._connection, ask)
        return lines if path is None else write_baseline(lines, path)
