"""The part of a session that looks after a graph.

Owns the public methods that show its health, keep it in order and mend it. Thin: the packages
below know how. Must never change what a query returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from omnigraph.graph.access import Access, Arguments, action
from omnigraph.graph.tables import Tables
from omnigraph.maintain.cleanup import GRACE, cleanup
from omnigraph.maintain.reports import CleanupProgress, CleanupReport, IndexReport, OptimizeReport
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.maintain.health import GraphStatus
    from omnigraph.maintain.repair_report import RepairReport
    from omnigraph.maintain.steps import MaintenanceReport
    from omnigraph.maintain.verify.report import VerifyReport
    from omnigraph.pipeline.spark.settings import SparkSettings


def _one_branch(_: Access, given: Arguments) -> str | None:
    """The branch of a call that may be about all of them."""
    return None if given["branch"] is None else normalise_branch(given["branch"])


class Upkeep(Tables):
    """What a session does to keep a graph in order."""

    @action("read", branch="branch")
    def status(self, branch: str = MAIN) -> GraphStatus:
        """The health of the graph, with the types of one branch: what there is, and what is due.

        >>> health = graph.status()
        >>> health.level, health.rows
        ('ok', 7)
        """
        from omnigraph.maintain.status import graph_status

        manifest = self._access.handle.manifest
        return graph_status(self.location, manifest, normalise_branch(branch))

    @action("export", branch=_one_branch)
    def verify(self, *, deep: bool = False, branch: str | None = None) -> VerifyReport:
        """Look at everything that is published and kept, and tell what is damaged.

        ``deep`` reads every data file against its checksum, and asks indexes for every value.
        Nothing is written. A graph too damaged to be opened is looked at by `omnigraph.verify`.

        >>> graph.verify(deep=True).is_sound
        True
        """
        from omnigraph.maintain.verify.operation import verify

        return verify(self.location, deep=deep, branch=branch)

    @action("admin", branch=_one_branch, dry_run_looks=True)
    def maintain(
        self,
        branch: str | None = None,
        *,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta = GRACE,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MaintenanceReport:
        """Do what is worth doing to keep the graph small and fast, on one branch or on all.

        Small files are merged, indexes built and extended, what nobody needs is removed: no
        query returns anything else after it, and no writer waits. Commits are only reclaimed if
        ``keep`` or ``older_than`` says which may go, as for `cleanup`. After ``max_seconds``
        nothing new is begun; no more than ``max_bytes`` are written again.

        >>> graph.maintain(max_seconds=60).failed
        ()
        """
        from omnigraph.maintain.reconcile import Maintainer
        from omnigraph.maintain.steps import MaintenanceLimits

        limits = MaintenanceLimits(max_seconds, max_bytes, keep, older_than, grace)
        maintainer = Maintainer(
            self.location, self._access.handle.manifest, limits, branch, actor or self.actor
        )
        return maintainer.run_once(dry_run=dry_run)

    @action("admin", dry_run_looks=True)
    def cleanup(
        self,
        keep: int | None = None,
        older_than: timedelta | None = None,
        *,
        grace: timedelta = GRACE,
        dry_run: bool = False,
        progress: Callable[[CleanupProgress], None] | None = None,
    ) -> CleanupReport:
        """Reclaim what no commit needs but those that are to be kept.

        A commit goes if it is beyond the newest ``keep`` of its branch and older than
        ``older_than``. What was the newest state less than ``grace`` ago stays,
        for whoever still reads it. ``progress`` is called as it goes on, from any thread.

        >>> graph.cleanup(keep=1, dry_run=True).commits_reclaimed
        0
        """
        return cleanup(
            self.location,
            self._access.handle.manifest,
            keep=keep,
            older_than=older_than,
            grace=grace,
            dry_run=dry_run,
            progress=progress,
        )

    @action("admin", dry_run_looks=True)
    def repair(
        self, *, confirm: bool = False, force: bool = False, keep_as: str | None = None
    ) -> RepairReport:
        """Make again what is derived, and tell what is lost; without ``confirm`` only tell.

        ``force`` makes all indexes again. ``keep_as`` names a branch that is made of the newest
        whole commit of a branch that has lost something.

        >>> graph.repair().is_whole
        True
        """
        from omnigraph.maintain.repair import repair

        return repair(self.location, confirm=confirm, force=force, keep_as=keep_as)

    @action("change", branch="branch")
    def ensure_indices(self, branch: str = MAIN, *, actor: str | None = None) -> IndexReport:
        """Build the indexes that the schema asks for, and extend those that lag, as one commit.

        Changes no row, and keeps no writer waiting. Without anything to do there is no commit.

        >>> {change.action for change in graph.ensure_indices().changes}
        {'built'}
        """
        from omnigraph.maintain.indexes import ensure_indices

        manifest = self._access.handle.manifest
        return ensure_indices(
            self.location, manifest, normalise_branch(branch), actor=actor or self.actor
        )

    @action("admin", branch="branch", dry_run_looks=True)
    def optimize(
        self,
        branch: str = MAIN,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        cluster: bool = False,  # noqa: FBT001, FBT002 - as the API says it
        dry_run: bool = False,  # noqa: FBT001, FBT002 - as the API says it
        *,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> OptimizeReport:
        """Put the rows of a branch into few large files, and make its indexes fit, as one commit.

        Deleted rows and dropped properties leave the files of the newest commit; indexes are
        built, extended, or dropped where the schema asks for them no longer. ``types`` limits it
        to some. With ``cluster`` nodes are put in the order of their ids, edges in that of their
        ends. Changes no row, and keeps no writer waiting. Without anything to do there is no
        commit.

        >>> graph.optimize(dry_run=True).fragments_removed
        0
        """
        from omnigraph.maintain.optimize import Optimize, optimize
        from omnigraph.pipeline.load.entry import SparkTarget
        from omnigraph.pipeline.maintenance import maintenance_workers

        target = self._access.target(branch)
        choice = SparkTarget.of(spark, progress=progress)
        with maintenance_workers(self.location, engine, choice) as workers:
            change = Optimize(
                None if types is None else tuple(types),
                cluster,
                workers,
                actor or self.actor,
                dry_run,
            )
            return optimize(change, target)
