"""The driver: every write from capture to commit, prepared again when it has to be.

Owns the one loop that all kinds of changes run through, and that what was done once is not done
again: under a run id in the whole graph (run_claims.py), a micro-batch on its branch. What is
checked and staged is always from one base; the commit is the change's own, so that however often
it is prepared, it is one. Never makes anything visible: that is the door's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from omnigraph.errors import (
    BadRequest,
    BranchNotFound,
    ChangeFeedGap,
    Conflict,
    OmniGraphError,
    StorageError,
)
from omnigraph.manifest.branches import BranchRefs, EpochMoved
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.overtaken import note_retry
from omnigraph.manifest.publish_request import ExactHead, PendingCommit
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.snapshot import BranchState, find_commit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.protocol import (
    AlreadyDone,
    Change,
    Effects,
    WriteOutcome,
    WriteTxn,
)
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.decisions import Decision
from omnigraph.write.publish.door import (
    Door,
    ReadSetBroken,
    SchemaMoved,
    StageAgain,
    Staged,
    precondition_failed,
    require_same_rows,
    require_unchanged,
)
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.publish.run_claims import FirstRun, RunClaims, RunContested
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.turns import Turn
from omnigraph.write.recovery.intent_scope import IntentScope

PREPARATIONS = 32
LONGEST_MESSAGE = 10_000

_R = TypeVar("_R")


class Once(Protocol):
    """What tells a load apart from all others that go to one branch."""

    def find(self, view: BranchState) -> Commit | None:
        """The commit that shows that it was done, if the branch has one."""


@dataclass(frozen=True, slots=True)
class BatchNotLoaded:
    """The claim that nobody has made the commit of a load: part of a read set."""

    load: Once
    type_key: str = "commit"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether none of the commits since then is it."""
        return before.head == after.head or self.load.find(after.view) is None


def require_not_loaded(txn: WriteTxn, loads: Iterable[Once]) -> None:
    """Stop when the branch has the commit of a load, and depend on that it gets none."""
    for load in loads:
        done = load.find(txn.base.view)
        if done is not None:
            raise AlreadyDone(done)
        txn.reads.claim(BatchNotLoaded(load))


@dataclass(frozen=True, slots=True)
class Target:
    """The branch of a graph that a change goes to.

    ``fork_from`` is the branch to fork a missing one from, as soon as there is something
    to publish to it. ``if_commit`` is the head that the caller insists on. The ``message`` is for
    people who read the history.
    """

    root: Location
    manifest: Manifest
    branch: str
    if_commit: str | None = None
    fork_from: str | None = None
    message: str | None = None


def message_of(text: str | None) -> str | None:
    """A message as a commit notes it; None where there is nothing to say."""
    if text is None or not (text := text.strip()):
        return None
    if len(text) > LONGEST_MESSAGE:
        raise BadRequest(
            f"a message has at most {LONGEST_MESSAGE} characters, and this one has {len(text)}"
        )
    return text


class _Forked(Exception):
    """The branch was made by somebody else while this write was being prepared."""


def run(change: Change[_R], target: Target, *, dry_run: bool = False) -> _R:
    """Prepare, check, stage and publish; a dry run ends before anything is staged.

    A change whose run id has a commit is not even prepared: its caller is told what was done
    then. Of several at once that have one id, one is published and the others are told of it.
    """
    if change.run is None:
        return _run(change, target, None, dry_run=dry_run)
    claims = RunClaims(target.manifest, change.run)
    first = claims.first()
    if first is None:
        try:
            return _run(change, target, claims, dry_run=dry_run)
        except StorageError:
            raise  # it may have been published: then the claim leads to it
        except OmniGraphError:
            claims.withdraw()
            # That another run of the same request was faster may be all that is wrong with it.
            first = claims.first()
            if first is None:
                raise
    return change.result(_repeated(target, first))


def find_first_run(target: Target, run_id: RunId) -> WriteOutcome | None:
    """What was done under a run id, for those who have much to do before they can run."""
    first = RunClaims(target.manifest, run_id).first()
    return None if first is None else _repeated(target, first)


def _repeated(target: Target, first: FirstRun) -> WriteOutcome:
    return WriteOutcome(
        target.branch,
        first.commit,
        fork_from=target.fork_from,
        branch_created=first.branch_created,
        repeats=True,
        first=first.outcome,
    )


def _run(change: Change[_R], target: Target, claims: RunClaims | None, *, dry_run: bool) -> _R:
    cause: BaseException | None = None
    change.begin()
    files = IntentScope(
        target.root, target.branch, new_id(), change.commit, change.kind, change.operation_class
    )
    with files, Turn(target.manifest) as turn:
        write = _Write(change, target, claims, files, turn)
        for _ in range(PREPARATIONS):
            try:
                return write.attempt(dry_run=dry_run)
            except _Again as again:
                note_retry("prepared_again")
                cause = again.__cause__
    raise Conflict(
        f"branch {target.branch} changes too fast: this write was prepared {PREPARATIONS} times "
        "and overtaken each time; retry",
        details={"branch": target.branch, "attempts": PREPARATIONS},
    ) from cause


class _Again(Exception):
    """What was prepared is of no use any more, for the reason it is raised from."""


@dataclass(slots=True)
class _Write(Generic[_R]):
    """One write on its way, which may be prepared several times.

    ``strict`` is the preparation of a change that must not be run on other rows than it has read,
    and ``decision`` what it has read to decide what it does, before anything was checked.
    """

    change: Change[_R]
    target: Target
    claims: RunClaims | None
    files: IntentScope
    turn: Turn
    strict: WriteTxn | None = None
    decision: Decision | None = None
    branch_created: bool = False

    def attempt(self, *, dry_run: bool) -> _R:
        """From a captured base to the result."""
        begun = time.monotonic()
        change, target, branch = self.change, self.target, self.target.branch
        base, refs = _capture(target)
        txn = WriteTxn(base, ReadSet(), self.files)
        if self.strict is not None and _is_same_schema(self.strict.base, base):
            _require_unchanged(self.strict, base)
        try:
            effects = self._stage(txn, dry_run=dry_run)
        except AlreadyDone as done:
            change.discard(txn)
            # It may have been done by a run of the same id, while this one was prepared.
            first = None if self.claims is None else self.claims.first()
            told = WriteOutcome(branch, done.commit, repeats=True)
            return change.result(told if first is None else _repeated(target, first))
        except OmniGraphError as error:
            # What is read may be collected meanwhile, the base or another commit: then there is
            # another base.
            if _is_gone(error) and _is_overtaken(target, base):
                raise _Again from error
            change.discard(txn)
            raise
        if effects is None:
            self.files.close()
            nothing = WriteOutcome(branch, fork_from=target.fork_from)
            if self.claims is None:
                return change.result(nothing)
            self.claims.withdraw()
            first = self.claims.first()
            return change.result(nothing if first is None else _repeated(target, first))
        try:
            view, effects = self._publish(txn, refs, effects)
        except (StageAgain, EpochMoved, _Forked) as again:
            self.turn.release()
            raise _Again from again
        except RunContested as contested:
            return self._told(txn, contested)
        except ReadSetBroken as broken:
            if not (change.repeatable or isinstance(broken, SchemaMoved)):
                change.discard(txn)
                raise broken.cause from None
            # Others would be faster again: preparing takes longer than publishing.
            self.turn.keep(time.monotonic() - begun)
            raise _Again from broken.cause
        self.files.close()
        commit = _commit_of(view, change.commit)
        return change.result(
            WriteOutcome(branch, commit, effects, target.fork_from, self.branch_created)
        )

    def _told(self, txn: WriteTxn, contested: RunContested) -> _R:
        """What was done by whoever else has a claim to the run id, if anything was."""
        try:
            first = None if self.claims is None else self.claims.first()
        except Conflict:
            self.change.discard(txn)
            raise
        if first is None:
            raise _Again from contested
        self.change.discard(txn)
        return self.change.result(_repeated(self.target, first))

    def _stage(self, txn: WriteTxn, *, dry_run: bool) -> Effects | None:
        """Prepare, check and stage; None when nothing is to be published."""
        change, branch = self.change, self.target.branch
        is_needed = change.prepare(txn)
        self._decide(txn)
        reach("changes_built", branch)
        if is_needed:
            change.check(txn)
        reach("changes_checked", branch)
        if is_needed and not dry_run:
            return change.stage(txn)
        _confirm_head(self.target)
        return None

    def _decide(self, txn: WriteTxn) -> None:
        """Note what a strict change was decided on; under another schema it has to be the same."""
        before, now = self.decision, Decision(txn.base, tuple(txn.reads.reads))
        is_strict = not self.change.repeatable
        if is_strict and before is not None and not _is_same_schema(before.base, now.base):
            require_same_rows(before, now)
        self.strict, self.decision = (txn, now) if is_strict else (None, None)

    def _publish(
        self, txn: WriteTxn, refs: Refs | None, effects: Effects
    ) -> tuple[BranchState, Effects]:
        """Hand it to the door; with the names, to a branch that is made for it."""
        change, target, base = self.change, self.target, txn.base
        head = base.exact if refs is None else _fork(target, base, refs, change.commit)
        self.branch_created = self.branch_created or refs is not None
        conditional = target.if_commit is not None
        staged = Staged(base, txn.reads, effects, head, conditional, self.branch_created)
        door = Door(target.root, target.manifest, target.message)
        return door.publish(change, staged, self.files, self.turn, self.claims)


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
    try:
        require_unchanged(before.base, base, before.reads)
    except ReadSetBroken as broken:
        raise broken.cause from None


def _is_same_schema(one: Base, other: Base) -> bool:
    return one.snapshot.schema == other.snapshot.schema


def _is_gone(error: OmniGraphError) -> bool:
    """Whether it says that something is not there any more."""
    if isinstance(error, StorageError):
        return error.kind == "not_found"
    return isinstance(error, ChangeFeedGap)


def _is_overtaken(target: Target, base: Base) -> bool:
    """Whether the branch has another state than the one that was captured."""
    return target.manifest.view_by_id(base.view.branch_id).stored != base.view.stored


def _commit_of(published: BranchState, commit: PendingCommit) -> Commit:
    found = find_commit(published, commit.id)
    if found is None:
        raise AssertionError(f"commit {commit.id} was published and is not there")
    return found
