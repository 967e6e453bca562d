"""An opened graph as the parts of the façade see it: where it is and who uses it.

Owns the refusal to change a graph that was opened to be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import BadRequest
from omnigraph.manifest.store import Manifest
from omnigraph.storage.location import Location


@dataclass(frozen=True, slots=True)
class Opened:
    """One handle of one graph; ``actor`` is recorded unless a call names another."""

    location: Location
    manifest: Manifest
    read_only: bool = False
    actor: str | None = None

    def require_writable(self) -> None:
        """Refuse a change through a graph that was opened to be looked at."""
        if self.read_only:
            raise BadRequest(f"{self.location} is open read-only: open it again to write")
