"""The door: the one place where a write becomes visible.

Owns the publish of every staged change and what follows a lost race: a change whose read set
still stands is moved to the new head, any other is given back. Must never publish what was
built on another head, never a change whose read set is broken, and never files that were
staged before a collection began that nobody told to leave them.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.errors import (
    Conflict,
    PreconditionFailed,
    ReadSetChanged,
    StorageError,
)
from omnigraph.manifest.entries import MESSAGE
from omnigraph.manifest.overtaken import note_retry
from omnigraph.manifest.publish_request import ExactHead, PublishRequest, require_live
from omnigraph.manifest.publisher import FAILURES, RETRIED, is_published
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.protocol import Change, Effects
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.decisions import Decision
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import Dependency, ReadSet
from omnigraph.write.publish.run_claims import RunClaims, RunContested
from omnigraph.write.publish.turns import Turn
from omnigraph.write.recovery.intent_scope import IntentScope

_R = TypeVar("_R")

ATTEMPTS = 128
MAX_PAUSE = 0.003


class StageAgain(Exception):
    """A collection has begun since it was staged: its files may go, so stage others."""


class ReadSetBroken(Exception):
    """What a change was built on is not so any more; ``cause`` is what a caller is told of it."""

    def __init__(self, cause: ReadSetChanged) -> None:
        super().__init__(cause.message)
        self.cause = cause


class SchemaMoved(ReadSetBroken):
    """Somebody else has changed the schema: whatever it was, it is prepared again under that."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A change that is staged: what it was built on, what it has read, and its effects.

    ``head`` is the only one that it may be published on: that of its base, or of the branch
    that was made from it. With ``is_conditional`` the caller insists on it, too.
    ``branch_created`` says that it is the first commit of a branch that was made for it.
    """

    base: Base
    reads: ReadSet
    effects: Effects
    head: ExactHead
    is_conditional: bool = False
    branch_created: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """The door of one graph; its ``message`` goes with every commit."""

    root: Location
    manifest: Manifest
    message: str | None = None

    def publish(
        self,
        change: Change[_R],
        staged: Staged,
        files: IntentScope,
        turn: Turn,
        claims: RunClaims | None = None,
    ) -> tuple[BranchState, Effects]:
        """Make a change visible, on a newer head if need be.

        With ``claims``, under a run id that nobody else has. Returns the state it made, and the
        effects as they are there.
        """
        ControlObjects(self.root).require_create_only()
        branch_id = staged.head.branch_id
        failures, aimed = 0, 0
        doubt: StorageError | None = None
        is_fresh = turn.take(branch_id)
        for attempt in range(ATTEMPTS):
            begun = time.monotonic()
            view = self.manifest.known_by_id(branch_id)
            is_awaited = attempt > 0 or view is None or view.log.is_awaited
            is_fresh = not turn.give_way(is_awaited=is_awaited) and is_fresh and attempt == 0
            try:
                if view is None or not is_fresh:
                    # Others may have published while this one waited.
                    view = self.manifest.view_by_id(branch_id)
                if doubt is not None and is_published(view, change.commit, aimed):
                    published = view
                    break
                if view.log.version >= aimed:
                    doubt = None  # the version that it aimed at is another's
                if staged.head != view.exact:
                    staged = self._rebase(change, staged, view, files)
                # After the head was captured: an intent that stands now was seen by every
                # collection that this head knows of, and so for a claim to a run id.
                files.require_alive()
                if claims is not None:
                    claims.hold(
                        change.commit.id,
                        staged.head,
                        files.branch,
                        change.outcome,
                        branch_created=staged.branch_created,
                    )
            except (StorageError, Conflict, RunContested) as error:
                if doubt is None:
                    raise
                raise doubt from error
            reach("publish_ready", files.branch)
            request = _request(change, staged, self.message)
            try:
                published = self.manifest.publish(branch_id, request, view)
                break
            except CompareAndSwapLost:
                note_retry("lost_race")
                doubt = None
                turn.lost(time.monotonic() - begun)
                _pause(MAX_PAUSE)
            except StorageError as error:
                failures += 1
                if error.kind not in RETRIED or failures == FAILURES:
                    raise
                # It may still come through, as that version and no other.
                doubt, aimed = error, view.log.version + 1
                _pause(MAX_PAUSE * 2**failures)
        else:
            raise Conflict(
                f"branch {files.branch} is too busy: {ATTEMPTS} attempts to publish lost the "
                "race; retry",
                details={"branch": files.branch, "attempts": ATTEMPTS},
            )
        reach("published", files.branch)
        turn.release()
        return published, staged.effects

    def _rebase(
        self, change: Change[_R], staged: Staged, view: BranchState, files: IntentScope
    ) -> Staged:
        """The change on a newer head, if everything it depends on is still so."""
        reach("rebase_begun", files.branch)
        require_live(view.state)
        expected, actual = staged.head, view.exact
        if staged.is_conditional and expected.commit_id != actual.commit_id:
            raise precondition_failed(files.branch, expected.commit_id, actual.commit_id)
        newer = Base.of(self.root, view)
        require_unchanged(staged.base, newer, staged.reads)
        if expected.epoch != actual.epoch and not files.are_announced:
            raise StageAgain
        effects = change.restage(staged.effects, newer, files)
        if effects is None:
            raise ReadSetBroken(
                read_set_changed(
                    f"head:{files.branch}",
                    expected.commit_id,
                    actual.commit_id,
                    "all that this write was built on",
                )
            )
        reach("rebase_done", files.branch)
        return replace(staged, base=newer, effects=effects, head=actual)


def _request(change: Change[_R], staged: Staged, message: str | None) -> PublishRequest:
    """What a change asks for, on this head alone; its commit notes the message and the run id."""
    asked = change.publish(staged.base, staged.effects)
    noted = dict(asked.commit.metadata)
    if message is not None:
        noted[MESSAGE] = message
    if change.run is not None:
        noted |= change.run.notes
    return replace(asked, commit=replace(asked.commit, metadata=noted), precondition=staged.head)


def require_unchanged(base: Base, newer: Base, reads: ReadSet) -> None:
    """Refuse to go on when what was read of a base is not so on a newer one."""
    _check_schema(base, newer)
    try:
        broken = reads.broken(base, newer)
    except StorageError as error:
        if error.kind != "not_found" or base.exact.epoch == newer.exact.epoch:
            raise
        # What was read has been collected, so that nobody can tell whether it still stands.
        state = base.view.state
        raise ReadSetBroken(
            read_set_changed(f"head:{state.branch}", base.head, newer.head, "what it read")
        ) from error
    if broken is not None:
        raise ReadSetBroken(_broken(broken, base, newer))


def require_same_rows(decision: Decision, again: Decision) -> None:
    """The same of a write that was decided on rows, and then once more under another schema."""
    broken = decision.broken(again)
    if broken is not None:
        raise _broken(broken, decision.base, again.base)


def _broken(broken: Dependency, base: Base, newer: Base) -> ReadSetChanged:
    if broken.type_key not in base.snapshot.tables:
        return read_set_changed(
            f"head:{base.view.state.branch}", base.head, newer.head, f"the {broken.type_key}"
        )
    before = base.snapshot.tables[broken.type_key]
    after = newer.snapshot.by_identity.get(before.identity)
    return read_set_changed(
        f"published_dataset_version:{broken.type_key}",
        str(before.version),
        None if after is None else str(after.version),
        f"rows of {broken.type_key} that this write depends on",
    )


def _check_schema(base: Base, newer: Base) -> None:
    if newer.snapshot.schema != base.snapshot.schema:
        raise SchemaMoved(
            read_set_changed(
                "schema_identity",
                base.snapshot.schema.ir_hash,
                newer.snapshot.schema.ir_hash,
                "the schema",
            )
        )


def read_set_changed(
    member: str, expected: str | None, actual: str | None, what: str
) -> ReadSetChanged:
    """What a caller is told when somebody else was faster."""
    return ReadSetChanged(
        f"{what} changed while this write was being prepared, nothing was written: "
        "read again and retry",
        details={"member": member, "expected": expected, "actual": actual},
    )


def precondition_failed(branch: str, expected: str, actual: str) -> PreconditionFailed:
    """What a conditional write is told when the head is another one."""
    return PreconditionFailed(
        f"branch {branch} is at commit {actual}, not {expected}: nothing was written",
        details={"branch": branch, "expected": expected, "actual": actual},
    )


def _pause(longest: float) -> None:
    time.sleep(random.uniform(0, longest))  # noqa: S311 - jitter, not a secret
