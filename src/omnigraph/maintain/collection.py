"""Collection: what goes from each directory of a graph, and its removal.

Owns the order: versions of the manifest first, then versions of tables, then what they
were made of. So whatever a collection that is cut short has left, a version that can be
found is whole. Decides by what the roots reach, never by what a version says of itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from omnigraph.errors import StorageError
from omnigraph.maintain.reports import DirectoryCleanup
from omnigraph.maintain.roots import CONCURRENCY, Roots, Version, owner_of
from omnigraph.maintain.shelter import Shelter
from omnigraph.manifest.store import MANIFEST_NAME
from omnigraph.storage.files import reached_files, version_of
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects, StoredObject
from omnigraph.storage.session import handles
from omnigraph.storage.table import TablePin
from omnigraph.write.failpoints import reach

TABLES = ("nodes", "edges")
SCRATCH = ("__turns", "__staging", "__probe")
"""Where files lie that nobody needs when their writer is gone."""
LAYOUT = frozenset({"data", "_deletions", "_indices", "_transactions", "_versions"})
"""The directories that a table is made of; others hold nothing that a write of ours makes."""
SHARE = 16
"""So many versions of a table are followed by one thread at a time."""
BATCH = 1_000
"""So many files are removed between two passings of the failpoint."""


@dataclass(slots=True)
class Haul:
    """What goes from one directory, and what became of it."""

    type_key: str
    path: str
    versions: list[StoredObject] = field(default_factory=list)
    others: list[StoredObject] = field(default_factory=list)
    error: str | None = None
    removed: list[StoredObject] = field(default_factory=list)
    versions_removed: int = 0

    def report(self, *, planned: bool) -> DirectoryCleanup:
        """What was removed, or for a plan, what would be."""
        gone = [*self.versions, *self.others] if planned else self.removed
        versions = len(self.versions) if planned else self.versions_removed
        size = sum(entry.size for entry in gone)
        return DirectoryCleanup(self.type_key, self.path, size, len(gone), versions, self.error)


@dataclass(slots=True)
class Collection:
    """The files of a graph as they were before anybody looked for roots.

    So whatever comes into being meanwhile is not even considered.
    """

    root: Location
    shelter: Shelter
    objects: ControlObjects
    manifest_files: Sequence[StoredObject]
    tables: Mapping[str, Sequence[StoredObject]]
    scratch: Mapping[str, Sequence[StoredObject]]
    _reached: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _followed: defaultdict[str, set[TablePin]] = field(default_factory=lambda: defaultdict(set))
    _errors: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, root: Location, shelter: Shelter) -> Collection:
        """List everything."""
        objects = ControlObjects(root)
        tables: defaultdict[str, list[StoredObject]] = defaultdict(list)
        for place in TABLES:
            for entry in objects.entries(place):
                parts = entry.name.split("/")
                # A file right beside the tables belongs to none.
                if len(parts) > 2:
                    tables["/".join(parts[:2])].append(entry)
        return cls(
            root,
            shelter,
            objects,
            objects.entries(MANIFEST_NAME),
            dict(tables),
            {place: objects.entries(place) for place in SCRATCH},
        )

    # -- planning --------------------------------------------------------------------

    def follow(self, roots: Roots) -> None:
        """Find the files that the roots reach in every table; only new pins cost anything."""
        work: list[tuple[str, list[TablePin], list[str]]] = []
        for path, pins in sorted(roots.pins.items()):
            stored = [_within(path, entry) for entry in self.tables.get(path, ())]
            fresh = sorted(pins - self._followed[path], key=lambda pin: pin.version)
            work += [
                (path, fresh[start : start + SHARE], stored)
                for start in range(0, len(fresh), SHARE)
            ]
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(lambda share: self._follow(*share), work))

    def _follow(self, path: str, pins: list[TablePin], stored: list[str]) -> None:
        try:
            reached = reached_files(self.root.join(path), pins, stored)
        except StorageError as error:
            self._errors[path] = error.message
            return
        with self._lock:
            self._reached[path] |= reached
            self._followed[path] |= set(pins)

    def plan(self, roots: Roots) -> list[Haul]:
        """What goes, directory by directory: the tables, the manifest, the rest."""
        names = roots.names
        pins = roots.pins
        tables = [
            self._table(path, names.get(path, path), is_alive=path in pins)
            for path in sorted(
                {*self.tables, *pins}, key=lambda path: (names.get(path, path), path)
            )
        ]
        hauls = [*tables, self._manifest(roots)]
        for place, entries in self.scratch.items():
            others = [entry for entry in entries if not self.shelter.covers(entry)]
            hauls.append(Haul(place, place, others=others))
        return hauls

    def _table(self, path: str, type_key: str, *, is_alive: bool) -> Haul:
        haul = Haul(type_key, path, error=self._errors.get(path))
        if haul.error is not None:
            return haul
        for entry in self.tables.get(path, ()):
            name = _within(path, entry)
            if self.shelter.covers(entry) or name in self._reached[path]:
                continue
            if is_alive and (name.split("/")[0] not in LAYOUT or _is_hint(name)):
                continue
            (haul.others if version_of(name) is None else haul.versions).append(entry)
        return haul

    def _manifest(self, roots: Roots) -> Haul:
        haul = Haul(MANIFEST_NAME, MANIFEST_NAME)
        versions, files = roots.versions, roots.files
        for entry in self.manifest_files:
            branch, name = owner_of(_within(MANIFEST_NAME, entry), roots.branches)
            if self.shelter.covers(entry) or name.rpartition("/")[2] in files:
                continue
            if branch is None:
                is_version = name.endswith(".manifest")
            else:
                at = version_of(name)
                is_version = at is not None
                if name.split("/")[0] not in LAYOUT or _is_hint(name):
                    continue
                if at is not None and (branch, at) in versions:
                    continue
            (haul.versions if is_version else haul.others).append(entry)
        return haul

    def reclaimed(self, roots: Roots) -> set[Version]:
        """The versions of live branches that a plan takes away."""
        found: set[Version] = set()
        for entry in self._manifest(roots).versions:
            branch, name = owner_of(_within(MANIFEST_NAME, entry), roots.branches)
            at = version_of(name)
            if branch is not None and at is not None:
                found.add((branch, at))
        return found

    # -- removing --------------------------------------------------------------------

    def remove(self, hauls: Sequence[Haul]) -> None:
        """Remove what a plan says; what goes wrong with a table is that table's alone."""
        manifests = [haul for haul in hauls if haul.path == MANIFEST_NAME]
        others = [haul for haul in hauls if haul.path != MANIFEST_NAME]
        for haul in manifests:
            # Before all else, and an error here ends it all: where a commit can still be found,
            # its tables have to be there.
            self._remove(haul, haul.versions)
        for haul in others:
            self._try(haul, haul.versions)
            if haul.versions_removed:
                # A handle would answer from memory for as long as it can, and fail then.
                handles.forget(self.root.join(haul.path))
        for haul in (*others, *manifests):
            self._try(haul, haul.others)
        self._drop_empty([*others, *manifests])

    def _try(self, haul: Haul, entries: list[StoredObject]) -> None:
        if haul.error is not None:
            return
        try:
            self._remove(haul, entries)
        except StorageError as error:
            haul.error = error.message

    def _remove(self, haul: Haul, entries: list[StoredObject]) -> None:
        for start in range(0, len(entries), BATCH):
            batch = entries[start : start + BATCH]
            reach("cleanup_deleting", haul.path)
            self.objects.delete_all([entry.name for entry in batch])
            haul.removed += batch
            if entries is haul.versions:
                haul.versions_removed += len(batch)

    def _drop_empty(self, hauls: list[Haul]) -> None:
        emptied = {
            parent for haul in hauls for entry in haul.removed for parent in _parents(entry.name)
        }
        # Where writers put files all the time, a directory may be empty for a moment.
        kept = {*TABLES, *(f"{path}/{name}" for path in self._followed for name in LAYOUT)}
        for place in (*TABLES, f"{MANIFEST_NAME}/tree", *SCRATCH):
            self.objects.drop_empty(place, emptied=emptied, kept=kept, before=self.shelter.horizon)


def _within(path: str, entry: StoredObject) -> str:
    return entry.name.removeprefix(f"{path}/")


def _is_hint(name: str) -> bool:
    """Whether it is what Lance notes beside the versions, for its own use."""
    return name.startswith("_versions/") and not name.endswith(".manifest")


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
