"""Cleanup: the tracing collector of a graph.

Owns the order of one cleanup. Must never remove what anybody can still read or publish, and
asks no clock whether it may:

1. List the files, after the intents of dead writers were revoked. What comes into being later
   is not considered.
2. Remember the intents that stand: their work stays, whatever another cleanup revokes
   meanwhile.
3. Begin a new epoch on every branch and say there which commits can still be read from then
   on. What they need is remembered, whatever another cleanup drops meanwhile.
4. Begin a new epoch of the names: a branch that was being made is made again, from a head
   that was read after step 3.
5. Begin an epoch once more on every branch that had a name at that moment, and remember what
   it retains, even if it has been deleted since. A merge refers to files of its source, and
   looks whether they stay after it has captured its target: only an epoch of the target that
   begins after all sources have dropped theirs parts those merges that know of it from those
   that lose. Where another cleanup has dropped something between the two epochs, nothing is
   known of what was published meanwhile: then it all begins again.
6. Remove what was listed and nothing reaches that was remembered or that a branch retains.

A write publishes its files in the epoch that it staged them in, or stages others; a long one
looks for its intent after it has captured the head. So whatever is published after step 3
consists of files that are younger than the list, that an intent covers, or that were
remembered. A claim to a run id is given up in the same way: it holds for the epoch that it was
made in. The protocol is explored in all its interleavings by tests/protocol.

Killed anywhere, a cleanup has removed only what nothing reaches, and a commit before its
tables (garbage.py): the next cleanup finds the rest.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Lock

from omnigraph.errors import BranchNotFound, Conflict, StorageError, StorageKind
from omnigraph.maintain.directory_garbage import DirectoryGarbage
from omnigraph.maintain.garbage import GarbageCollector
from omnigraph.maintain.reports import CleanupProgress, CleanupReport, CleanupStep
from omnigraph.maintain.roots import CONCURRENCY, Retention, Roots, find_live_work
from omnigraph.manifest.branches import BranchRefs, begin_epoch, begin_epoch_of_names
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.refs import Refs
from omnigraph.manifest.snapshot import MANIFEST_NAME, BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import (
    give_back_reserve,
    is_out_of_space,
    keep_reserve,
)
from omnigraph.storage.objects.location import Location
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.recovery.sweep import sweep

GRACE = timedelta(hours=1)
ATTEMPTS = 8

Told = Callable[[CleanupProgress], None]


def _untold(progress: CleanupProgress) -> None:
    """For whoever does not ask how far it is."""


def cleanup(
    root: Location,
    manifest: Manifest,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    grace: timedelta = GRACE,
    dry_run: bool = False,
    progress: Told | None = None,
    now: int | None = None,
) -> CleanupReport:
    """Remove what no retained commit needs; ``now`` is in microseconds since the epoch.

    A commit goes if it is beyond the newest ``keep`` of every branch and older than
    ``older_than``; at least one of them is needed. A dry run removes nothing and mends
    nothing. ``progress`` is told how far it is, from whichever thread.
    """
    told = progress or _untold
    retention = Retention.of(keep, older_than, grace)
    now = microseconds_now() if now is None else now
    missing: StorageError | None = None
    for _ in range(ATTEMPTS):
        try:
            return _clean(root, manifest, retention, now, told, dry_run=dry_run)
        except _Overtaken:
            missing = None
        except StorageError as error:
            if error.kind != "not_found":
                raise
            # What it was looking at may have been collected by another cleanup: a branch that was
            # deleted meanwhile, and the history that only this branch knew.
            missing = error
    raise missing or Conflict(
        f"other cleanups are at work on {root}: nothing was removed by this one",
        details={"attempts": ATTEMPTS},
    )


def find_garbage(
    manifest: Manifest, collector: GarbageCollector, retention: Retention, now: int
) -> FoundGarbage:
    """What a cleanup would remove, of files that were listed before; nothing is begun."""
    run = _Run(manifest, retention, now, Roots(manifest), _untold)
    run.pretend()
    collector.follow(run.roots)
    work = find_live_work(collector.objects, presumed_dead_at=now)
    found = collector.plan(run.roots, work, run.given_out)
    return FoundGarbage(found, len(run.readable - run.roots.kept.keys()))


EVERY_COMMIT = Retention(sys.maxsize, None)
"""Keeps all that can be read: what goes by it is nobody's."""


@dataclass(frozen=True, slots=True)
class FoundGarbage:
    """What would go: by directory, and how many commits."""

    directories: Sequence[DirectoryGarbage]
    commits: int

    @property
    def bytes(self) -> int:
        """How much that is."""
        return sum(one.report(planned=True).bytes_removed for one in self.directories)

    @property
    def errors(self) -> list[str]:
        """Why something cannot be told."""
        return [one.error for one in self.directories if one.error is not None]


class _Overtaken(Exception):
    """Another cleanup has dropped something that this one took for retained."""


def _clean(
    root: Location,
    manifest: Manifest,
    retention: Retention,
    now: int,
    told: Told,
    *,
    dry_run: bool,
) -> CleanupReport:
    notices = () if dry_run else sweep(root, manifest, now=now).notices
    collector = GarbageCollector.of(root)
    reach("cleanup_listed", root.uri)
    work = find_live_work(collector.objects, presumed_dead_at=now if dry_run else None)
    run = _Run(manifest, retention, now, Roots(manifest), told)
    run.pretend()
    collector.follow(run.roots)
    found = collector.plan(run.roots, work, run.given_out)
    is_needed = any(one.count for one in found) or run.readable != run.roots.kept.keys()
    if is_needed and not dry_run:
        try:
            run.fence()
        except StorageError as error:
            if not (is_out_of_space(error) and give_back_reserve(collector.objects)):
                raise
            run.fence()
        collector.add_own(run.marked)
        collector.follow(run.roots)
        reach("cleanup_traced", root.uri)
        found = collector.plan(run.roots, work, run.given_out)
        collector.remove(found, _Counted("files", sum(one.count for one in found), told).add)
        keep_reserve(collector.objects)
    reports = [one.report(planned=dry_run) for one in found]
    known = {*run.roots.pins, MANIFEST_NAME}
    return CleanupReport(
        tuple(row for row in reports if row.path in known or row.files_removed or row.error),
        len(run.readable - run.roots.kept.keys()),
        dry_run,
        (*notices, *collector.notices()),
    )


@dataclass(slots=True)
class _Run:
    """One cleanup: which commits could be read before it, and what stays."""

    manifest: Manifest
    retention: Retention
    now: int
    roots: Roots
    told: Told
    readable: set[str] = field(default_factory=set)
    marked: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The files that this cleanup has published itself, by the id of the branch."""
    given_out: int = 0
    """Identities of schemas below this are this graph's."""
    _known: dict[str, BranchState] = field(default_factory=dict)
    """The newest state seen of every branch, of which there may be more than a handle keeps."""

    def pretend(self) -> None:
        """Find what would stay, and begin nothing: without anything to remove, that is all."""
        names = self.manifest.refs.read()
        self.given_out = names.next_identity
        views = self._views(names)
        would: list[BranchState] = []
        for view in views:
            head = replace(view.state.head, oldest_commit_id=self._oldest(view))
            would.append(replace(view, state=replace(view.state, head=head)))
        self.roots.look(would)
        self.roots.look_at_bases(views)

    def fence(self) -> None:
        """Begin the epochs in their order, and remember what every branch retains."""
        names = self.manifest.refs.read()
        begun = self._begin(self._live(names), drops=True)
        reach("cleanup_named", self.manifest.location.uri)
        named = begin_epoch_of_names(self.manifest)
        if set(names.names) or named.version != names.version + 1:
            again = [MAIN, *(ref.id for ref in named.names.values())]
            known = {view.branch_id: view.state.head.oldest_commit_id for view in begun}
            for view in self._begin(again, drops=False):
                _require_undropped(view, known)
        views = self._views(self.manifest.refs.read())
        self.roots.look(views)
        self.roots.look_at_bases(views)

    def _begin(self, ids: Sequence[str], *, drops: bool) -> list[BranchState]:
        counted = _Counted("epochs", len(ids), self.told)

        def begin(branch_id: str) -> tuple[BranchState, set[str]]:
            view = self._begin_at(branch_id, drops=drops)
            made_by = view.log.transaction_file()
            counted.add(1)
            return view, {*view.log.files(), *([] if made_by is None else [made_by])}

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            done = list(pool.map(begin, ids))
        views = [view for view, _ in done]
        self._known |= {view.branch_id: view for view in views}
        self.roots.look(views, is_newest=False)
        for view, files in done:
            self.marked[view.branch_id] |= files
        return views

    def _begin_at(self, branch_id: str, *, drops: bool) -> BranchState:
        reach("cleanup_fencing", branch_id)
        oldest = self._oldest if drops else None
        try:
            return begin_epoch(self.manifest, branch_id, oldest, self._known.get(branch_id))
        except BranchNotFound as error:
            # Deleted and collected since its name was read.
            raise _Overtaken from error

    def _oldest(self, view: BranchState) -> str:
        """The oldest commit that stays of a branch, the newest state of which is given."""
        line = self.roots.line(view)
        self.readable |= {commit.id for commit in line}
        return self.retention.kept(line, self.now)[-1].id

    def _live(self, names: Refs) -> list[str]:
        """The branches that are named; a deletion that was cut short is finished."""
        found = [MAIN]
        ordered = sorted(names.names.items())
        unknown = [(name, ref.id) for name, ref in ordered if ref.id not in self._known]
        self._look_at(unknown)
        for name, ref in ordered:
            view = self._known.get(ref.id)
            if view is not None and view.state.head.ended:
                BranchRefs(self.manifest).end(name, ref.id)
            elif view is not None:
                found.append(ref.id)
        return found

    def _views(self, names: Refs) -> list[BranchState]:
        """The newest states of all branches that live."""
        named = [(MAIN, MAIN), *((name, ref.id) for name, ref in names.names.items())]
        return [view for view in self._look_at(named) if not view.state.head.ended]

    def _look_at(self, named: Sequence[tuple[str, str]]) -> list[BranchState]:
        counted = _Counted("branches", len(named), self.told)

        def look(one: tuple[str, str]) -> BranchState | None:
            view = self._view(*one)
            counted.add(1)
            return view

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            found = [view for view in pool.map(look, named) if view is not None]
        self._known |= {view.branch_id: view for view in found}
        return found

    def _view(self, name: str, branch_id: str) -> BranchState | None:
        """The newest state of a branch; None when somebody else has deleted it for good."""
        try:
            return self.manifest.view_by_id(branch_id, self._known.get(branch_id))
        except BranchNotFound as error:
            ref = self.manifest.refs.read().names.get(name)
            if ref is None or ref.id != branch_id:
                return None
            raise _unreadable(name, error.message, "permanent") from error
        except StorageError as error:
            raise _unreadable(name, error.message, error.kind) from error


@dataclass(slots=True)
class _Counted:
    """Counts the work of one step, whichever thread does it, and tells of it."""

    step: CleanupStep
    total: int
    told: Told
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            done = self._done
        self.told(CleanupProgress(self.step, done, self.total))


def _unreadable(name: str, reason: str, kind: StorageKind) -> StorageError:
    return StorageError(
        f"nothing was removed, because branch {name} cannot be read and so nobody knows what it "
        f"needs: {reason}",
        kind=kind,
    )


def _require_undropped(view: BranchState, known: Mapping[str, str | None]) -> None:
    """Refuse to go on where another cleanup has dropped commits since this one looked."""
    origin = view.state.head.origin
    first = None if origin is None else origin.oldest_commit_id
    if view.state.head.oldest_commit_id != known.get(view.branch_id, first):
        raise _Overtaken
