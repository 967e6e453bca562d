"""An opened graph: where it is, who uses it, and how a branch or a commit becomes a snapshot.

Owns what every part of the façade starts from, and the refusal to change a graph that was
opened to be looked at.
"""

from __future__ import annotations

from omnigraph.errors import BadRequest
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot, snapshot_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.location import Location


class Opened:
    """One handle of one graph; ``actor`` is recorded unless a call names another."""

    def __init__(
        self,
        location: Location,
        manifest: Manifest,
        *,
        read_only: bool = False,
        actor: str | None = None,
    ) -> None:
        self.location = location
        self.manifest = manifest
        self.read_only = read_only
        self.actor = actor

    def snapshot(self, branch: str = MAIN, *, commit: str | None = None) -> Snapshot:
        """What a branch shows now, or what a commit showed."""
        if commit is not None:
            return snapshot_of(self.manifest.view_at(self.manifest.find_commit(commit)).state)
        return snapshot_of(self.manifest.view(normalise_branch(branch)).state)

    def require_writable(self) -> None:
        """Refuse a change through a graph that was opened to be looked at."""
        if self.read_only:
            raise BadRequest(f"{self.location} is open read-only: open it again to write")
