"""An opened graph: where it is, who uses it, and how a branch or a commit becomes a snapshot.

Owns what every part of the façade starts from, and the refusal to change a graph that was
opened to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import BadRequest, StorageError
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location

ATTEMPTS = 8
T = TypeVar("T")


class GraphHandle:
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
            return self.manifest.view_at(self.manifest.find_commit(commit)).snapshot
        return self.manifest.view(normalise_branch(branch)).snapshot

    def read(
        self, work: Callable[[Snapshot], T], branch: str = MAIN, *, commit: str | None = None
    ) -> T:
        """Read what a branch shows now, or what a commit showed.

        A cleanup may take away what is being read, if nobody has given readers time: then a
        branch is read again as it is by then, and of a commit it is said that it is gone.
        """
        for _ in range(ATTEMPTS):
            shown = self.snapshot(branch, commit=commit)
            try:
                return work(shown)
            except StorageError as error:
                if error.kind != "not_found" or self._shows(shown, branch, commit):
                    raise
        return work(self.snapshot(branch, commit=commit))

    def _shows(self, shown: Snapshot, branch: str, commit: str | None) -> bool:
        """Whether a state that was read is what there is to read; told when it was reclaimed."""
        if commit is None:
            return self.snapshot(branch).commit_id == shown.commit_id
        self.manifest.require_retained(self.manifest.find_commit(commit))
        return True

    def require_writable(self) -> None:
        """Refuse a change through a graph that was opened to be looked at."""
        if self.read_only:
            raise BadRequest(f"{self.location} is open read-only: open it again to write")
