"""Cleanup: the tracing collector of a graph.

Owns the way through one cleanup: finish dead writers' stories, find the roots, follow
them, remove the rest. Must never remove what a root reaches.

Roots are, on every live branch: its head; the commits that are to be kept, inherited
ones included; the state it was forked from; the merge base with every other live
branch; and every state that was its newest at some time after the horizon. The horizon
lies a grace age before now, or before the start of the oldest long write that is alive
(shelter.py). Nothing that is younger than the horizon goes, whoever refers to it.

Why that is safe beside writers and readers. Whoever works on a graph began with the
newest state of a branch. If it began after the horizon, that state is a root. What it
writes is younger than the horizon, so the commit it publishes refers to roots and to
young files only. A long write has an intent, and the horizon lies before that; other
work has to be done within the grace age. The compare-and-swap of a publish needs the
version that follows the one it was built on: that one is younger than the horizon, too,
and a handle that is not young asks whether it has been overtaken (storage/headlog.py).
The heads are looked at again after everything was followed, right before the first file
goes, in case something was published meanwhile.

Killed anywhere, a cleanup has removed only what no root reaches, and a commit before
its tables (collection.py): the next cleanup finds the rest.
"""

from __future__ import annotations

from datetime import timedelta

from omnigraph.errors import BadRequest
from omnigraph.maintain.collection import Collection
from omnigraph.maintain.reports import CleanupReport
from omnigraph.maintain.retention import NONE, Retention
from omnigraph.maintain.roots import Roots, version_of_commit
from omnigraph.maintain.shelter import find_shelter
from omnigraph.manifest.store import MANIFEST_NAME, Manifest
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects
from omnigraph.write.failpoints import reach
from omnigraph.write.intents import microseconds_now
from omnigraph.write.sweep import sweep

GRACE = timedelta(hours=1)


def cleanup(
    root: Location,
    manifest: Manifest,
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    grace: timedelta = GRACE,
    dry_run: bool = False,
    now: int | None = None,
) -> CleanupReport:
    """Remove what no retained commit needs; ``now`` is in microseconds since the epoch.

    A commit goes if it is beyond the newest ``keep`` of every branch and older than
    ``older_than``; at least one of them is needed. A dry run removes nothing and mends
    nothing.
    """
    retention = Retention.of(keep, older_than)
    if grace < NONE:
        raise BadRequest("the grace age cannot be negative: 0 takes even the youngest files")
    # Taken before anything is read: what comes into being later is younger, and stays.
    now = microseconds_now() if now is None else now
    notices = () if dry_run else sweep(root, manifest, now=now).notices
    shelter = find_shelter(ControlObjects(root), now, grace)
    collection = Collection.of(root, shelter)
    roots = Roots(manifest, retention, shelter, now)
    roots.look()
    collection.follow(roots)
    reach("cleanup_traced", root.uri)
    roots.look()
    collection.follow(roots)
    hauls = collection.plan(roots)
    gone = collection.reclaimed(roots)
    if not dry_run:
        collection.remove(hauls)
    reports = [haul.report(planned=dry_run) for haul in hauls]
    known = {*roots.pins, MANIFEST_NAME}
    return CleanupReport(
        tuple(row for row in reports if row.path in known or row.files_removed or row.error),
        sum(version_of_commit(commit) in gone for commit in roots.commits.values()),
        dry_run,
        notices,
    )
