"""The driver: every write from capture to commit, prepared again when it has to be.

Owns the one loop that all kinds of changes run through, and that a load whose commit the branch
has is not done again: what tells a load apart stands in the commit itself. What is checked and
staged is always from one base; the commit is the change's own, so that however often it is
prepared, it is one. Never makes anything visible: that is the door's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from omnigraph.errors import BranchNotFound, Conflict, OmniGraphError, StorageError
from omnigraph.manifest.branches import BranchRefs, EpochMoved
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.publish_request import ExactHead, PendingCommit
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.snapshot import BranchState, commits_of, find_commit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.protocol import AlreadyDone, Change, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.door import (
    Door,
    ReadSetBroken,
    SchemaMoved,
    StageAgain,
    Staged,
    precondition_failed,
    require_rows_unchanged,
    require_unchanged,
)
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.publish.writer_queue import WriterTicket
from omnigraph.write.recovery.intent_scope import IntentScope

RUN_ID = "run_id"

PREPARATIONS = 32

_R = TypeVar("_R")


class Once(Protocol):
    """What tells a load apart from all others."""

    def find(self, view: BranchState) -> Commit | None:
        """The commit that shows that it was done, if the branch has one."""


@dataclass(frozen=True, slots=True)
class RunId:
    """The name that a caller gave to a load."""

    name: str

    def find(self, view: BranchState) -> Commit | None:
        """The newest commit of this name."""
        commits = commits_of(view)
        return next((one for one in commits if one.metadata.get(RUN_ID) == self.name), None)


@dataclass(frozen=True, slots=True)
class RunIdUnused:
    """The claim that nobody has made the commit of a load: part of a read set."""

    load: Once
    type_key: str = "commit"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether none of the commits since then is it."""
        return before.head == after.head or self.load.find(after.view) is None


def require_first_run(txn: WriteTxn, loads: Iterable[Once]) -> None:
    """Stop when the branch has the commit of a load, and depend on that it gets none."""
    for load in loads:
        done = load.find(txn.base.view)
        if done is not None:
            raise AlreadyDone(done)
        txn.reads.claim(RunIdUnused(load))


@dataclass(frozen=True, slots=True)
class Target:
    """The branch of a graph that a change goes to.

    ``fork_from`` is the branch to fork a missing one from, as soon as there is something
    to publish to it. ``if_commit`` is the head that the caller insists on.
    """

    root: Location
    manifest: Manifest
    branch: str
    if_commit: str | None = None
    fork_from: str | None = None


class _Forked(Exception):
    """The branch was made by somebody else while this write was being prepared."""


def run(change: Change[_R], target: Target, *, dry_run: bool = False) -> _R:
    """Prepare, check, stage and publish; a dry run ends before anything is staged."""
    cause: Exception | None = None
    strict: WriteTxn | None = None
    branch, created = target.branch, False
    files = IntentScope(
        target.root, branch, new_id(), change.commit, change.kind, change.operation_class
    )
    with files, WriterTicket(target.manifest.objects) as turn:
        for _ in range(PREPARATIONS):
            begun = time.monotonic()
            base, refs = _capture(target)
            txn = WriteTxn(base, ReadSet(), files)
            if strict is not None:
                _require_unchanged(strict, base)
            try:
                is_needed = change.prepare(txn)
                strict = None if change.repeatable else txn
                reach("changes_built", branch)
                if is_needed:
                    change.check(txn)
                reach("changes_checked", branch)
                if dry_run or not is_needed:
                    _confirm_head(target)
                    files.close()
                    return change.result(WriteOutcome(branch, fork_from=target.fork_from))
                effects = change.stage(txn)
            except AlreadyDone as done:
                change.discard(txn)
                return change.result(WriteOutcome(branch, done.commit, repeats=True))
            except OmniGraphError as error:
                # The base may have been collected while it was read: then there is another.
                gone = isinstance(error, StorageError) and error.kind == "not_found"
                if gone and _is_overtaken(target, base):
                    cause = error
                    continue
                change.discard(txn)
                raise
            try:
                head = base.exact if refs is None else _fork(target, base, refs, change.commit)
                created = created or refs is not None
                staged = Staged(base, txn.reads, effects, head, target.if_commit is not None)
                view, effects = Door(target.root, target.manifest).publish(
                    change, staged, files, turn
                )
            except (StageAgain, EpochMoved, _Forked) as again:
                cause = again
                continue
            except ReadSetBroken as broken:
                if not (change.repeatable or isinstance(broken, SchemaMoved)):
                    raise broken.cause from None
                cause = broken.cause
                # Others would be faster again: preparing takes longer than publishing.
                turn.claim(time.monotonic() - begun)
                continue
            files.close()
            commit = _commit_of(view, change.commit)
            return change.result(WriteOutcome(branch, commit, effects, target.fork_from, created))
    raise Conflict(
        f"branch {branch} changes too fast: this write was prepared {PREPARATIONS} times "
        "and overtaken each time; retry",
        details={"branch": branch, "attempts": PREPARATIONS},
    ) from cause


def _capture(target: Target) -> tuple[Base, Refs | None]:
    """The newest state of the branch, or of the one it will be forked from, with the names."""
    refs: Refs | None = None
    try:
        view = target.manifest.view(target.branch)
    except BranchNotFound:
        if target.fork_from is None:
            raise
        # Before the head: what that shows, no collection of this epoch takes away.
        refs = target.manifest.refs.read()
        view = target.manifest.view(target.fork_from)
    base = Base.of(target.root, view)
    _check_head(target, view)
    reach("txn_captured", target.branch)
    return base, refs


def _confirm_head(target: Target) -> None:
    """A conditional write that changes nothing still promises that the head is that one."""
    if target.if_commit is not None:
        _check_head(target, target.manifest.view(target.branch))


def _check_head(target: Target, view: BranchState) -> None:
    actual = view.state.head_commit_id
    if target.if_commit is not None and actual != target.if_commit:
        raise precondition_failed(target.branch, target.if_commit, actual)


def _fork(target: Target, base: Base, refs: Refs, commit: PendingCommit) -> ExactHead:
    """Make the branch; what was staged goes to its first epoch, which is that of ``refs``."""
    branches = BranchRefs(target.manifest)
    try:
        branch_id = branches.fork(target.branch, target.fork_from or MAIN, refs, commit.actor)
    except Conflict as conflict:
        if target.branch not in branches.list():
            raise
        # Somebody else has made it meanwhile: then this is a write like any other.
        raise _Forked from conflict
    reach("branch_forked", target.branch)
    return ExactHead(base.head, branch_id, refs.epoch)


def _require_unchanged(before: WriteTxn, base: Base) -> None:
    """A change that must not be run on other rows than it has read is not, whatever it stages."""
    is_same_schema = before.base.snapshot.schema == base.snapshot.schema
    require = require_unchanged if is_same_schema else require_rows_unchanged
    try:
        require(before.base, base, before.reads)
    except ReadSetBroken as broken:
        raise broken.cause from None


def _is_overtaken(target: Target, base: Base) -> bool:
    """Whether the branch has another state than the one that was captured."""
    return target.manifest.view_by_id(base.view.branch_id).stored != base.view.stored


def _commit_of(published: BranchState, commit: PendingCommit) -> Commit:
    found = find_commit(published, commit.id)
    if found is None:
        raise AssertionError(f"commit {commit.id} was published and is not there")
    return found
