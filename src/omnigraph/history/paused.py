"""Paused streams: the work that a page left in the middle, kept for the next one.

Owns a few of them per handle. Only saves time: a page that finds nothing here is computed
from the beginning of its commit and is the same.
"""

from __future__ import annotations

from threading import Lock

from omnigraph.history.position import ChangePosition
from omnigraph.history.stream import ChangeStream

KEPT = 4

StreamKey = tuple[str, str, ChangePosition | None]
"""A commit, the digest of a selection, and how far its changes were delivered."""


class PausedStreams:
    """Streams by where they stand; whoever takes one has it alone."""

    def __init__(self) -> None:
        self._streams: dict[StreamKey, ChangeStream] = {}
        self._lock = Lock()

    def keep(self, place: StreamKey, stream: ChangeStream) -> None:
        """Keep a stream; of too many the oldest goes."""
        with self._lock:
            self._streams.pop(place, None)
            self._streams[place] = stream
            while len(self._streams) > KEPT:
                del self._streams[next(iter(self._streams))]

    def take(self, place: StreamKey) -> ChangeStream | None:
        """The stream that stands there, if there is one."""
        with self._lock:
            return self._streams.pop(place, None)
