"""The change feed: the commits of a branch, one or all of them, with what they changed.

Owns the pages of one commit, where a poll begins, what fits into one, and the tokens that carry
a reader on. Keeps nothing about readers: all a poll needs is in its token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest, ChangeDiffRefused, ChangeFeedGap, NotFound
from omnigraph.history.baseline import Baseline, BaselineLines, write_baseline
from omnigraph.history.changes import (
    Cause,
    Change,
    ChangeBlock,
    ChangeFilter,
    Filters,
)
from omnigraph.history.compared_types import compared_types, require_followable
from omnigraph.history.position import ChangePosition, rejected, seal, type_place, unseal
from omnigraph.history.stream import ChangeStream, PageRoom, PausedStreams, SizedChange, page_room
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.revisions import find_revision
from omnigraph.manifest.snapshot import BranchState, Snapshot, catalog_of, commits_of
from omnigraph.manifest.store import GraphHandle
from omnigraph.read.output.export import Export, open_export

MAX_COMMITS = 128
"""How many commits one poll goes through."""
PURPOSE = "changes/forward"
_AFTER = "after:"


@dataclass(frozen=True, slots=True, repr=False)
class CommitChanges:
    """One page of the changes of a commit; without a token it is the last."""

    cause: Cause
    changes: tuple[Change, ...]
    next_page_token: str | None = None

    def __repr__(self) -> str:
        more = "" if self.next_page_token is None else ", and more"
        return f"<CommitChanges {self.cause.graph_commit_id}: {len(self.changes)}{more}>"


Show = Callable[[Snapshot, str], Snapshot]
"""What a reader sees of a snapshot, by the rules for a branch."""


def commit_changes(
    graph: GraphHandle,
    commit_id: str,
    filters: Filters,
    paused: PausedStreams,
    show: Show,
    *,
    limit: int | None = None,
    page_token: str | None = None,
) -> CommitChanges:
    """A page of what a commit changed, the first one without a token."""
    room = page_room(limit)
    commit = find_revision(graph.manifest, commit_id)
    states = _parent_state(graph, commit), graph.manifest.view_at(commit).snapshot
    before, after = (show(state, commit.branch or MAIN) for state in states)
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
    require_followable(before, after)
    types = sorted(compared_types(before, after), key=type_place)
    return ChangeStream(types, wanted, start)


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
    return graph.manifest.view_at(parent).snapshot


@dataclass(frozen=True, slots=True, repr=False)
class FeedPage:
    """Blocks of changes, and how to go on.

    Inside a block that is not finished there is only a page token. Otherwise there is a
    cursor to keep, and whether it stands at the head of the branch.
    """

    blocks: tuple[ChangeBlock, ...]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool = False

    def __repr__(self) -> str:
        changes = sum(len(block.changes) for block in self.blocks)
        then = "caught up" if self.caught_up else "more to come"
        return f"<FeedPage of {changes} changes by {len(self.blocks)} commits, {then}>"


class Feed:
    """The change feed of a graph, as one session reads it."""

    def __init__(self, graph: GraphHandle, show: Show) -> None:
        self._graph = graph
        self._show = show
        self._paused = PausedStreams()
        self._genesis: str | None = None

    def poll(
        self,
        branch: str,
        filters: Filters,
        *,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
    ) -> FeedPage:
        """One page: of what comes behind a start or a cursor, or the next one by its token."""
        room = page_room(limit)
        if sum(given is not None for given in (start, cursor, page_token)) > 1:
            raise BadRequest("give one of start, cursor and page_token, not several")
        branch = normalise_branch(branch)
        view = self._graph.manifest.view(branch)
        head = self._show(view.snapshot, branch)
        wanted = filters.among(head)
        binding = self._binding(view, head, wanted)
        position: ChangePosition | None = None
        if page_token is not None:
            place = unseal(page_token, "feed-page", binding)
            position = ChangePosition.from_json(place)
            chain = _chain_of_token(view, place)
        elif cursor is not None:
            chain = _chain_of_token(view, unseal(cursor, "feed-cursor", binding))
        else:
            chain = _chain_of_start(view, "now" if start is None else start)

        def state(commit: Commit) -> Snapshot:
            if commit.id == head.commit_id:
                return head
            return self._show(self._graph.manifest.view_at(commit).snapshot, branch)

        poll = _Poll(self._paused, wanted, room, state)
        try:
            poll.run(chain, position)
        except ChangeFeedGap as gap:
            lost = gap.details["first_unreadable_commit_id"]
            raise ChangeFeedGap(
                f"the feed of branch {view.state.branch} has a gap: cleanup has reclaimed commit "
                f"{lost}; take a new baseline and go on from its cursor",
                details={
                    **({} if cursor is None else {"cursor": cursor}),
                    "first_unreadable_commit_id": lost,
                },
            ) from gap
        done = {"commit": poll.done.id if poll.done is not None else chain[0].id}
        if poll.position is not None:
            token = seal("feed-page", binding, done | poll.position.to_json())
            return FeedPage(tuple(poll.blocks), next_page_token=token)
        return FeedPage(
            tuple(poll.blocks),
            cursor=seal("feed-cursor", binding, done),
            caught_up=done["commit"] == head.commit_id,
        )

    def baseline(
        self, path: str | Path | None, branch: str, filters: Filters
    ) -> Baseline | BaselineLines:
        """Everything a branch holds now, in a file or as lines, and the cursor behind it."""
        branch = normalise_branch(branch)
        view = self._graph.manifest.view(branch)
        head = self._show(view.snapshot, branch)
        wanted = filters.among(head)
        cursor = seal("feed-cursor", self._binding(view, head, wanted), {"commit": head.commit_id})
        every = open_export(head, catalog_of(head.schema), filters.type_names)
        lines = Export([found for found in every.tables if found[0].kind in wanted.kinds])
        if path is None:
            return BaselineLines(lines, head.commit_id, cursor)
        return write_baseline(lines, path, head.commit_id, cursor)

    # -- for readers that go through commits by themselves ---------------------------

    def cursor_at(self, branch: str, filters: Filters, start: str = "now") -> str:
        """The cursor that a poll from a start goes on from; no change is read."""
        view, binding, _ = self._followed(branch, filters)
        return seal("feed-cursor", binding, {"commit": _chain_of_start(view, start)[0].id})

    def ahead(self, branch: str, filters: Filters, cursor: str, most: int | None = None) -> str:
        """The cursor behind the next commits, at most so many; the same where there are none."""
        view, binding, _ = self._followed(branch, filters)
        chain = _chain_of_token(view, unseal(cursor, "feed-cursor", binding))
        last = len(chain) - 1 if most is None else min(most, len(chain) - 1)
        return seal("feed-cursor", binding, {"commit": chain[last].id})

    def between(
        self, branch: str, filters: Filters, cursor: str, end: str
    ) -> tuple[list[tuple[Commit, Commit]], ChangeFilter]:
        """The commits behind one cursor up to another, each with the one before it."""
        view, binding, wanted = self._followed(branch, filters)
        chain = _chain_of_token(view, unseal(cursor, "feed-cursor", binding))
        last = unseal(end, "feed-cursor", binding).get("commit")
        ids = [commit.id for commit in chain]
        if last not in ids:
            raise rejected("the end of what is to be read comes before its beginning")
        return list(pairwise(chain[: ids.index(last) + 1])), wanted

    def _followed(
        self, branch: str, filters: Filters
    ) -> tuple[BranchState, dict[str, str | None], ChangeFilter]:
        view = self._graph.manifest.view(normalise_branch(branch))
        wanted = filters.among(view.snapshot)
        return view, self._binding(view, view.snapshot, wanted), wanted

    def _binding(
        self, view: BranchState, head: Snapshot, wanted: ChangeFilter
    ) -> dict[str, str | None]:
        """What a token of this feed belongs to."""
        if self._genesis is None:
            oldest = view.state.commits[0]
            self._genesis = (oldest if oldest.parent_id is None else commits_of(view)[-1]).id
        return {
            "domain": domain_digest(head),
            "genesis": self._genesis,
            "purpose": PURPOSE,
            "branch": sha256(view.state.branch.encode()).hexdigest(),
            "incarnation": view.branch_id,
            "filter": wanted.digest,
        }


class _Poll:
    """One poll under way: the blocks so far, and where it stands."""

    def __init__(
        self,
        paused: PausedStreams,
        wanted: ChangeFilter,
        room: PageRoom,
        state: Callable[[Commit], Snapshot],
    ) -> None:
        self._paused = paused
        self._wanted = wanted
        self._room = room
        self._state = state
        self.blocks: list[ChangeBlock] = []
        self.done: Commit | None = None
        """The last commit that was delivered to its end."""
        self.position: ChangePosition | None = None
        """How far the last block goes, if it is not finished."""

    def run(self, chain: list[Commit], position: ChangePosition | None) -> None:
        """Go through the commits behind the first one of the chain until the page is full.

        A block that does not fit into the rest of a page begins the next one, so that
        readers get whole commits wherever that is possible.
        """
        if len(chain) < 2:
            if position is not None:
                raise rejected("the change it stands behind is not there")
            return
        before: Snapshot | None = None
        for parent, commit in pairwise(chain[: MAX_COMMITS + 1]):
            try:
                before = before or self._state(parent)
                after = self._state(commit)
                is_finished = self._add(commit, before, after, position)
            except (ChangeFeedGap, ChangeDiffRefused):
                if not self.blocks:
                    raise
                return  # what is before it is delivered; the next poll begins with it
            if not is_finished:
                return
            before, position = after, None
            self.done = commit

    def _add(
        self, commit: Commit, before: Snapshot, after: Snapshot, start: ChangePosition | None
    ) -> bool:
        """Add the block of a commit; whether it fitted."""
        digest = self._wanted.digest
        stream = self._paused.take((commit.id, digest, start))
        if stream is None:
            stream = open_block(before, after, self._wanted, start)
        is_first = not self.blocks
        taken = stream.take(self._room)
        if stream.is_done:
            self.blocks.append(_block(commit, taken))
            return True
        if is_first:
            self.position = ChangePosition.of(taken[-1].change)
            self.blocks.append(_block(commit, taken))
            self._paused.keep((commit.id, digest, self.position), stream)
        else:
            stream.put_back(taken)
            self._paused.keep((commit.id, digest, start), stream)
        return False


def _block(commit: Commit, taken: list[SizedChange]) -> ChangeBlock:
    return ChangeBlock(Cause.of(commit), tuple(found.change for found in taken))


def _chain_of_token(view: BranchState, place: Mapping[str, Any]) -> list[Commit]:
    chain = _chain_since(view, place.get("commit"))
    if chain is None:
        raise rejected("its commit is not in the history of the branch")
    return chain


def _chain_of_start(view: BranchState, start: str) -> list[Commit]:
    """The commits from the one on that a reader is taken to know."""
    if start == "now":
        return [view.state.commits[-1]]
    if start == "beginning":
        return commits_of(view)[::-1]
    if not start.startswith(_AFTER):
        raise BadRequest(f"a feed starts at now, beginning or after:COMMIT, not at {start!r}")
    commit_id = start.removeprefix(_AFTER)
    chain = _chain_since(view, commit_id)
    if chain is None:
        raise BadRequest(
            f"commit {commit_id!r} is not in the history of branch {view.state.branch}: "
            "`commit list` shows what is"
        )
    return chain


def _chain_since(view: BranchState, commit_id: object) -> list[Commit] | None:
    """A commit of a branch and all later ones, oldest first; most need no look into the log."""
    return _since(list(view.state.commits), commit_id) or _since(commits_of(view)[::-1], commit_id)


def _since(commits: list[Commit], commit_id: object) -> list[Commit] | None:
    places = (place for place, commit in enumerate(commits) if commit.id == commit_id)
    found = next(places, None)
    return None if found is None else commits[found:]
