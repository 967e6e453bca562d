"""Commit changes: what one commit changed against its first parent, page by page.

Owns the refusal of a commit without a parent and the binding of a page token. Merges are
no exception: what they brought in is what changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from omnigraph.errors import ChangeDiffRefused, ChangeFeedGap, NotFound
from omnigraph.history.changes import Cause, Change
from omnigraph.history.compared import compared_types
from omnigraph.history.position import ChangePosition, seal, type_place, unseal
from omnigraph.history.selection import ChangeFilter, Filters
from omnigraph.history.stream import ChangeStream, PausedStreams, page_room
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.graph_handle import GraphHandle
from omnigraph.manifest.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """One page of the changes of a commit; without a token it is the last."""

    cause: Cause
    changes: tuple[Change, ...]
    next_page_token: str | None = None


def commit_changes(
    graph: GraphHandle,
    commit_id: str,
    filters: Filters,
    paused: PausedStreams,
    *,
    limit: int | None = None,
    page_token: str | None = None,
) -> CommitChanges:
    """A page of what a commit changed, the first one without a token."""
    room = page_room(limit)
    commit = graph.manifest.find_commit(commit_id)
    before, after = _parent_state(graph, commit), state_of_commit(graph, commit)
    wanted = filters.among(before, after)
    binding = {
        "domain": domain_digest(after),
        "commit": commit.id,
        "filter": wanted.digest,
    }
    start = None
    if page_token is not None:
        start = ChangePosition.from_json(unseal(page_token, "commit-page", binding))
    stream = paused.take((commit.id, wanted.digest, start))
    if stream is None:
        stream = open_block(before, after, wanted, start)
    taken = [found.change for found in stream.take(room)]
    if stream.is_done:
        return CommitChanges(Cause.of(commit), tuple(taken))
    end = ChangePosition.of(taken[-1])
    paused.keep((commit.id, wanted.digest, end), stream)
    token = seal("commit-page", binding, end.to_json())
    return CommitChanges(Cause.of(commit), tuple(taken), token)


def open_block(
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
    start: ChangePosition | None = None,
) -> ChangeStream:
    """The wanted changes of a commit in their order: nodes before edges, then by type, then id."""
    types = sorted(compared_types(before, after), key=type_place)
    return ChangeStream(types, wanted, start)


def state_of_commit(graph: GraphHandle, commit: Commit) -> Snapshot:
    """What a commit showed."""
    return graph.manifest.view_at(commit).snapshot


def domain_digest(snapshot: Snapshot) -> str:
    """What tells one graph from another in a token."""
    return sha256(snapshot.schema.identity_domain.encode()).hexdigest()


def _parent_state(graph: GraphHandle, commit: Commit) -> Snapshot:
    if commit.parent_id is None:
        raise ChangeDiffRefused(
            f"commit {commit.id} made the graph and has no parent to compare it with: "
            "an export shows all there was",
            details={"reason": "parentless_commit", "graph_commit_id": commit.id},
        )
    try:
        parent = graph.manifest.find_commit(commit.parent_id)
    except NotFound as error:
        raise ChangeFeedGap(
            f"the parent of commit {commit.id} is gone: what it changed cannot be told any more",
            details={"first_unreadable_commit_id": commit.parent_id},
        ) from error
    return state_of_commit(graph, parent)
