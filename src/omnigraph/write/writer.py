"""The writer: one write from capture to commit, prepared again when it has to be.

Owns the outer loop. The commit is minted once, so that however often a write is
prepared, it is the same commit; what is checked and staged is always from one base.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from ulid import ULID

from omnigraph.errors import BranchNotFound, Conflict, StorageError
from omnigraph.manifest.branches import BranchRefs, EpochMoved
from omnigraph.manifest.changes import CommitIntent, ExactHead
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.store import Manifest
from omnigraph.manifest.view import View, find_commit
from omnigraph.storage.commits import Stamp
from omnigraph.storage.location import Location
from omnigraph.write.announcement import Announcement
from omnigraph.write.base import Base
from omnigraph.write.bulk import BulkChanges, stage_bulk
from omnigraph.write.changes import ChangeSet
from omnigraph.write.check import check_changes
from omnigraph.write.door import (
    Door,
    ReadSetBroken,
    StageAgain,
    precondition_failed,
    require_unchanged,
)
from omnigraph.write.failpoints import reach
from omnigraph.write.plan import PublishPlan
from omnigraph.write.reads import ReadSet
from omnigraph.write.staging import stage
from omnigraph.write.stamps import stamp
from omnigraph.write.trial import Trial
from omnigraph.write.turns import Turn

PREPARATIONS = 32


@dataclass(frozen=True, slots=True)
class WriteTxn:
    """One preparation of a write: the base it captured, and the questions it asks of it.

    ``refs`` are the names as they were when the branch did not exist yet: the base is that of
    the branch it will be forked from. ``announced`` is the intent of the write, for work that
    stages files while it is being prepared.
    """

    branch: str
    base: Base
    announced: Announcement
    refs: Refs | None = None
    reads: ReadSet = field(default_factory=ReadSet)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write: its commit, or None when there was nothing to change."""

    commit: Commit | None
    branch_created: bool = False


class Prepare(Protocol):
    """What a kind of write does to a base."""

    def __call__(self, txn: WriteTxn) -> ChangeSet | BulkChanges:
        """Build the changes; asks the base through the read set of the transaction."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes to one branch of one graph.

    ``fork_from`` is the branch to fork a missing one from, as soon as there is something
    to publish to it. ``if_commit`` is the head that the caller insists on.
    """

    root: Location
    manifest: Manifest
    branch: str
    if_commit: str | None = None
    fork_from: str | None = None
    operation_id: str = field(default_factory=lambda: str(ULID()))

    def run(
        self,
        prepare: Prepare,
        commit: CommitIntent,
        *,
        even_if_empty: bool = False,
        dry_run: bool = False,
    ) -> Written:
        """Prepare, check, stage and publish; a dry run ends before anything is staged."""
        cause: Exception | None = None
        created = False
        strict: WriteTxn | None = None
        with (
            Announcement(self.root, self.branch, self.operation_id, commit) as announced,
            Turn(self.manifest.objects) as turn,
        ):
            for _ in range(PREPARATIONS):
                begun = time.monotonic()
                txn = self._capture(announced)
                if strict is not None:
                    _require_unchanged(strict, txn)
                try:
                    changes = prepare(txn)
                    strict = None if changes.repeatable else txn
                    reach("changes_built", self.branch)
                    if isinstance(changes, ChangeSet):
                        check_changes(Trial(changes, txn.base, txn.reads))
                    reach("changes_checked", self.branch)
                    if dry_run or (changes.is_empty and not even_if_empty):
                        self._confirm_head(txn)
                        announced.settle()
                        return Written(None)
                    if isinstance(changes, ChangeSet):
                        announced.begin(changes, txn.base)
                    plan = self._stage(changes, txn, commit)
                    announced.extend(plan, txn.base)
                except StorageError as error:
                    # The base may have been collected while it was read: then there is another.
                    if error.kind != "not_found" or not self._is_overtaken(txn):
                        raise
                    cause = error
                    continue
                try:
                    if txn.refs is not None:
                        plan = plan.on(self._fork(txn, txn.refs), plan.tables)
                        created = True
                    published = Door(self.root, self.manifest).publish(
                        plan, txn.base, txn.reads, announced, turn=turn
                    )
                except (StageAgain, EpochMoved, _Forked) as again:
                    cause = again
                    continue
                except ReadSetBroken as broken:
                    if not changes.repeatable:
                        raise broken.cause from None
                    cause = broken.cause
                    # Others would be faster again: preparing takes longer than publishing.
                    turn.claim(time.monotonic() - begun)
                    continue
                announced.settle()
                return Written(_commit_of(published, commit), created)
        raise Conflict(
            f"branch {self.branch} changes too fast: this write was prepared {PREPARATIONS} times "
            "and overtaken each time; retry",
            details={"branch": self.branch, "attempts": PREPARATIONS},
        ) from cause

    def _capture(self, announced: Announcement) -> WriteTxn:
        refs: Refs | None = None
        try:
            view = self.manifest.view(self.branch)
        except BranchNotFound:
            if self.fork_from is None:
                raise
            # Before the head: what that shows, no collection of this epoch takes away.
            refs = self.manifest.refs.read()
            view = self.manifest.view(self.fork_from)
        txn = WriteTxn(self.branch, Base.of(self.root, view), announced, refs)
        self._check_head(txn.base.head)
        reach("txn_captured", self.branch)
        return txn

    def _confirm_head(self, txn: WriteTxn) -> None:
        """A conditional write that changes nothing still promises that the head is that one."""
        if self.if_commit is not None:
            self._check_head(self.manifest.view(txn.branch).state.head_commit_id)

    def _check_head(self, actual: str) -> None:
        if self.if_commit is not None and actual != self.if_commit:
            raise precondition_failed(self.branch, self.if_commit, actual)

    def _stage(
        self, changes: ChangeSet | BulkChanges, txn: WriteTxn, commit: CommitIntent
    ) -> PublishPlan:
        def stamped() -> Stamp:
            return stamp(commit.id, self.operation_id, "logical")

        tables = (
            stage(changes, txn.base, stamped)
            if isinstance(changes, ChangeSet)
            else stage_bulk(changes, txn.base, stamped)
        )
        return PublishPlan(
            self.branch,
            txn.base.exact,
            commit,
            self.operation_id,
            tables,
            conditional=self.if_commit is not None,
            ancestors=() if isinstance(changes, ChangeSet) else changes.ancestors,
        )

    def _fork(self, txn: WriteTxn, refs: Refs) -> ExactHead:
        """Make the branch; what was staged goes to its first epoch, which is that of ``refs``."""
        branches = BranchRefs(self.manifest)
        try:
            branch_id = branches.fork(self.branch, self.fork_from or MAIN, refs, self._actor(txn))
        except Conflict as conflict:
            if self.branch not in branches.list():
                raise
            # Somebody else has made it meanwhile: then this is a write like any other.
            raise _Forked from conflict
        reach("branch_forked", self.branch)
        return ExactHead(txn.base.head, branch_id, refs.epoch)

    @staticmethod
    def _actor(txn: WriteTxn) -> str | None:
        return txn.announced.commit.actor

    def _is_overtaken(self, txn: WriteTxn) -> bool:
        """Whether the branch has another state than the one that was captured."""
        return self.manifest.view_by_id(txn.base.view.branch_id).stored != txn.base.view.stored


class _Forked(Exception):
    """The branch was made by somebody else while this write was being prepared."""


def _require_unchanged(before: WriteTxn, txn: WriteTxn) -> None:
    """A write that must not be run on other rows than it has read is not, whatever it stages."""
    try:
        require_unchanged(before.base, txn.base, before.reads)
    except ReadSetBroken as broken:
        raise broken.cause from None


def _commit_of(published: View, commit: CommitIntent) -> Commit:
    found = find_commit(published, commit.id)
    if found is None:
        raise AssertionError(f"commit {commit.id} was published and is not there")
    return found
