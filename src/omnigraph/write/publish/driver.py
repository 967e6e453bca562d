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
from omnigraph.manifest.branch_state import BranchState, find_commit
from omnigraph.manifest.branches import BranchRefs, EpochMoved
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.publish_request import ExactHead, PendingCommit
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.detached import Stamp
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.staged_changes import StagedChanges, stage_bulk
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.commit_stamp import stamp
from omnigraph.write.publish.door import (
    Door,
    ReadSetBroken,
    StageAgain,
    precondition_failed,
    require_unchanged,
)
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.publish_plan import PublishPlan
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.publish.staging import stage
from omnigraph.write.publish.writer_queue import WriterTicket
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.rules.check import check_changes
from omnigraph.write.rules.evaluation import Evaluation

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
    announced: IntentScope
    refs: Refs | None = None
    reads: ReadSet = field(default_factory=ReadSet)


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What became of a write: its commit, or None when there was nothing to change."""

    commit: Commit | None
    branch_created: bool = False


class Prepare(Protocol):
    """What a kind of write does to a base."""

    def __call__(self, txn: WriteTxn) -> ChangeSet | StagedChanges:
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
        commit: PendingCommit,
        *,
        even_if_empty: bool = False,
        dry_run: bool = False,
    ) -> WriteOutcome:
        """Prepare, check, stage and publish; a dry run ends before anything is staged."""
        cause: Exception | None = None
        created = False
        strict: WriteTxn | None = None
        with (
            IntentScope(self.root, self.branch, self.operation_id, commit) as announced,
            WriterTicket(self.manifest.objects) as turn,
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
                        check_changes(Evaluation(changes, txn.base, txn.reads))
                    reach("changes_checked", self.branch)
                    if dry_run or (changes.is_empty and not even_if_empty):
                        self._confirm_head(txn)
                        announced.settle()
                        return WriteOutcome(None)
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
                return WriteOutcome(_commit_of(published, commit), created)
        raise Conflict(
            f"branch {self.branch} changes too fast: this write was prepared {PREPARATIONS} times "
            "and overtaken each time; retry",
            details={"branch": self.branch, "attempts": PREPARATIONS},
        ) from cause

    def _capture(self, announced: IntentScope) -> WriteTxn:
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
        self, changes: ChangeSet | StagedChanges, txn: WriteTxn, commit: PendingCommit
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


def _commit_of(published: BranchState, commit: PendingCommit) -> Commit:
    found = find_commit(published, commit.id)
    if found is None:
        raise AssertionError(f"commit {commit.id} was published and is not there")
    return found
