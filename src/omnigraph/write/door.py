"""The door: the one place where a write becomes visible.

Owns the publish of every plan and what follows a lost race: a plan whose read set
still stands is moved to the new head, any other is given back. Must never publish
anything but a plan, and never a plan whose read set is broken.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock

from omnigraph.errors import (
    Conflict,
    PreconditionFailed,
    ReadSetChanged,
    VersionMismatch,
)
from omnigraph.manifest.store import Manifest
from omnigraph.manifest.view import View
from omnigraph.storage.location import Location
from omnigraph.write.base import Base
from omnigraph.write.failpoints import reach
from omnigraph.write.plan import PublishPlan
from omnigraph.write.reads import Claim, ReadSet
from omnigraph.write.staging import restage
from omnigraph.write.stamps import stamp
from omnigraph.write.turns import Turn

ATTEMPTS = 128
MAX_PAUSE = 0.003

# Writers of one process take turns at a branch: racing each other would only waste work. It is no
# part of the protocol, writers of other processes know nothing of it.
_locks: defaultdict[tuple[str, str], Lock] = defaultdict(Lock)
_taking = Lock()


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
        prove: Callable[[], None] = lambda: None,
        *,
        turn: Turn | None = None,
    ) -> View:
        """Make a plan visible, on a newer head if need be; returns the state it made.

        ``prove`` is called right before each attempt and raises when it must not be made.
        ``turn`` is that of the write, if it has one already.
        """
        with (
            _lock(self.manifest, plan.branch),
            Turn(self.manifest.root_objects, plan.branch)
            if turn is None
            else nullcontext(turn) as mine,
        ):
            for attempt in range(ATTEMPTS):
                begun = time.monotonic()
                waited = mine.give_way() or attempt > 0
                # Others may have published while this one waited.
                view = (self.manifest.view if waited else self.manifest.known)(plan.branch)
                if view is not None and not _is_built_on(plan, view):
                    plan, base = self._rebase(plan, base, reads, view)
                prove()
                reach("publish_ready", plan.branch)
                try:
                    published = self.manifest.publish(plan.branch, plan.request())
                except (ReadSetChanged, VersionMismatch, Conflict) as lost:
                    if isinstance(lost, Conflict) and "attempts" not in lost.details:
                        raise  # not a lost race
                    mine.claim(time.monotonic() - begun)
                    _pause()
                    continue
                reach("published", plan.branch)
                return published
        raise Conflict(
            f"branch {plan.branch} is too busy: {ATTEMPTS} attempts to publish lost the race; "
            "retry",
            details={"branch": plan.branch, "attempts": ATTEMPTS},
        )

    def _rebase(
        self, plan: PublishPlan, base: Base, reads: ReadSet, view: View
    ) -> tuple[PublishPlan, Base]:
        """The plan on a newer head, if everything it depends on is still so."""
        reach("rebase_begun", plan.branch)
        if plan.conditional and plan.head != view.state.head_commit_id:
            raise precondition_failed(plan.branch, plan.head, view.state.head_commit_id)
        newer = Base.of(self.root, view)
        _check_branch(plan, newer)
        _check_schema(base, newer)
        broken = reads.broken(base, newer)
        if broken is not None:
            raise ReadSetBroken(_broken(broken, base, newer))
        tables = restage(
            plan.tables, newer, lambda: stamp(plan.commit.id, plan.operation_id, plan.class_)
        )
        reach("rebase_done", plan.branch)
        return plan.on(newer.head, view.identifier, tables), newer


def _broken(broken: Claim, base: Base, newer: Base) -> ReadSetChanged:
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


def _is_built_on(plan: PublishPlan, view: View) -> bool:
    return (plan.head, plan.branch_identifier) == (view.state.head_commit_id, view.identifier)


def _check_branch(plan: PublishPlan, newer: Base) -> None:
    if newer.view.identifier != plan.branch_identifier:
        raise ReadSetBroken(
            read_set_changed(
                f"branch_identifier:{plan.branch}",
                plan.branch_identifier,
                newer.view.identifier,
                f"branch {plan.branch} was deleted and created anew, so it",
            )
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


def _lock(manifest: Manifest, branch: str) -> Lock:
    with _taking:
        return _locks[(manifest.location.uri, branch)]


def _pause() -> None:
    time.sleep(random.uniform(0, MAX_PAUSE))  # noqa: S311 - jitter, not a secret
