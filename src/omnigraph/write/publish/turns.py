"""Turns: the writers of a branch go one after the other, since a lost race wastes work.

Owns who waits for whom: the threads of a process for each other, the processes of a machine for
a lock on their disk, and at an object store, which has no locks, a writer for those that have
lost (writer_queue.py). All of it is a courtesy and no part of the protocol: nobody is waited for
who stands still, and who goes out of turn only loses a race.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Self
from weakref import WeakValueDictionary

from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import QUEUE
from omnigraph.storage.objects.turn_lock import TurnLock
from omnigraph.write.publish.writer_queue import WriterTicket

PATIENCE = 1.0
"""For so many seconds one who has the turn and does not end it is waited for."""
LOCK = "lock"
"""The file in the queue of a branch that is locked."""


class _Place:
    """Where the threads of this process take turns at one branch."""

    __slots__ = ("__weakref__", "lock", "owner", "turns")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner: int | None = None
        self.turns = 0


_places: WeakValueDictionary[tuple[str, str], _Place] = WeakValueDictionary()
_taking = threading.Lock()


@dataclass(slots=True)
class Turn:
    """The turn of one write at one branch after the other."""

    manifest: Manifest
    ticket: WriterTicket = field(init=False)
    _branch_id: str | None = field(default=None, init=False)
    _place: _Place | None = field(default=None, init=False)
    _lock: TurnLock | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.ticket = WriterTicket(self.manifest.objects)

    def take(self, branch_id: str) -> bool:
        """Wait for the turn at a branch, and have it until it is released.

        Returns whether the newest state that the manifest knows is likely the newest there is.
        """
        if self._branch_id == branch_id:
            return True
        self.release()
        self._branch_id = branch_id
        location = self.manifest.location
        place = _place((location.uri, branch_id))
        if place.owner == threading.get_ident():
            return False  # it is written by what another write has called
        self._place = _taken(place, (location.uri, branch_id))
        if not location.is_local:
            self.ticket.join(branch_id)
            return True
        path = f"{location.path}/{branch_id}/{QUEUE}/{LOCK}"
        self._lock = TurnLock(path, self.manifest.holder)
        return self._lock.take(PATIENCE)

    def give_way(self, *, is_awaited: bool) -> bool:
        """Let others go first who have lost before, and say whether there were any.

        ``is_awaited`` says that there may be some.
        """
        return self._lock is None and is_awaited and self.ticket.give_way()

    def lost(self, seconds: float) -> None:
        """Ask others to go second next time: what was tried in so many seconds is tried again."""
        if not self.manifest.location.is_local:
            self.ticket.claim(seconds)

    def keep(self, seconds: float) -> None:
        """Go on with the turn, to do once more what took so long; nobody waits for a long write."""
        self.lost(seconds)
        if 2 * seconds > PATIENCE:
            self.release()

    def release(self) -> None:
        """Let the next one have it."""
        lock, self._lock = self._lock, None
        place, self._place = self._place, None
        self._branch_id = None
        if lock is not None:
            lock.release()
        if place is not None:
            place.owner = None
            place.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()
        self.ticket.__exit__(*error)


def _place(key: tuple[str, str]) -> _Place:
    with _taking:
        found = _places.get(key)
        if found is None:
            found = _places[key] = _Place()
        return found


def _taken(place: _Place, key: tuple[str, str]) -> _Place:
    """The place when its turn has come, or another that has taken its place."""
    while True:
        seen = place.turns
        if place.lock.acquire(timeout=PATIENCE):
            place.owner, place.turns = threading.get_ident(), place.turns + 1
            return place
        with _taking:
            if place.turns == seen and _places.get(key) is place:
                _places[key] = _Place()
        place = _place(key)
