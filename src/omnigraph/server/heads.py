"""Heads of branches, for those who wait until one moves.

Owns that however many wait for a branch, storage is asked for its head by one of them: what was
found a moment ago is told to all. Who may know of a branch is for whoever asks here to say.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from omnigraph.server.served import ServedGraph
from omnigraph.server.workers import Workers

FRESH_SECONDS = 0.1
"""So long what was found is told again."""
MOST_KEPT = 256
Key = tuple[str, str]


@dataclass(slots=True)
class _Look:
    begun: float
    found: asyncio.Future[str]


@dataclass(slots=True)
class Heads:
    """The heads of one process."""

    workers: Workers
    _looks: dict[Key, _Look] = field(default_factory=dict)

    async def now(self, graph: ServedGraph, branch: str) -> str:
        """The newest commit of a branch; raises if there is no such branch."""
        clock, key = asyncio.get_running_loop().time, (graph.id, branch)
        look = self._looks.get(key)
        if look is None or (look.found.done() and clock() - look.begun > FRESH_SECONDS):
            self._make_room()
            found = self.workers.glance(lambda: graph.graph.snapshot(branch).commit_id)
            look = self._looks[key] = _Look(clock(), found)
        return await asyncio.shield(look.found)

    def _make_room(self) -> None:
        if len(self._looks) >= MOST_KEPT:
            self._looks = {key: look for key, look in self._looks.items() if not look.found.done()}
