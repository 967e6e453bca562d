"""Tickets: letting a writer through that keeps losing the race for a branch of an object store.

Owns the tickets in the queue of a branch, beside its versions. Of two writers that publish
in a tight loop, the one with the shorter way to the next publish would win every time: a
writer that has lost takes a ticket, and the others let it go first, for no longer than it
says it needs.
Tickets are a courtesy and no part of the protocol: who ignores them, or dies with one,
breaks nothing and delays nobody for long.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from time import time_ns
from typing import Self

import msgspec
from ulid import ULID

from omnigraph.errors import StorageError
from omnigraph.storage.logs.head_log import QUEUE
from omnigraph.storage.objects.control_objects import ControlObjects

SHORTEST, LONGEST = 0.05, 1.0
"""How long others wait for the holder of a ticket, in seconds."""
FORGOTTEN = 10.0
"""After so many seconds a ticket is of a writer that died."""
POLL, LONGEST_POLL = 0.01, 0.1
"""After so many seconds it is looked again whether they are through: seldom, if it takes long."""


class _Ticket(msgspec.Struct, frozen=True):
    taken_at: float
    window: float


@dataclass(slots=True)
class WriterTicket:
    """The turn of one write; ``objects`` are those of the manifest."""

    objects: ControlObjects
    branch_id: str | None = None
    _name: str | None = field(default=None, init=False)
    _ticket: _Ticket | None = field(default=None, init=False)

    def join(self, branch_id: str) -> None:
        """Wait at this branch from now on, and at no other."""
        if self.branch_id != branch_id:
            self._leave()
            self.branch_id = branch_id

    @property
    def _directory(self) -> str:
        return f"{self.branch_id}/{QUEUE}"

    def give_way(self) -> bool:
        """Wait while somebody else's turn has come, and say so: one request when nobody waits."""
        started = time.monotonic()
        waited, pause = False, POLL
        while self._is_due_to_another() and time.monotonic() - started < LONGEST:
            waited = True
            self._renew()
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_POLL)
        return waited

    def claim(self, window: float) -> None:
        """Ask the others to wait, for about as long as the next attempt will take."""
        if self.branch_id is None:
            return
        name = self._name or f"{self._directory}/{ULID()}.json"
        ticket = _Ticket(_now(), min(max(2 * window, SHORTEST), LONGEST))
        try:
            self.objects.replace(name, msgspec.json.encode(ticket))
        except StorageError:
            return  # only a courtesy: without it, the race goes on as it is
        self._name, self._ticket = name, ticket

    def _renew(self) -> None:
        """Keep the place in the queue while others before this write are at it."""
        if self._ticket is not None and _now() - self._ticket.taken_at > self._ticket.window / 2:
            self.claim(self._ticket.window / 2)

    def _is_due_to_another(self) -> bool:
        """Whether a ticket before this write's own still counts.

        A ticket counts for its window: its holder renews it with every attempt, and one
        that is not renewed any more keeps nobody.
        """
        for name in self.objects.list(self._directory):
            if name == self._name:
                return False
            ticket = self._read(name)
            if ticket is None:
                continue
            age = _now() - ticket.taken_at
            if 0 <= age <= ticket.window:
                return True
            if age > FORGOTTEN:
                self.objects.delete(name)
        return False

    def _read(self, name: str) -> _Ticket | None:
        data = self.objects.read(name)
        try:
            return None if data is None else msgspec.json.decode(data, type=_Ticket)
        except msgspec.MsgspecError:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        name, self._name, self._ticket = self._name, None, None
        if name is not None:
            try:
                self.objects.delete(name)
            except StorageError:
                return  # it expires by itself


def _now() -> float:
    return time_ns() / 1e9
