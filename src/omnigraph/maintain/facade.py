"""What keeps a graph in order: cleanup and indexes.

Owns the names of that part of the API; none of it changes what a query returns.
"""

from __future__ import annotations

from datetime import timedelta

from omnigraph.maintain.cleanup import GRACE, cleanup
from omnigraph.maintain.index_reports import IndexReport, IndexStatus
from omnigraph.maintain.index_status import index_status
from omnigraph.maintain.indexes import ensure_indices
from omnigraph.maintain.reports import CleanupReport
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.graph_handle import GraphHandle


class Maintained(GraphHandle):
    """The part of a graph that maintains it."""

    def cleanup(
        self,
        keep: int | None = None,
        older_than: timedelta | None = None,
        *,
        grace: timedelta = GRACE,
        dry_run: bool = False,
    ) -> CleanupReport:
        """Reclaim what no commit needs but those that are to be kept.

        A commit goes if it is beyond the newest ``keep`` of its branch and older than
        ``older_than``. What was the newest state less than ``grace`` ago stays,
        for whoever still reads it.
        """
        if not dry_run:
            self.require_writable()
        return cleanup(
            self.location,
            self.manifest,
            keep=keep,
            older_than=older_than,
            grace=grace,
            dry_run=dry_run,
        )

    def ensure_indices(self, branch: str = MAIN, *, actor: str | None = None) -> IndexReport:
        """Build the indexes that the schema asks for, and extend those that lag, as one commit.

        Changes no row, and keeps no writer waiting. Without anything to do there is no commit.
        """
        self.require_writable()
        return ensure_indices(
            self.location, self.manifest, normalise_branch(branch), actor=actor or self.actor
        )

    def index_status(self, branch: str = MAIN) -> IndexStatus:
        """Which indexes a branch has, how much they cover, and which are missing and why."""
        return index_status(self.snapshot(branch))
