"""The health of a graph: its status, and what maintenance did for it.

Owns the names of these bodies. What a report lists stands in them as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.maintain.health import GraphStatus, HealthFinding, Level, TypeStatus
from omnigraph.maintain.steps import MaintenanceReport, MaintenanceStep
from omnigraph.wire.body import Body
from omnigraph.wire.graphs import CommitBody


class StatusBody(Body, frozen=True):
    """A graph, and one of its branches in detail."""

    uri: str
    level: Level
    findings: tuple[HealthFinding, ...]
    format: int
    branch: str
    head: CommitBody
    schema_hash: str
    rows: int
    types: tuple[TypeStatus, ...]
    branches: int
    stale_branches: tuple[str, ...]
    unreadable_branches: Mapping[str, str]
    commits_kept: int
    oldest_commit: CommitBody
    live_bytes: int
    stored_bytes: int
    reclaimable_bytes: int
    reclaimable_is_estimate: bool
    writes_at_work: int
    writes_dead: int

    @classmethod
    def of(cls, status: GraphStatus, uri: str) -> StatusBody:
        """The status of a graph."""
        return cls(
            uri,
            status.level,
            status.findings,
            status.format,
            status.branch,
            CommitBody.of(status.head),
            status.schema_hash,
            status.rows,
            status.types,
            status.branches,
            status.stale_branches,
            status.unreadable_branches,
            status.commits_kept,
            CommitBody.of(status.oldest_commit),
            status.live_bytes,
            status.stored_bytes,
            status.reclaimable_bytes,
            status.is_estimate,
            status.writes_at_work,
            status.writes_dead,
        )


class MaintenanceBody(Body, frozen=True):
    """What one round of maintenance did, and left."""

    uri: str
    dry_run: bool
    seconds: float
    steps: tuple[MaintenanceStep, ...]

    @classmethod
    def of(cls, report: MaintenanceReport, uri: str) -> MaintenanceBody:
        """The round on a graph."""
        return cls(uri, report.dry_run, round(report.seconds, 3), report.steps)
