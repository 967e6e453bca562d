"""The newest version of a table with a linear history, on a local disk, without listing it.

Owns the proof. Versions follow each other without a gap from the one that the newest collection
has left as the newest: a collection says so in a file of its own before it takes any version
away. So a version is the newest when the next one is not there and that file has not changed. A
directory lists in the time of all that is in it, which after years is all of history; object
stores list from the newest on, and need none of this.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.reachable_files import manifest_name

COLLECTED = "_collected.json"
HINT = "_versions/latest_version_hint.json"
STEPS = 64
"""So many versions are passed one by one: after that a listing is cheaper."""


class _Collected(msgspec.Struct, frozen=True):
    newest: int
    id: str


class _Hint(msgspec.Struct, frozen=True):
    version: int


def begin_collection(objects: ControlObjects, newest: int, directory: str = "") -> None:
    """Say that versions before this one, the newest there is, may go from a table.

    Has to be said before the first of them goes. ``directory`` is that of the table.
    """
    if objects.location.is_local:
        told = msgspec.json.encode(_Collected(newest, uuid.uuid4().hex))
        objects.replace(f"{directory}/{COLLECTED}" if directory else COLLECTED, told)


@dataclass(frozen=True, slots=True)
class LocalVersions:
    """The versions of one table, by the path of its directory."""

    path: str

    def mark(self) -> bytes:
        """What tells this time from that after another collection."""
        try:
            return Path(self.path, COLLECTED).read_bytes()
        except FileNotFoundError:
            return b""

    def has(self, version: int) -> bool:
        """Whether a version is there."""
        return os.path.exists(f"{self.path}/{manifest_name(version)}")  # noqa: PTH110 - on reads

    def after(self, version: int, mark: bytes) -> int | None:
        """The newest version, from one that was the newest when the mark was read.

        None when that cannot be told: there was a collection since, or it is too far away.
        """
        for _ in range(STEPS):
            if not self.has(version + 1):
                # Looked at afterwards: what was not there before has not been taken away.
                return version if self.mark() == mark else None
            version += 1
        return None

    def find(self) -> tuple[int, bytes] | None:
        """The newest version and the mark it was found under; None when that cannot be told."""
        mark = self.mark()
        try:
            first = msgspec.json.decode(mark, type=_Collected).newest if mark else 1
            hint = msgspec.json.decode(Path(self.path, HINT).read_bytes(), type=_Hint).version
        except (OSError, msgspec.MsgspecError):
            return None
        start = max(first, hint)
        newest = self.after(start, mark) if self.has(start) else None
        return None if newest is None else (newest, mark)
