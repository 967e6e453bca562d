"""A handle of one graph: where it is, its manifest, and whether it may be changed.

Owns the refusal to change a graph that was opened to be looked at. Knows nothing of who uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import BadRequest
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location


@dataclass(frozen=True, slots=True)
class GraphHandle:
    """One handle of one graph, shared by all its sessions."""

    location: Location
    manifest: Manifest
    read_only: bool = False

    def require_writable(self) -> None:
        """Refuse a change through a graph that was opened to be looked at."""
        if self.read_only:
            raise BadRequest(f"{self.location} is open read-only: open it again to write")
