"""Which graph lies at a place: told by the id that its first schema was given, for good.

Owns the refusal of another graph, and that nothing kept of one is taken for the other. Costs
no request: every state that is read carries the id.
"""

from __future__ import annotations

from threading import Lock

from omnigraph.errors import GraphReplaced
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import handles

_lock = Lock()
# What this process has seen last at each place.
_seen: dict[str, str] = {}


class GraphIdentity:
    """The graph that a handle was opened on."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._known: str | None = None

    def require(self, found: str) -> None:
        """Refuse a state of another graph than the one that was read first."""
        self._notice(found)
        if self._known is None:
            self._known = found
        elif found != self._known:
            raise GraphReplaced(
                f"another graph lies at {self._root} since this one was opened: open it again",
                details={"location": str(self._root)},
            )

    def _notice(self, found: str) -> None:
        """Drop opened tables of the graph that was there before: the new ones look the same."""
        place = self._root.uri
        if _seen.get(place) == found:
            return
        with _lock:
            before = _seen.get(place)
            _seen[place] = found
        if before is not None:
            handles.forget_below(self._root)
