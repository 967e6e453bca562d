"""The door: the one place where a write becomes visible.

Owns the publish of every plan and what follows a lost race: a plan whose read set
still stands is moved to the new head, any other is given back. Must never publish
anything but a plan, never a plan whose read set is broken, and never files that were
staged before a collection began that nobody told to leave them.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from omnigraph.errors import (
    Conflict,
    PreconditionFailed,
    ReadSetChanged,
    StorageError,
    VersionMismatch,
)
from omnigraph.manifest.apply import require_live
from omnigraph.manifest.branch_state import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.commit_stamp import stamp
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.publish_plan import PublishPlan
from omnigraph.write.publish.read_set import Dependency, ReadSet
from omnigraph.write.publish.staging import restage
from omnigraph.write.publish.writer_queue import WriterTicket

ATTEMPTS = 128
MAX_PAUSE = 0.003

# Writers of one process take turns at a branch: racing each other would only waste work. It is no
# part of the protocol, writers of other processes know nothing of it.
_locks: defaultdict[tuple[str, str], Lock] = defaultdict(Lock)
_taking = Lock()
# Whether somebody waited at a branch when this process last published there.
_awaited: dict[tuple[str, str], bool] = {}


class StagedFiles(Protocol):
    """Who knows whether the files of a plan are safe from collectors."""

    @property
    def are_announced(self) -> bool:
        """Whether an intent tells every collector to leave them."""

    def require_alive(self) -> None:
        """Refuse to publish when a collector may have taken them nevertheless."""


class StageAgain(Exception):
    """A collection has begun since the plan was built: its files may go, so stage others."""


class ReadSetBroken(Exception):
    """What a plan was built on has changed; ``cause`` is what a caller is told of it."""

    def __init__(self, cause: ReadSetChanged) -> None:
        super().__init__(cause.message)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Door:
    """The door of one graph."""

    root: Location
    manifest: Manifest

    def publish(
        self,
        plan: PublishPlan,
        base: Base,
        reads: ReadSet,
        files: StagedFiles,
        *,
        turn: WriterTicket | None = None,
    ) -> BranchState:
        """Make a plan visible, on a newer head if need be; returns the state it made.

        ``turn`` is that of the write, if it has one already.
        """
        ControlObjects(self.root).require_create_only()
        branch_id = plan.built_on.branch_id
        key = (self.manifest.location.uri, branch_id)
        with (
            _lock(key),
            WriterTicket(self.manifest.objects) if turn is None else nullcontext(turn) as mine,
        ):
            mine.join(branch_id)
            for attempt in range(ATTEMPTS):
                begun = time.monotonic()
                is_awaited = attempt > 0 or _awaited.get(key, True)
                waited = (is_awaited and mine.give_way()) or attempt > 0
                view = self.manifest.known_by_id(branch_id)
                if waited or view is None:
                    # Others may have published while this one waited.
                    view = self.manifest.view_by_id(branch_id)
                if plan.built_on != view.exact:
                    plan, base = self._rebase(plan, base, reads, view, files)
                # After the head was captured: an intent that stands now was seen by every
                # collection that this head knows of.
                files.require_alive()
                reach("publish_ready", plan.branch)
                try:
                    published = self.manifest.publish(branch_id, plan.request())
                except (ReadSetChanged, VersionMismatch, Conflict) as lost:
                    if isinstance(lost, Conflict) and "attempts" not in lost.details:
                        raise  # not a lost race
                    mine.claim(time.monotonic() - begun)
                    _pause()
                    continue
                _awaited[key] = published.log.is_awaited
                reach("published", plan.branch)
                return published
        raise Conflict(
            f"branch {plan.branch} is too busy: {ATTEMPTS} attempts to publish lost the race; "
            "retry",
            details={"branch": plan.branch, "attempts": ATTEMPTS},
        )

    def _rebase(
        self, plan: PublishPlan, base: Base, reads: ReadSet, view: BranchState, files: StagedFiles
    ) -> tuple[PublishPlan, Base]:
        """The plan on a newer head, if everything it depends on is still so."""
        reach("rebase_begun", plan.branch)
        require_live(view.state)
        built_on = plan.built_on
        if plan.conditional and built_on.commit_id != view.state.head_commit_id:
            raise precondition_failed(plan.branch, built_on.commit_id, view.state.head_commit_id)
        newer = Base.of(self.root, view)
        require_unchanged(base, newer, reads)
        if built_on.epoch != newer.exact.epoch and not files.are_announced:
            raise StageAgain
        tables = restage(
            plan.tables, newer, lambda: stamp(plan.commit.id, plan.operation_id, plan.class_)
        )
        reach("rebase_done", plan.branch)
        return plan.on(newer.exact, tables), newer


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


def _broken(broken: Dependency, base: Base, newer: Base) -> ReadSetChanged:
    if broken.type_key not in base.snapshot.tables:
        return read_set_changed(
            f"head:{base.view.state.branch}", base.head, newer.head, f"the {broken.type_key}"
        )
    return read_set_changed(
        f"published_dataset_version:{broken.type_key}",
        str(base.table(broken.type_key).version),
        str(newer.table(broken.type_key).version),
        f"rows of {broken.type_key} that this write depends on",
    )


def _check_schema(base: Base, newer: Base) -> None:
    if newer.snapshot.schema != base.snapshot.schema:
        raise ReadSetBroken(
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


def _lock(key: tuple[str, str]) -> Lock:
    with _taking:
        return _locks[key]


def _pause() -> None:
    time.sleep(random.uniform(0, MAX_PAUSE))  # noqa: S311 - jitter, not a secret
