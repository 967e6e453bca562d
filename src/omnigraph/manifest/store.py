"""The manifest of one graph: reading the states of its branches, and the way in for publishing.

Owns what is known of each branch: keeps the newest state it has seen, and proves it fresh with
one version probe; and the refusal to change a graph that was opened to be looked at. What a
publish does is publisher.py, what a name means is refs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from omnigraph.errors import (
    BadRequest,
    BranchNotFound,
    ChangeFeedGap,
    NotFound,
    OmniGraphError,
    StorageError,
)
from omnigraph.manifest.entries import MAIN, Commit, Head, Origin, StoredVersion
from omnigraph.manifest.identity import GraphIdentity
from omnigraph.manifest.publish_request import PublishRequest, require_live
from omnigraph.manifest.publisher import MERGED_FROM, Mark, merge_log, publish, publish_mark
from omnigraph.manifest.refs import RefStore, missing
from omnigraph.manifest.rows import check_stamp, from_table, stamped, to_table
from omnigraph.manifest.snapshot import (
    MANIFEST_NAME,
    BranchState,
    ancestors_of,
    commits_of,
    find_commit,
    left_behind,
    retained_line,
    weight_of,
)
from omnigraph.manifest.state import ManifestState, fold
from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.turn_lock import new_holder

T = TypeVar("T")
ATTEMPTS = 8
MAX_VIEWS = 256
"""Of so many branches the newest state is remembered."""


class Manifest:
    """Reads and publishes the manifest below one graph root."""

    def __init__(self, root: Location) -> None:
        self.root = root
        self.location = root.join(MANIFEST_NAME)
        self.objects = ControlObjects(self.location)
        """The objects of the manifest, on one connection for as long as the handle lives."""
        self.holder = new_holder()
        """Who this is among those that take turns at writing."""
        self.refs = RefStore(root, verify=self.view)
        self._identity = GraphIdentity(root)
        self._views: Cache[str, BranchState] = Cache("branches", weight_of, budget)
        self._lock = Lock()

    # -- reading ---------------------------------------------------------------------

    def view(self, branch: str = MAIN) -> BranchState:
        """The newest state of the branch that a name means."""
        known = self.known(branch)
        if known is not None:
            view = self._live(branch, known.branch_id)
            if view is not None:
                return view
        for _ in range(ATTEMPTS):
            branch_id = self.branch_id(branch)
            view = self._live(branch, branch_id) or self._renamed(branch, branch_id)
            if view is not None:
                return view
            if self.branch_id(branch) == branch_id:
                break  # its deletion was cut short, or is being finished right now
        raise missing(branch)

    def _renamed(self, branch: str, branch_id: str) -> BranchState | None:
        """The newest state of a branch that has a new name and does not say so yet."""
        ref = self.refs.known.names.get(branch)
        if ref is None or ref.id != branch_id or ref.former is None:
            return None
        view = self._live(ref.former, branch_id)
        if view is None:
            return None
        head = replace(view.state.head, branch=branch)
        return replace(view, state=replace(view.state, head=head))

    def tag(self, name: str) -> BranchState | None:
        """The state that a tag shows; None when no tag is called so."""
        ref = self.refs.read().names.get(name)
        return None if ref is None or ref.kind != "tag" else self._live(name, ref.id)

    def _live(self, branch: str, branch_id: str) -> BranchState | None:
        """The newest state of a branch, if it lives and is called so."""
        try:
            view = self.view_by_id(branch_id)
        except BranchNotFound:
            return None
        return None if view.state.head.ended or view.state.branch != branch else view

    def branch_id(self, branch: str) -> str:
        """The branch that a name means now."""
        if branch == MAIN:
            return MAIN
        names = self.refs.read().names
        found = names.get(branch)
        if found is None:
            raise missing(branch, [name for name, ref in names.items() if ref.kind != "tag"])
        if found.kind == "tag":
            raise BranchNotFound(
                f"{branch} is a tag, which stays what it is, and not a branch: read it as a commit "
                "(snapshot), or create a branch from it",
                details={"branch": branch},
            )
        return found.id

    def is_named(self, branch_id: str) -> bool:
        """Whether a name means this branch."""
        if branch_id == MAIN:
            return True
        return any(ref.id == branch_id for ref in self.refs.read().names.values())

    def view_by_id(self, branch_id: str, known: BranchState | None = None) -> BranchState:
        """The newest state of a branch, also of one that has ended.

        BranchNotFound for one that was deleted so long ago that nothing is left of it. Who goes
        through more branches than are remembered brings what it has ``known``.
        """
        known = known or self._views.get(branch_id)
        try:
            if known is not None and known.log.is_newest():
                return known
        except StorageError as error:
            if error.kind != "not_found":
                raise
        return self.load(branch_id)

    def load(self, branch_id: str) -> BranchState:
        """The newest state of a branch, read from storage."""
        tried: int | None = None
        while True:
            try:
                view = self._read(HeadLog.open(self.location.join(branch_id)))
            except StorageError as error:
                # A version that is superseded while it is opened or read may be collected: then
                # there is a newer one, or the branch is gone.
                if error.kind != "not_found":
                    raise
                newest = next(HeadLog.versions(self.location.join(branch_id)), None)
                # A writer that came too late may have left a version of a branch that is gone.
                if newest is None or (newest == tried and not self.is_named(branch_id)):
                    self._explain_absence(branch_id, error)
                if newest == tried:
                    raise
                tried = newest
                continue
            self.remember(view)
            return view

    def _explain_absence(self, branch_id: str, error: StorageError) -> None:
        """Say what it means that nothing is there."""
        if branch_id != MAIN:
            known = self._views.look(branch_id)
            self._views.forget(branch_id)
            branch = branch_id if known is None else known.state.branch
            raise BranchNotFound(
                f"branch {branch} has been deleted", details={"branch": branch}
            ) from error
        self._refuse_older_format()
        if self._views.look(MAIN) is not None:
            raise NotFound(f"the graph at {self.root} is not there any more") from error

    def view_at(self, commit: Commit) -> BranchState:
        """The state a commit published; ChangeFeedGap when cleanup has reclaimed it."""
        view = self.find_state(commit)
        if view is None:
            raise self.reclaimed(commit)
        return view

    def find_state(self, commit: Commit) -> BranchState | None:
        """The state a commit published; None when it is not there any more."""
        try:
            view = self.view_of(commit.stored)
        except StorageError as error:
            if error.kind != "not_found":
                raise
            return None
        # Once a version was removed, a commit that came too late may lie in its place.
        return view if view.state.head_commit_id == commit.id else None

    def view_of(self, stored: StoredVersion) -> BranchState:
        """The state of a branch at a version of its manifest; a StorageError if there is none."""
        return self._read(HeadLog.open(self.location.join(stored.branch_id), stored.version))

    def require_retained(self, commit: Commit) -> None:
        """Refuse a commit of which no branch says that it can still be read.

        The version it published may be there all the same, for the history it holds.
        """
        retained = (kept.id for view in self.views() for kept in retained_line(view))
        if commit.id not in retained:
            raise self.reclaimed(commit)

    def reclaimed(self, commit: Commit) -> ChangeFeedGap:
        """What a reader is told whose commit cleanup has reclaimed."""
        oldest = self._oldest_readable(commit.branch or MAIN)
        return ChangeFeedGap(
            f"commit {commit.id} is listed, but cleanup has reclaimed what it showed: the oldest "
            f"commit of branch {oldest[0]} that can still be read is {oldest[1]}; let cleanup keep "
            "more commits in future",
            details={
                "first_unreadable_commit_id": commit.id,
                "commit_id": commit.id,
                "oldest_readable_commit_id": oldest[1],
            },
        )

    def _oldest_readable(self, branch: str) -> tuple[str, str]:
        for name in (branch, MAIN):
            try:
                view = self.view(name)
            except BranchNotFound:
                continue
            return name, view.state.head.oldest_commit_id or commits_of(view)[-1].id
        raise AssertionError("main exists always")

    def _read(self, log: HeadLog) -> BranchState:
        check_stamp(log.metadata)
        state = fold(from_table(log.head()))
        self._identity.require(state.schema.identity_domain)
        return BranchState(log, state, self.root)

    def _refuse_older_format(self) -> None:
        """Say of a graph whose manifest is one dataset for all branches what it is."""
        try:
            found = HeadLog.open(self.location)
        except StorageError:
            return
        check_stamp(found.metadata)

    def remember(self, view: BranchState) -> None:
        """Keep a state unless a newer one of the same branch is known."""
        with self._lock:
            known = self._views.get(view.branch_id)
            if known is None or known.log.version <= view.log.version:
                self._views.keep(view.branch_id, view)
                self._views.keep_newest(MAX_VIEWS)
        if known is not None and known.log.version < view.log.version:
            budget.supersede(left_behind(known, view))

    def known(self, branch: str) -> BranchState | None:
        """The newest state seen of the branch that a name meant when last asked."""
        if branch == MAIN:
            return self._views.get(MAIN)
        found = self.refs.known.names.get(branch)
        return None if found is None or found.kind == "tag" else self._views.get(found.id)

    def known_by_id(self, branch_id: str) -> BranchState | None:
        """The newest state seen of a branch, which may be out of date."""
        return self._views.get(branch_id)

    # -- lineage ---------------------------------------------------------------------

    def look_back(self, branch: str, work: Callable[[BranchState], T]) -> T:
        """Read the history of a branch; again if what holds it was collected meanwhile."""
        while True:
            view = self.view(branch)
            try:
                return work(view)
            except StorageError as error:
                if error.kind != "not_found" or self.view(branch).stored == view.stored:
                    raise

    def commits(self, branch: str = MAIN) -> list[Commit]:
        """The commits of a branch, newest first."""
        return self.look_back(branch, commits_of)

    def ancestors(self, branch: str = MAIN) -> list[Commit]:
        """Every commit that a branch descends from, over all merges, by time: newest first."""
        every = self.look_back(branch, ancestors_of).values()
        return sorted(every, key=lambda one: (one.created_at, one.id), reverse=True)

    def find_commit(self, commit_id: str) -> Commit:
        """A commit that any branch descends from, by its id."""
        for view in self.views():
            try:
                commit = find_commit(view, commit_id)
            except StorageError as error:
                if error.kind != "not_found":
                    raise
                commit = self._find_later(view.state.branch, commit_id)
            if commit is not None:
                return commit
        raise NotFound(f"there is no commit {commit_id}", details={"commit_id": commit_id})

    def _find_later(self, branch: str, commit_id: str) -> Commit | None:
        """The same on a branch whose history was collected while it was read."""
        try:
            return self.look_back(branch, lambda view: find_commit(view, commit_id))
        except BranchNotFound:
            return None

    def views(self) -> Iterator[BranchState]:
        """The newest state of every branch and tag, main first."""
        yield self.view()
        for name, ref in sorted(self.refs.read().names.items()):
            view = self._live(name, ref.id) or self._renamed(name, ref.id)
            if view is not None:
                yield view

    # -- publishing --------------------------------------------------------------------

    def publish(
        self, branch_id: str, request: PublishRequest, on: BranchState | None = None
    ) -> BranchState:
        """Make a request visible in one step, or say why not.

        ``on`` is the state that the caller takes for the newest; otherwise that is read.
        """
        return publish(self, self.view_by_id(branch_id) if on is None else on, request)

    def mark(self, branch_id: str, mark: Mark, on: BranchState | None = None) -> BranchState:
        """Change what a branch is without a commit; returns the state that has the mark."""
        return publish_mark(self, branch_id, mark, on)

    def merge_log(self, branch_id: str, *, dry_run: bool = False) -> tuple[int, int]:
        """Merge the sealed history of a branch; how many fragments of it went, and came."""
        if not dry_run:
            return merge_log(self, branch_id)
        count = len(self.view_by_id(branch_id).log.log_sizes())
        return (count, 1) if count >= MERGED_FROM else (0, 0)

    def fork(self, source: BranchState, branch: str, branch_id: str, epoch: int) -> None:
        """Write the first state of a branch under a new id: nobody sees it until it is named."""
        require_live(source.state)
        state = source.state
        origin = Origin(
            state.branch,
            state.version,
            source.stored,
            state.head_commit_id,
            source.history,
            state.head.oldest_commit_id,
        )
        head = Head(
            branch,
            state.head_commit_id,
            state.head.parent_id,
            branch_id,
            state.version,
            epoch,
            state.head.oldest_commit_id,
            origin,
        )
        self._create(branch_id, replace(state, head=head), HeadLog.create_alone)

    def create(self, state: ManifestState) -> None:
        """Write the first version of main; of two who do, one gets an error."""
        self._create(MAIN, state, HeadLog.create)

    def _create(
        self, branch_id: str, state: ManifestState, make: Callable[[Location, pa.Table], HeadLog]
    ) -> None:
        """Write the first version of a branch's manifest; an error is read back."""
        try:
            make(self.location.join(branch_id), stamped(to_table(state.entries())))
        except StorageError as failure:
            # The answer may have got lost.
            try:
                made = self.load(branch_id).state.head_commit_id == state.head_commit_id
            except OmniGraphError:
                made = False
            if not made:
                raise failure from failure.__cause__


@dataclass(frozen=True, slots=True)
class GraphHandle:
    """One handle of one graph, shared by all its sessions."""

    location: Location
    manifest: Manifest
    read_only: bool = False

    def require_writable(self) -> None:
        """Refuse a change through a graph that was opened to be looked at."""
        if self.read_only:
            raise BadRequest(f"{self.location} is open read-only: open it again to write")
