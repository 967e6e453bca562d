"""Garbage: what goes from each directory of a graph, and its removal.

Owns the order: versions of the manifest first, then versions of tables, then what they
were made of. So whatever a collection that is cut short has left, a version that can be
found is whole. Decides by what the roots reach, never by what a version says of itself, and
takes only what bears a name that this graph's writers give: anything else is told and left.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from omnigraph.errors import StorageError
from omnigraph.maintain.directory_garbage import DirectoryGarbage, Removed, untold
from omnigraph.maintain.roots import CONCURRENCY, LiveWork, Roots
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import MANIFEST_NAME
from omnigraph.storage.logs.head_log import QUEUE, HeadLog
from omnigraph.storage.logs.newest_version import COLLECTED, HINT, begin_collection
from omnigraph.storage.objects.control_objects import PROBE, ControlObjects, StoredObject
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.reachable_files import (
    DETACHED,
    ReachedFiles,
    first_pins,
    manifest_name,
    reached_files,
    version_made_by,
    version_of,
)
from omnigraph.storage.tables.table import TablePin
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.run_ids import DIRECTORY as RUNS
from omnigraph.write.publish.run_ids import ClaimName
from omnigraph.write.recovery.intents import STAGING

TABLES = ("nodes", "edges")
SCRATCH = (STAGING, PROBE)
"""Where files lie that nobody needs when their writer is gone."""
LAYOUT = ("data", "_deletions", "_indices", "_transactions", "_versions")
SHARE = 16
"""So many versions of a table are followed by one thread at a time."""
BATCH = 1_000
"""So many files are removed between two passings of the failpoint."""

_TABLE = re.compile(r"(?:nodes|edges)/([0-9a-f]{16})-([0-9a-f]{16})")
_BRANCH = re.compile(rf"{MAIN}|[0-7][0-9A-HJKMNP-TV-Z]{{25}}")
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
# What a put leaves on a local disk that was cut short.
_CUT_SHORT = re.compile(r"#[0-9]+$")
# What Lance calls its files, cut short puts (`…#1`) included.
_OF_LANCE = re.compile(
    r"data/[^/]+\.lance|data/[^/]+/[^/]+|_deletions/[^/]+\.(arrow|bin)|_indices/[0-9a-f-]{36}/.+"
    r"|_transactions/[^/]+\.txn|_versions/d?[0-9]+\.manifest|.+#[0-9]+|.*\.tmp[^/]*"
)


@dataclass(slots=True)
class GarbageCollector:
    """The files of a graph as they were before anybody looked for roots.

    So whatever comes into being meanwhile is not even considered.
    """

    root: Location
    objects: ControlObjects
    manifests: dict[str, list[StoredObject]]
    """By the id of the branch."""
    tables: Mapping[str, Sequence[StoredObject]]
    """By the path of the table."""
    scratch: Mapping[str, Sequence[StoredObject]]
    claims: Sequence[StoredObject]
    """To run ids."""
    _foreign: set[str] = field(default_factory=set)
    _reached: defaultdict[str, ReachedFiles] = field(
        default_factory=lambda: defaultdict(ReachedFiles)
    )
    _followed: defaultdict[str, set[TablePin]] = field(default_factory=lambda: defaultdict(set))
    _branches: set[str] = field(default_factory=set)
    _newest_kept: dict[str, int] = field(default_factory=dict)
    _ends: dict[str, frozenset[str]] = field(default_factory=dict)
    _errors: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _removed: Removed = untold

    @classmethod
    def of(cls, root: Location) -> GarbageCollector:
        """List everything, each file once and no file twice in memory."""
        objects = ControlObjects(root)
        return cls(
            root,
            objects,
            {
                path.removeprefix(f"{MANIFEST_NAME}/"): found
                for path, found in _by_directory(objects.walk(MANIFEST_NAME)).items()
            },
            _by_directory(entry for place in TABLES for entry in objects.walk(place)),
            {place: objects.entries(place) for place in SCRATCH},
            objects.entries(RUNS),
        )

    @property
    def stored_bytes(self) -> int:
        """How much all of it is."""
        groups = (*self.manifests.values(), *self.tables.values(), *self.scratch.values())
        return sum(entry.size for entries in groups for entry in entries)

    @property
    def files(self) -> int:
        """How many files there are."""
        groups = (*self.manifests.values(), *self.tables.values(), *self.scratch.values())
        return sum(map(len, groups)) + len(self.claims)

    def notices(self) -> list[str]:
        """A word on what was found in the way and is not this graph's."""
        if not self._foreign:
            return []
        first = min(self._foreign)
        return [f"left {len(self._foreign)} file(s) that this graph has not made, such as {first}"]

    def add_own(self, made: Mapping[str, AbstractSet[str]]) -> None:
        """Consider also what this collection has published itself and may have replaced since.

        By the id of the branch, names relative to its manifest.
        """
        known = {
            entry.name
            for branch_id in made
            for entry in self.manifests.get(branch_id, ())
            if _within(f"{MANIFEST_NAME}/{branch_id}", entry) in made[branch_id]
        }
        for entry in self.objects.walk(MANIFEST_NAME):
            _, _, place = entry.name.partition("/")
            branch_id, _, name = place.partition("/")
            if name in made.get(branch_id, ()) and entry.name not in known:
                self.manifests.setdefault(branch_id, []).append(entry)

    # -- planning --------------------------------------------------------------------

    def follow(self, roots: Roots) -> None:
        """Find the files that the roots reach in every table; only new pins cost anything."""
        work: list[tuple[str, list[TablePin]]] = []
        for path, pins in sorted(roots.pins.items()):
            wanted = pins - self._followed[path]
            if not self._followed[path]:
                wanted |= first_pins(_within(path, entry) for entry in self.tables.get(path, ()))
            fresh = sorted(wanted, key=lambda pin: pin.version)
            shares = range(0, len(fresh), SHARE)
            work += [(path, fresh[start : start + SHARE]) for start in shares]
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(lambda share: self._follow(*share), work))

    def _follow(self, path: str, pins: list[TablePin]) -> None:
        try:
            reached = reached_files(self.root.join(path), pins)
        except StorageError as error:
            self._errors[path] = error.message
            return
        with self._lock:
            self._reached[path] |= reached
            self._followed[path] |= set(pins)

    def plan(self, roots: Roots, work: LiveWork, given_out: int) -> list[DirectoryGarbage]:
        """What goes, directory by directory: the tables, the manifest, the rest.

        Identities of schemas below ``given_out`` are this graph's, and so are tables of that
        name that no branch knows: a schema change that died has left them, or a branch that is
        gone.
        """
        strays = {path: path for path in self.tables if _is_given_out(path, given_out)}
        names = strays | roots.names
        found = [
            self._table(path, names[path], work)
            for path in sorted(names, key=lambda path: (names[path], path))
        ]
        for path, entries in sorted(self.tables.items()):
            if path not in names:
                # Nothing tells that this graph has made it, whatever it is called.
                self._foreign |= {entry.name for entry in entries}
        found.append(self._manifest(roots))
        for place, entries in self.scratch.items():
            garbage = DirectoryGarbage(place, place)
            for entry in entries:
                if not work.covers(entry) and self._is_scratch(entry):
                    garbage.others.append(entry)
            found.append(garbage)
        found.append(self._runs(roots))
        return found

    def _runs(self, roots: Roots) -> DirectoryGarbage:
        """The claims to run ids whose commits nobody knows: those ids are free."""
        garbage = DirectoryGarbage(RUNS, RUNS)
        for entry in self.claims:
            claim = ClaimName.parse(_CUT_SHORT.sub("", entry.name))
            if claim is None:
                self._foreign.add(entry.name)
            elif not roots.knows(claim.commit_id):
                garbage.others.append(entry)
        return garbage

    def _table(self, path: str, type_key: str, work: LiveWork) -> DirectoryGarbage:
        garbage = DirectoryGarbage(type_key, path, error=self._errors.get(path))
        if garbage.error is not None or not _TABLE.fullmatch(path):
            return garbage
        for entry in self.tables.get(path, ()):
            name = _within(path, entry)
            if name in self._reached[path] or work.covers(entry):
                continue
            if name == HINT:
                # Lance notes it for its own use, as long as there is a table.
                if not self._followed.get(path):
                    garbage.add(entry, name)
            elif self._is_ours(entry, name):
                garbage.add(entry, name)
        return garbage

    def _manifest(self, roots: Roots) -> DirectoryGarbage:
        garbage = DirectoryGarbage(MANIFEST_NAME, MANIFEST_NAME)
        reached = roots.manifest_files
        self._branches |= reached.keys()
        for branch_id, entries in sorted(self.manifests.items()):
            if not _BRANCH.fullmatch(branch_id):
                self._foreign |= {entry.name for entry in entries}
                continue
            files = reached.get(branch_id, set())
            if files and branch_id not in roots.living:
                files |= self._end_of(branch_id, entries)
            kept = [version for name in files if (version := version_of(name)) is not None]
            self._newest_kept[branch_id] = max(kept, default=0)
            files |= self._transactions(branch_id, files, entries)
            found = DirectoryGarbage(branch_id, branch_id)
            for entry in entries:
                name = _within(f"{MANIFEST_NAME}/{branch_id}", entry)
                is_noted = name in {HINT, COLLECTED} or name.startswith(f"{QUEUE}/")
                if name in files or (files and is_noted):
                    continue
                if is_noted or self._is_ours(entry, name):
                    found.add(entry, name)
            if found.versions and not files:
                # By name, the newest version comes first.
                found.versions.sort(key=lambda entry: entry.name)
                garbage.last_versions.append(found.versions.pop(0))
            garbage.versions += found.versions
            garbage.others += found.others
        return garbage

    def _end_of(self, branch_id: str, entries: Sequence[StoredObject]) -> AbstractSet[str]:
        """The newest version of a branch that is gone, while merges need an older one of it.

        It says that the branch has ended. Without it there would be room for one more commit right
        behind the older one, and a writer that comes too late would take it for the newest.
        """
        place = f"{MANIFEST_NAME}/{branch_id}"
        known = self._ends.get(branch_id)
        if known is None:
            versions = (version_of(_within(place, entry)) for entry in entries)
            newest = max(one for one in versions if one is not None and one < DETACHED)
            known = self._ends[branch_id] = HeadLog.open(self.root.join(place), newest).files()
        return known

    def _transactions(
        self, branch_id: str, files: AbstractSet[str], entries: Sequence[StoredObject]
    ) -> set[str]:
        """The transactions of the versions that stay.

        By the listing: a version is asked only where several have tried to become it.
        """
        place = f"{MANIFEST_NAME}/{branch_id}"
        tried: defaultdict[int, list[str]] = defaultdict(list)
        for entry in entries:
            name = _within(place, entry)
            version = version_made_by(name)
            if version is not None and manifest_name(version) in files:
                tried[version].append(name)
        found: set[str] = set()
        for version, names in tried.items():
            found.update(names)
            if len(names) > 1:
                made_by = HeadLog.open(self.root.join(place), version).transaction_file()
                found.difference_update(set(names) - {made_by} if made_by is not None else ())
        return found

    def _is_ours(self, entry: StoredObject, name: str) -> bool:
        """Whether a file of a table has a name that Lance gives; a word on it if not."""
        if _OF_LANCE.fullmatch(name) and name.split("/", maxsplit=1)[0] in LAYOUT:
            return True
        self._foreign.add(entry.name)
        return False

    def _is_scratch(self, entry: StoredObject) -> bool:
        parts = entry.name.split("/")
        if parts[0] == PROBE or (len(parts) > 2 and _ULID.fullmatch(parts[1])):
            return True
        self._foreign.add(entry.name)
        return False

    # -- removing --------------------------------------------------------------------

    def remove(self, plan: Sequence[DirectoryGarbage], removed: Removed = untold) -> None:
        """Remove what a plan says; what goes wrong with a table is that table's alone.

        ``removed`` is told how many files went, now and then.
        """
        self._removed = removed
        manifests = [one for one in plan if one.path == MANIFEST_NAME]
        others = [one for one in plan if one.path != MANIFEST_NAME]
        for garbage in manifests:
            # Before all else, and an error here ends it all: where a commit can still be found,
            # its tables have to be there.
            self._announce(garbage.versions)
            self._remove(garbage, garbage.versions)
            self._remove(garbage, garbage.last_versions)
        for garbage in others:
            self._try(garbage, garbage.versions)
            if garbage.versions_removed:
                # A handle would answer from memory for as long as it can, and fail then.
                handles.forget(self.root.join(garbage.path))
        for garbage in (*others, *manifests):
            self._try(garbage, garbage.others)
        self._drop_empty([*others, *manifests])

    def _announce(self, versions: Sequence[StoredObject]) -> None:
        """Say on every branch that stays that versions before its newest are about to go."""
        branches = {entry.name.split("/", maxsplit=2)[1] for entry in versions}

        def announce(branch_id: str) -> None:
            newest = self._newest_kept[branch_id]
            if newest:
                begin_collection(self.objects, newest, f"{MANIFEST_NAME}/{branch_id}")

        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(announce, sorted(branches)))

    def _try(self, garbage: DirectoryGarbage, entries: list[StoredObject]) -> None:
        if garbage.error is not None:
            return
        try:
            self._remove(garbage, entries)
        except StorageError as error:
            garbage.error = error.message

    def _remove(self, garbage: DirectoryGarbage, entries: list[StoredObject]) -> None:
        for start in range(0, len(entries), BATCH):
            batch = entries[start : start + BATCH]
            reach("cleanup_deleting", garbage.path)
            self.objects.delete_all([entry.name for entry in batch])
            garbage.removed += batch
            if entries is not garbage.others:
                garbage.versions_removed += len(batch)
            self._removed(len(batch))

    def _drop_empty(self, found: list[DirectoryGarbage]) -> None:
        emptied = {
            parent for one in found for entry in one.removed for parent in _parents(entry.name)
        }
        # Where writers put files all the time, a directory may be empty for a moment.
        live = [path for path, pins in self._followed.items() if pins]
        live += [f"{MANIFEST_NAME}/{branch_id}" for branch_id in self._branches]
        kept = {f"{path}/{name}" for path in live for name in LAYOUT}
        for place in (*TABLES, MANIFEST_NAME, *SCRATCH, RUNS):
            self.objects.drop_empty(place, emptied=emptied - kept)


def _is_given_out(path: str, given_out: int) -> bool:
    """Whether this graph has given out both identities that a table is named by."""
    found = _TABLE.fullmatch(path)
    return found is not None and all(0 < int(part, 16) < given_out for part in found.groups())


def _by_directory(entries: Iterable[StoredObject]) -> dict[str, list[StoredObject]]:
    """Files by the two first parts of their names; one that has no more than two is alone."""
    found: defaultdict[str, list[StoredObject]] = defaultdict(list)
    for entry in entries:
        found["/".join(entry.name.split("/", maxsplit=2)[:2])].append(entry)
    for group in found.values():
        group.sort(key=lambda entry: entry.name)
    return dict(found)


def _within(path: str, entry: StoredObject) -> str:
    return entry.name.removeprefix(f"{path}/")


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
