"""Roots: which versions of the manifest stay, and what they refer to.

Owns the choice, over all branches, and remembers what it has read, so that looking
again costs only what is new. Only reads. A branch that cannot be read is an error:
nobody knows then what is still needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from omnigraph.errors import BranchNotFound, StorageError
from omnigraph.maintain.retention import Retention
from omnigraph.maintain.shelter import Shelter
from omnigraph.manifest.ancestry import Ancestry, head_of
from omnigraph.manifest.branch_names import native_name
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.store import Manifest
from omnigraph.manifest.view import View, commits_of
from omnigraph.storage.files import version_of
from omnigraph.storage.headlog import branch_directory
from omnigraph.storage.objects import ControlObjects, StoredObject
from omnigraph.storage.table import TablePin

CONCURRENCY = 8
Version = tuple[str, int]
"""A branch and a version of its manifest."""


@dataclass(frozen=True, slots=True)
class _Traced:
    """What one version of the manifest refers to."""

    pins: Mapping[str, TablePin]
    names: Mapping[str, str]
    files: frozenset[str]


@dataclass(slots=True)
class Roots:
    """Everything that stays; grows with each look."""

    manifest: Manifest
    retention: Retention
    shelter: Shelter
    now: int
    branches: set[str] = field(default_factory=set)
    commits: dict[str, Commit] = field(default_factory=dict)
    _traced: dict[Version, _Traced] = field(default_factory=dict)

    def look(self) -> None:
        """Find the roots as they are now; those that were found before stay roots."""
        objects = ControlObjects(self.manifest.location)
        views = dict(self._views())
        self.branches |= views.keys()
        stored = stored_versions(objects.entries(), self.branches)
        heads = {(branch, view.log.version) for branch, view in views.items()}
        existing = {(branch, at) for branch, found in stored.items() for at in found} | heads
        wanted = heads | (self._wanted(views, stored) & existing)
        fresh = sorted(wanted - self._traced.keys())
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            for version, found in zip(fresh, pool.map(self._trace, fresh), strict=True):
                if found is not None:
                    self._traced[version] = found

    @property
    def versions(self) -> set[Version]:
        """The versions of the manifest that stay."""
        return set(self._traced)

    @property
    def files(self) -> set[str]:
        """The names of the manifest's files that they are made of, without directories."""
        return {name for found in self._traced.values() for name in found.files}

    @property
    def pins(self) -> dict[str, set[TablePin]]:
        """The versions of tables that stay, by the path of the table."""
        found: defaultdict[str, set[TablePin]] = defaultdict(set)
        for traced in self._traced.values():
            for path, pin in traced.pins.items():
                found[path].add(pin)
        return dict(found)

    @property
    def names(self) -> dict[str, str]:
        """How tables are called, by path; of several names the one that main shows last."""
        known: dict[str, str] = {}
        for version in sorted(self._traced, key=lambda one: (one[0] == MAIN, one)):
            known |= self._traced[version].names
        return known

    # -- choosing --------------------------------------------------------------------

    def _views(self) -> Iterator[tuple[str, View]]:
        for branch in (MAIN, *sorted(self.manifest.branches())):
            try:
                yield branch, self.manifest.load(branch)
            except BranchNotFound:
                continue  # deleted since it was listed
            except StorageError as error:
                raise StorageError(
                    f"nothing was removed, because branch {branch} cannot be read and so nobody "
                    f"knows what it needs: {error.message}",
                    kind=error.kind,
                    details=error.details,
                ) from error

    def _wanted(
        self, views: Mapping[str, View], stored: Mapping[str, Mapping[int, int]]
    ) -> set[Version]:
        wanted: set[Version] = set()
        for branch, view in views.items():
            wanted |= {(branch, at) for at in self._recently_shown(stored.get(branch, {}))}
            commits = commits_of(view)
            self.commits |= {commit.id: commit for commit in commits}
            wanted |= {version_of_commit(one) for one in self.retention.kept(commits, self.now)}
        for reference in self.manifest.branches().values():
            wanted.add((reference.parent or MAIN, reference.parent_version))
        wanted |= {(branch or MAIN, at) for branch, at in views[MAIN].log.tagged()}
        ancestry = Ancestry(self.manifest, views.values())
        heads = {head.id: head for head in map(head_of, views.values())}
        for one, other in combinations(heads.values(), 2):
            base = ancestry.base(one, other)
            if base is not None:
                wanted.add(version_of_commit(base))
        return wanted

    def _recently_shown(self, stored: Mapping[int, int]) -> Iterable[int]:
        """The versions of a branch that were its newest at some time after the horizon."""
        for at, following in pairwise(sorted(stored)):
            if stored[following] > self.shelter.horizon:
                yield at
        if stored:
            yield max(stored)

    # -- following -------------------------------------------------------------------

    def _trace(self, version: Version) -> _Traced | None:
        """What a version refers to; None when it was removed since it was seen."""
        try:
            view = self.manifest.view_of(*version)
            files = view.log.files()
        except BranchNotFound:
            return None
        except StorageError as error:
            if error.kind != "not_found" or self._is_stored(version):
                raise
            return None
        state = view.state
        return _Traced(
            {table.path: found.pin for table, found in state.live},
            {table.path: table.type_key for table in state.tables.values()},
            files,
        )

    def _is_stored(self, version: Version) -> bool:
        entries = ControlObjects(self.manifest.location).entries()
        return version[1] in stored_versions(entries, self.branches).get(version[0], {})


def version_of_commit(commit: Commit) -> Version:
    """The version of the manifest that a commit made."""
    return commit.branch or MAIN, commit.manifest_version


def stored_versions(
    entries: Iterable[StoredObject], branches: Iterable[str]
) -> dict[str, dict[int, int]]:
    """The versions that files of the manifest are, by branch, each with the time it was made."""
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    known = list(branches)
    for entry in entries:
        branch, name = owner_of(entry.name, known)
        version = version_of(name)
        if branch is not None and version is not None:
            found[branch][version] = entry.modified
    return dict(found)


def owner_of(name: str, branches: Iterable[str]) -> tuple[str | None, str]:
    """The branch that a file of the manifest lies with, and its name there.

    No branch for what a deleted one has left behind.
    """
    if not name.startswith("tree/"):
        return MAIN, name
    for branch in branches:
        directory = f"{branch_directory(native_name(branch))}/"
        if branch != MAIN and name.startswith(directory):
            return branch, name.removeprefix(directory)
    return None, name
