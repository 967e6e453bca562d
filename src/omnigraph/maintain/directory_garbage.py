"""What goes from one directory of a graph, in the order in which it may go.

Owns the counts that a report is made of. Removes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.maintain.reports import DirectoryCleanup
from omnigraph.storage.objects.control_objects import StoredObject
from omnigraph.storage.tables.reachable_files import version_of

Removed = Callable[[int], None]


def untold(count: int) -> None:
    """For whoever does not ask how far it is."""


@dataclass(slots=True)
class DirectoryGarbage:
    """What goes from one directory, and what became of it."""

    type_key: str
    path: str
    versions: list[StoredObject] = field(default_factory=list)
    last_versions: list[StoredObject] = field(default_factory=list)
    """The newest versions of branches that are gone: they say so, and go after all others."""
    others: list[StoredObject] = field(default_factory=list)
    error: str | None = None
    removed: list[StoredObject] = field(default_factory=list)
    versions_removed: int = 0

    @property
    def count(self) -> int:
        """How many files go."""
        return len(self.versions) + len(self.last_versions) + len(self.others)

    def add(self, entry: StoredObject, name: str) -> None:
        """Take a file, which has this name within its table."""
        (self.others if version_of(name) is None else self.versions).append(entry)

    def report(self, *, planned: bool) -> DirectoryCleanup:
        """What was removed, or for a plan, what would be."""
        every = [*self.versions, *self.last_versions]
        gone = [*every, *self.others] if planned else self.removed
        versions = len(every) if planned else self.versions_removed
        size = sum(entry.size for entry in gone)
        return DirectoryCleanup(self.type_key, self.path, size, len(gone), versions, self.error)
