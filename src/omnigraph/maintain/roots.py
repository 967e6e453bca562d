"""Roots: which commits a person wants to keep, which states stay, and what they refer to.

Owns the rule of retention and the choice, over all branches, and what is not to be touched
because a writer may be at work with it. Remembers what it has read, so that looking again costs
only what is new. Only reads. A branch that cannot be read is an error: nobody knows then what
is still needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from typing import Self

from omnigraph.errors import BadRequest, StorageError, UnsupportedFormat
from omnigraph.manifest.ancestry import possible_bases
from omnigraph.manifest.entries import MAIN, Commit, StoredVersion
from omnigraph.manifest.schema_contract import HARD_DROP
from omnigraph.manifest.snapshot import BranchState, ancestors_of
from omnigraph.manifest.state import line_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects, StoredObject
from omnigraph.storage.tables.table import TablePin
from omnigraph.write.recovery.intents import DIRECTORY, REVOKED, STAGING, microseconds, parse_intent
from omnigraph.write.recovery.sweep import MARGIN

CONCURRENCY = 8

NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class _Traced:
    """What one version of a branch's manifest is made of and refers to."""

    files: frozenset[str]
    pins: Mapping[str, TablePin]
    names: Mapping[str, str]


@dataclass(slots=True)
class Roots:
    """Everything that stays; grows with each look."""

    manifest: Manifest
    kept: dict[str, Commit] = field(default_factory=dict)
    """The commits that can still be read."""
    _ancestors: dict[str, Commit] = field(default_factory=dict)
    _known: dict[StoredVersion, Mapping[str, Commit]] = field(default_factory=dict)
    _looked_for: set[str] = field(default_factory=set)
    _traced: dict[StoredVersion, _Traced] = field(default_factory=dict)
    _newest: dict[str, tuple[BranchState, _Traced]] = field(default_factory=dict)
    _shown: list[Mapping[str, TablePin]] = field(default_factory=list)
    _logs: dict[StoredVersion, frozenset[str]] = field(default_factory=dict)

    def line(self, view: BranchState) -> Sequence[Commit]:
        """The commits of a branch that nobody has reclaimed yet, newest first."""
        found = list(line_of(view.state.head_commit_id, self._ancestors_of(view)))
        oldest = view.state.head.oldest_commit_id
        kept = list(takewhile(lambda commit: commit.id != oldest, found))
        return found[: len(kept) + 1]

    def look(self, views: Iterable[BranchState], *, is_newest: bool = True) -> None:
        """Remember what these states retain; what was found before stays.

        Of states that are not the newest any more, what they show counts, but nobody has to
        find them again.
        """
        wanted: list[Commit] = []
        for view in views:
            line = self.line(view)
            self.kept |= {commit.id: commit for commit in line}
            wanted += line
            if is_newest:
                self._newest[view.branch_id] = view, _traced(view)
            else:
                self._shown.append({table.path: one.pin for table, one in view.state.live})
        self._trace_all(wanted)

    def look_at_bases(self, views: Iterable[BranchState]) -> None:
        """Remember the states that merges of these branches may need."""
        heads = [view.state.head_commit_id for view in views]
        bases = possible_bases(heads, self._ancestors)
        self._trace_all(bases)

    def knows(self, commit_id: str) -> bool:
        """Whether a branch that was looked at descends from a commit, readable or not."""
        return commit_id in self._ancestors

    @property
    def manifest_files(self) -> dict[str, set[str]]:
        """The files of the manifests that stay, by the id of the branch."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for stored, traced in self._traced.items():
            found[stored.branch_id] |= traced.files
        for view, traced in self._newest.values():
            found[view.branch_id] |= traced.files
            for stored in view.history:
                if stored != view.stored:
                    found[stored.branch_id] |= self._log_files(stored)
        return dict(found)

    @property
    def pins(self) -> dict[str, set[TablePin]]:
        """The versions of tables that stay, by the path of the table."""
        found: defaultdict[str, set[TablePin]] = defaultdict(set)
        shown = [traced.pins for traced in self._traced.values()]
        shown += [traced.pins for _, traced in self._newest.values()]
        for pins in (*shown, *self._shown):
            for path, pin in pins.items():
                found[path].add(pin)
        return dict(found)

    @property
    def names(self) -> dict[str, str]:
        """How tables are called, by path; of several names the one that main shows last.

        Those of dropped types are among them: they are tables of this graph, too.
        """
        known: dict[str, str] = {}
        ordered = sorted(
            self._traced, key=lambda one: (one.branch_id == MAIN, one.branch_id, one.version)
        )
        for stored in ordered:
            known |= self._traced[stored].names
        for branch_id in sorted(self._newest, key=lambda id_: (id_ == MAIN, id_)):
            known |= self._newest[branch_id][1].names
        return known

    # -- following -------------------------------------------------------------------

    def _ancestors_of(self, view: BranchState) -> Mapping[str, Commit]:
        if view.stored not in self._known:
            self._known[view.stored] = ancestors_of(view)
            self._ancestors |= self._known[view.stored]
        return self._known[view.stored]

    def _log_files(self, stored: StoredVersion) -> frozenset[str]:
        """What a version is made of in whose log a branch finds the history it was forked with."""
        if stored not in self._logs:
            self._logs[stored] = self.manifest.view_of(stored).log.files()
        return self._logs[stored]

    def _trace_all(self, wanted: Iterable[Commit]) -> None:
        fresh = {one.id: one for one in wanted if one.id not in self._looked_for}
        self._looked_for |= fresh.keys()
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            for view in pool.map(self.manifest.find_state, fresh.values()):
                # One that is not there has been reclaimed before.
                if view is not None:
                    self._traced[view.stored] = _traced(view)


def _traced(view: BranchState) -> _Traced:
    state = view.state
    return _Traced(
        view.log.files(),
        {table.path: found.pin for table, found in state.live},
        {table.path: table.type_key for table in state.tables.values()},
    )


@dataclass(frozen=True, slots=True)
class Retention:
    """Keep the newest so many commits of a branch, and those younger than an age.

    What was the newest less than the ``grace`` ago stays too, for whoever still reads it. None
    stays that is older than a commit that gave up what it dropped.
    """

    keep: int | None
    older_than: timedelta | None
    grace: timedelta = NONE

    @classmethod
    def of(cls, keep: int | None, older_than: timedelta | None, grace: timedelta = NONE) -> Self:
        """The rule that was asked for, or why it is none."""
        if keep is None and older_than is None:
            raise BadRequest(
                "cleanup needs to know what to keep: give the number of commits to keep on every "
                "branch (keep), the age from which commits may go (older_than), or both"
            )
        if keep is not None and keep < 0:
            raise BadRequest(f"cleanup cannot keep {keep} commits: give 1 or more")
        if older_than is not None and older_than < NONE:
            raise BadRequest("cleanup cannot reclaim commits from the future: give a positive age")
        if grace < NONE:
            raise BadRequest("the grace cannot be negative: 0 keeps nothing for late readers")
        # The head of a branch is the branch: it cannot go.
        return cls(None if keep is None else max(keep, 1), older_than, grace)

    def kept(self, commits: Sequence[Commit], now: int) -> Sequence[Commit]:
        """Those of a branch's commits, newest first, that stay: a commit goes by all rules.

        Whatever clocks said, none goes that is newer than one that stays.
        """
        last = max(
            position
            for position, commit in enumerate(commits)
            if position < (self.keep or 1)
            or not self._is_old(commit, now)
            or commits[position - 1].created_at > now - microseconds(self.grace)
        )
        kept = commits[: last + 1]
        given_up = (
            position
            for position, commit in enumerate(kept)
            if commit.metadata.get(HARD_DROP)
            and commit.created_at <= now - microseconds(self.grace)
        )
        return kept[: next(given_up, last) + 1]

    def _is_old(self, commit: Commit, now: int) -> bool:
        if self.older_than is None:
            return True
        return commit.created_at <= now - microseconds(self.older_than)


@dataclass(frozen=True, slots=True)
class LiveWork:
    """What long writes are at work with.

    A long write stages files before it names them: so of the tables that it works on,
    nothing goes. Of a write whose intent cannot be read, nobody knows the tables.
    """

    operations: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    """By path, relative to the graph root."""
    is_anywhere: bool = False

    def covers(self, entry: StoredObject) -> bool:
        """Whether a file, named relative to the graph root, has to stay."""
        parts = entry.name.split("/")
        if parts[0] == STAGING:
            return len(parts) > 1 and parts[1] in self.operations
        return self.is_anywhere or "/".join(parts[:2]) in self.tables


def find_live_work(objects: ControlObjects, *, presumed_dead_at: int | None = None) -> LiveWork:
    """The long writes that nobody has revoked; ``objects`` are those of the graph root.

    With a time (microseconds since the epoch), those are left out that a sweep would revoke
    then: to tell what would go, and never to remove it.
    """
    operations: set[str] = set()
    tables: set[str] = set()
    is_anywhere = False
    names = objects.list(DIRECTORY)
    for name in names:
        if name.endswith(REVOKED):
            continue
        operation = name.rpartition("/")[2].removesuffix(".json")
        if f"{DIRECTORY}/{operation}{REVOKED}" in names:
            continue
        data = objects.read(name)
        if data is None:
            continue  # its writer has removed it since the listing
        try:
            intent = parse_intent(name, data)
        except UnsupportedFormat:
            operations.add(operation)
            is_anywhere = True
            continue
        except StorageError:
            continue  # not an intent: the sweep has a word on it
        dead_from = intent.expires_at + microseconds(MARGIN)
        if presumed_dead_at is None or presumed_dead_at < dead_from:
            operations.add(operation)
            tables |= {table.table_path for table in intent.tables}
    return LiveWork(frozenset(operations), frozenset(tables), is_anywhere)
