"""The reconciler: compares what is published with what is wanted, and does what is worth it.

Owns the order of one round, and its bounds. What is due is wanted.py's to say; how it is done,
that of those who do it. Every piece of work is a maintenance commit or a cleanup of its own, so
a round that is killed, overtaken or out of time has done some of them, and the next one goes on.
Must never reclaim a commit unless somebody has said which are to be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from threading import Event

from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    OmniGraphError,
    ReadSetChanged,
    VersionMismatch,
)
from omnigraph.maintain.cleanup import EVERY_COMMIT, cleanup, find_garbage
from omnigraph.maintain.garbage import GarbageCollector
from omnigraph.maintain.index_choice import intents_of
from omnigraph.maintain.optimize import Optimize, optimize
from omnigraph.maintain.roots import CONCURRENCY, Retention
from omnigraph.maintain.shapes import is_untouched, shape_of
from omnigraph.maintain.steps import (
    MaintenanceLimits,
    MaintenanceReport,
    MaintenanceStep,
    Outcome,
    Work,
)
from omnigraph.maintain.wanted import (
    DueTable,
    TableShape,
    are_worth_reclaiming,
    choose_tables,
    needs,
    next_pause,
)
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.heads import BranchHead, branch_heads
from omnigraph.manifest.snapshot import BranchState, SnapshotTable, catalog_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import TablePin
from omnigraph.write.publish.driver import Target
from omnigraph.write.recovery.intents import LIFETIME, microseconds
from omnigraph.write.recovery.sweep import MARGIN, stored_intents, sweep

CLAIMED = timedelta(minutes=5)
"""For so long after it began, or was renewed, the work of another maintainer is left to it."""
CLEAN_EVERY = timedelta(hours=1)
"""How long somebody who goes on and on waits between two looks at all files."""
IN_TURN = "no time is left"
OTHERS = "another maintainer is at work on it"

LOST_RACES = (BranchNotFound, Conflict, ReadSetChanged, VersionMismatch)
"""Somebody else was faster: what is still due then, the next round finds."""

Tell = Callable[[MaintenanceReport | OmniGraphError], None]


@dataclass(slots=True)
class Maintainer:
    """Whoever keeps one graph in order, once or for as long as it is asked to."""

    root: Location
    manifest: Manifest
    limits: MaintenanceLimits = field(default_factory=MaintenanceLimits)
    branch: str | None = None
    """The one branch to work on; all of them if none is named."""
    actor: str | None = None
    _in_order: dict[str, set[TablePin]] = field(default_factory=dict)
    """Versions of tables that were found in order, by path: they never change."""
    _given_up: set[str] = field(default_factory=set)
    """Commits that failed here: their intents stay behind, and nobody is at work on them."""
    _cleaned_at: float | None = None

    def __post_init__(self) -> None:
        if self.branch is not None:
            self.branch = normalise_branch(self.branch)
        if self.limits.reclaims_commits:
            self._retention()

    def run_once(self, *, dry_run: bool = False) -> MaintenanceReport:
        """One round: everything that is due and that the limits allow."""
        self._cleaned_at = None
        return self._round(dry_run=dry_run)

    def run_next(self) -> MaintenanceReport:
        """One of many rounds: what was found in order lately is not looked at once more."""
        return self._round(dry_run=False)

    def run_forever(self, stop: Event, every: timedelta, tell: Tell = lambda _: None) -> None:
        """Round after round until ``stop`` is set; each is told, and so is what ended one.

        The pause between two rounds grows while there is nothing to do.
        """
        idle = 0
        while not stop.is_set():
            try:
                report = self.run_next()
            except OmniGraphError as error:
                # A server that does not answer for a while, a disk that is full: it may pass.
                tell(error)
                idle += 1
            else:
                tell(report)
                idle = 0 if report.done or report.left else idle + 1
            stop.wait(next_pause(every.total_seconds(), idle))

    # -- one round -------------------------------------------------------------------

    def _round(self, *, dry_run: bool) -> MaintenanceReport:
        begun = time.monotonic()
        limit = self.limits.max_seconds
        ends = None if limit is None else begun + limit
        run = _Round(self, dry_run, ends, microseconds_now())
        steps = tuple(run.steps())
        return MaintenanceReport(steps, time.monotonic() - begun, dry_run)

    def _retention(self) -> Retention:
        limits = self.limits
        if not limits.reclaims_commits:
            return EVERY_COMMIT
        return Retention.of(limits.keep, limits.older_than, limits.grace)


@dataclass(slots=True)
class _Round:
    """One round of a maintainer."""

    by: Maintainer
    dry_run: bool
    ends: float | None
    now: int
    bytes_left: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.bytes_left = self.by.limits.max_bytes

    def steps(self) -> Iterator[MaintenanceStep]:
        """The work in its order: what others left behind, every branch, then all files."""
        yield from self._tried("recover", None, self._recover)
        for head in self._branches() if self.by.limits.optimizes else ():
            yield from self._tried("optimize", head.name, partial(self._look_at, head))
        if self.by.branch is None:
            yield from self._tried("cleanup", None, self._clean)

    def _tried(
        self, work: Work, branch: str | None, steps: Callable[[], Iterator[MaintenanceStep]]
    ) -> Iterator[MaintenanceStep]:
        """Some work; what goes wrong with it keeps nobody from the rest."""
        try:
            yield from steps()
        except LOST_RACES as error:
            yield MaintenanceStep(work, "skipped", error.message, branch)
        except OmniGraphError as error:
            yield MaintenanceStep(work, "failed", error.message, branch)

    @property
    def _is_late(self) -> bool:
        return self.ends is not None and time.monotonic() >= self.ends

    # -- dead writers ----------------------------------------------------------------

    def _recover(self) -> Iterator[MaintenanceStep]:
        by = self.by
        stored = stored_intents(ControlObjects(by.root))
        dead = [one for one in stored.intents if one.expires_at + microseconds(MARGIN) <= self.now]
        if not dead:
            return
        reason = f"{len(dead)} writers have died"
        if self.dry_run:
            yield MaintenanceStep("recover", "planned", reason)
            return
        found = sweep(by.root, by.manifest, now=self.now)
        outcome: Outcome = "done" if found.recoveries else "skipped"
        yield MaintenanceStep("recover", outcome, "; ".join([reason, *found.notices]))

    # -- branches --------------------------------------------------------------------

    def _branches(self) -> list[BranchHead]:
        """Those that have tables of their own, the most recently used first after main.

        What a branch has only inherited is the business of the branch that it is from: to write
        it again for everybody who shares it would take the space so many times.
        """
        heads = branch_heads(self.by.manifest)
        if self.by.branch is not None:
            named = [one for one in heads if one.name == self.by.branch]
            if not named:
                # It says what is missing.
                self.by.manifest.view(self.by.branch)
            return named
        own = [one for one in heads if one.has_own_tables or one.error is not None]
        return sorted(own, key=lambda one: (one.name != MAIN, -one.touched_at, one.name))

    def _look_at(self, head: BranchHead) -> Iterator[MaintenanceStep]:
        if head.error is not None:
            yield MaintenanceStep("optimize", "failed", head.error, head.name)
            return
        view = self.by.manifest.view(head.name)
        chosen = choose_tables(self._shapes(view), self.bytes_left)
        if chosen.later:
            yield self._step("left", "more than max_bytes allows", head.name, chosen.later)
        for portion in chosen.portions():
            yield self._work_on(view, portion)

    def _shapes(self, view: BranchState) -> Sequence[TableShape]:
        """The tables that the branch has written itself, and that nobody has found in order."""
        known = self.by._in_order  # noqa: SLF001 - its own
        intents = intents_of(catalog_of(view.state.schema))
        own = None if view.state.branch == MAIN else view.state.branch
        looked_at = [
            found
            for found in view.snapshot.tables.values()
            if found.branch == own
            and not is_untouched(found.pinned)
            and found.pin not in known.get(found.table.path, ())
        ]

        def look(found: SnapshotTable) -> TableShape:
            key = found.table.type_key
            return shape_of(key, found.pinned, intents.get(key))

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            shapes = list(pool.map(look, looked_at))
        for found, shape in zip(looked_at, shapes, strict=True):
            if not needs(shape):
                # Of a table only the newest few versions come again.
                pins = known.setdefault(found.table.path, set())
                if len(pins) >= CONCURRENCY:
                    pins.clear()
                pins.add(found.pin)
        return shapes

    def _work_on(self, view: BranchState, portion: Sequence[DueTable]) -> MaintenanceStep:
        branch, by = view.state.branch, self.by
        reason = "; ".join(f"{one.shape.type_key}: {one.reason}" for one in portion)
        if self.dry_run:
            self._spend(portion)
            return self._step("planned", reason, branch, portion)
        if self._is_late:
            return self._step("left", IN_TURN, branch, portion)
        if self._is_claimed(branch):
            return self._step("skipped", OTHERS, branch, portion)
        change = Optimize(tuple(one.shape.type_key for one in portion), actor=by.actor)
        try:
            report = optimize(change, Target(by.root, by.manifest, branch))
        except OmniGraphError:
            by._given_up.add(change.commit.id)  # noqa: SLF001 - its own
            raise
        if report.commit_id is None:
            told = {one.skipped for one in report.datasets if one.skipped is not None}
            reason = "; ".join(sorted(told)) or "somebody else has done it"
            return self._step("skipped", reason, branch, portion)
        self._spend(portion)
        return replace(self._step("done", reason, branch, portion), commit_id=report.commit_id)

    def _is_claimed(self, branch: str) -> bool:
        """Whether somebody has begun the same, not long ago: two would do the work of one.

        It is a courtesy and no lock: who does it all the same loses a race, or wins it.
        """
        own = None if branch == MAIN else branch
        since = microseconds_now() + microseconds(LIFETIME - CLAIMED)
        return any(
            one.branch == own
            and one.writer_kind in {"Optimize", "EnsureIndices"}
            and one.expires_at > since
            and one.lineage.graph_commit_id not in self.by._given_up  # noqa: SLF001 - its own
            for one in stored_intents(ControlObjects(self.by.root)).intents
        )

    def _spend(self, portion: Sequence[DueTable]) -> None:
        if self.bytes_left is not None:
            self.bytes_left -= sum(one.shape.live_bytes for one in portion)

    def _step(
        self, outcome: Outcome, reason: str, branch: str, tables: Sequence[DueTable]
    ) -> MaintenanceStep:
        keys = tuple(sorted(one.shape.type_key for one in tables))
        size = sum(one.shape.live_bytes for one in tables)
        return MaintenanceStep("optimize", outcome, reason, branch, keys, size)

    # -- files -----------------------------------------------------------------------

    def _clean(self) -> Iterator[MaintenanceStep]:
        by = self.by
        if self._is_late:
            yield MaintenanceStep("cleanup", "left", IN_TURN)
            return
        begun = time.monotonic()
        last = by._cleaned_at  # noqa: SLF001 - its own
        if last is not None and begun - last < CLEAN_EVERY.total_seconds():
            return
        retention = by._retention()  # noqa: SLF001 - its own
        collector = GarbageCollector.of(by.root)
        found = find_garbage(by.manifest, collector, retention, microseconds_now())
        by._cleaned_at = begun  # noqa: SLF001 - its own
        size, stored = found.bytes, collector.stored_bytes
        reason = f"{found.commits:,} commits and {size:,} of {stored:,} bytes"
        if not are_worth_reclaiming(found.commits, size, stored):
            if found.commits:
                yield MaintenanceStep("cleanup", "skipped", f"{reason} are not worth it")
            return
        if self.dry_run:
            yield MaintenanceStep("cleanup", "planned", reason, bytes=size)
            return
        report = cleanup(
            by.root,
            by.manifest,
            keep=retention.keep,
            older_than=retention.older_than,
            grace=retention.grace,
        )
        yield MaintenanceStep(
            "cleanup",
            "failed" if report.errors else "done",
            "; ".join([reason, *report.errors.values()]),
            bytes=report.bytes_removed,
        )
