"""Shelter: what is not to be touched because somebody may be at work with it.

Owns the horizon, the moment from which on everything stays. Only looks at intents;
finishing those of dead writers is the sweep's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ulid import ULID

from omnigraph.errors import StorageError, UnsupportedFormat
from omnigraph.storage.objects import ControlObjects, StoredObject
from omnigraph.write.intents import (
    DIRECTORY,
    LIFETIME,
    STAGING,
    Intent,
    microseconds,
    parse_intent,
)
from omnigraph.write.sweep import MARGIN


@dataclass(frozen=True, slots=True)
class Shelter:
    """What stays whoever refers to it.

    ``horizon`` is in microseconds since the epoch: files that are younger stay, and so
    does every state of a branch that was its newest at some time after it.
    """

    horizon: int
    operations: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    """By name, relative to the graph root."""

    def covers(self, entry: StoredObject) -> bool:
        """Whether a file, named relative to the graph root, has to stay."""
        if entry.modified > self.horizon or entry.name in self.files:
            return True
        parts = entry.name.split("/")
        return parts[0] == STAGING and len(parts) > 1 and parts[1] in self.operations


def find_shelter(objects: ControlObjects, now: int, grace: timedelta) -> Shelter:
    """The shelter of a graph; ``objects`` are those of its root.

    A long write stages files before it names them, and what it reads is the state from
    before it began: so the grace age counts back from the start of the oldest one.
    """
    oldest = now
    operations: set[str] = set()
    files: set[str] = set()
    for entry in objects.entries(DIRECTORY):
        data = objects.read(entry.name)
        if data is None:
            continue  # its writer has removed it since the listing
        try:
            intent = parse_intent(entry.name, data)
        except (StorageError, UnsupportedFormat):
            started = _start_of_unknown(entry, now)
        else:
            started = _start(intent, now)
            if started is not None:
                files.update(intent.files)
        if started is not None:
            oldest = min(oldest, started - microseconds(MARGIN))
            operations.add(_operation(entry.name))
    return Shelter(oldest - microseconds(grace), frozenset(operations), frozenset(files))


def _start(intent: Intent, now: int) -> int | None:
    """When a write began that may still be going on: the same rule as the sweep's."""
    if now >= intent.expires_at + microseconds(MARGIN):
        return None
    return int(intent.started_at)


def _start_of_unknown(entry: StoredObject, now: int) -> int | None:
    """The same for a file that this program cannot read: its writer renews it as all do."""
    if now >= entry.modified + microseconds(LIFETIME + MARGIN):
        return None
    try:
        return int(ULID.from_str(_operation(entry.name)).timestamp * 1_000_000)
    except ValueError:
        return None  # no intent at all


def _operation(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".json")
