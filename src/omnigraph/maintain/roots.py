"""Roots: which commits a person wants to keep, which states stay, and what they refer to.

Owns the rule of retention and the choice, over all branches, and what is not to be touched
because a writer may be at work with it. Remembers what it has read, so that looking again costs
only what is new. Only reads. A branch that cannot be read is an error: nobody knows then what
is still needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from omnigraph.errors import BadRequest, StorageError, UnsupportedFormat
from omnigraph.manifest.ancestry import possible_bases
from omnigraph.manifest.entries import MAIN, Commit, StoredVersion
from omnigraph.manifest.rows import from_table
from omnigraph.manifest.schema_contract import HARD_DROP
from omnigraph.manifest.snapshot import IS_COMMIT, BranchState
from omnigraph.manifest.state import line_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.objects.control_objects import ControlObjects, StoredObject
from omnigraph.storage.tables.table import TablePin
from omnigraph.write.recovery.intents import DIRECTORY, REVOKED, STAGING, microseconds, parse_intent
from omnigraph.write.recovery.sweep import MARGIN

CONCURRENCY = 8

NONE = timedelta(0)


_Line = tuple[str, str | None]
"""The newest commit of a branch and the oldest that can be read: what tells its line."""
_Rank = tuple[bool, bool, str, int]


@dataclass(slots=True)
class Roots:
    """Everything that stays; grows with each look.

    What branches share is read once: a commit, a sealed part of the log, a line of commits.
    """

    manifest: Manifest
    kept: dict[str, Commit] = field(default_factory=dict)
    """The commits that can still be read."""
    _ancestors: dict[str, Commit] = field(default_factory=dict)
    _lines: dict[_Line, Sequence[Commit]] = field(default_factory=dict)
    _looked_at: set[_Line] = field(default_factory=set)
    _looked_for: set[str] = field(default_factory=set)
    _parts: set[tuple[str, str]] = field(default_factory=set)
    """The sealed fragments that were read, by the id of the branch and by file."""
    _logs: dict[StoredVersion, frozenset[str]] = field(default_factory=dict)
    _files: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _newest: dict[str, tuple[BranchState, frozenset[str]]] = field(default_factory=dict)
    _shown: set[tuple[str, bool]] = field(default_factory=set)
    _pins: defaultdict[str, set[TablePin]] = field(default_factory=lambda: defaultdict(set))
    _names: dict[str, tuple[_Rank, str]] = field(default_factory=dict)

    def line(self, view: BranchState) -> Sequence[Commit]:
        """The commits of a branch that nobody has reclaimed yet, newest first."""
        key = view.state.head_commit_id, view.state.head.oldest_commit_id
        # What merges may need is asked of all that a branch descends from, so it is read anyway.
        self._read_history(view)
        known = self._lines.get(key)
        if known is None:
            known = self._lines[key] = list(_line(*key, self._ancestors))
        return known

    def look(self, views: Sequence[BranchState], *, is_newest: bool = True) -> None:
        """Remember what these states retain; what was found before stays.

        Of states that are not the newest any more, what they show counts, but nobody has to
        find them again.
        """
        wanted: dict[str, Commit] = {}
        for view in views:
            key = view.state.head_commit_id, view.state.head.oldest_commit_id
            line = self.line(view)
            if key not in self._looked_at:
                self._looked_at.add(key)
                wanted |= {commit.id: commit for commit in line}
            if is_newest:
                self._newest[view.branch_id] = view, view.log.files()
            self._show(view, is_newest=is_newest)
        self.kept |= wanted
        self._trace_all(wanted.values())

    def look_at_bases(self, views: Iterable[BranchState]) -> None:
        """Remember the states that merges of these branches may need."""
        heads = [view.state.head_commit_id for view in views]
        bases = possible_bases(heads, self._ancestors)
        self._trace_all(bases)

    def knows(self, commit_id: str) -> bool:
        """Whether a branch that was looked at descends from a commit, readable or not."""
        return commit_id in self._ancestors

    @property
    def living(self) -> AbstractSet[str]:
        """The branches that have not ended, by id."""
        return self._newest.keys()

    @property
    def manifest_files(self) -> dict[str, set[str]]:
        """The files of the manifests that stay, but their transactions, by the id of the branch."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for branch_id, files in self._files.items():
            found[branch_id] |= files
        histories: set[StoredVersion] = set()
        for view, newest in self._newest.values():
            found[view.branch_id] |= newest
            histories |= {stored for stored in view.history if stored != view.stored}
        for stored in histories:
            found[stored.branch_id] |= self._logs[stored]
        return dict(found)

    @property
    def pins(self) -> Mapping[str, AbstractSet[TablePin]]:
        """The versions of tables that stay, by the path of the table."""
        return self._pins

    @property
    def names(self) -> dict[str, str]:
        """How tables are called, by path; of several names the one that main shows last.

        Those of dropped types are among them: they are tables of this graph, too.
        """
        return {path: name for path, (_, name) in self._names.items()}

    # -- following -------------------------------------------------------------------

    def _read_history(self, view: BranchState) -> None:
        """Read the commits that a branch descends from, where no other branch has led there."""
        for stored in view.history:
            if stored == view.stored:
                self._read_log(stored.branch_id, view.log)
            elif stored not in self._logs:
                place = self.manifest.location.join(stored.branch_id)
                log = HeadLog.open(place, stored.version)
                self._read_log(stored.branch_id, log)
                self._logs[stored] = log.files()
        self._ancestors |= view.state.known_commits

    def _read_log(self, branch_id: str, log: HeadLog) -> None:
        fresh = [
            (place, (branch_id, name))
            for place, name in enumerate(log.log_names())
            if (branch_id, name) not in self._parts
        ]
        if not fresh:
            return
        for entry in from_table(log.log_rows([place for place, _ in fresh], IS_COMMIT)):
            if isinstance(entry, Commit):
                self._ancestors[entry.id] = entry
        self._parts |= {part for _, part in fresh}

    def _trace_all(self, wanted: Iterable[Commit]) -> None:
        fresh = {one.id: one for one in wanted if one.id not in self._looked_for}
        self._looked_for |= fresh.keys()
        if not fresh:
            return
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            for found in pool.map(self._find, fresh.values()):
                # One that is not there has been reclaimed before.
                if found is not None:
                    view, files = found
                    self._files[view.branch_id] |= files
                    self._show(view, is_newest=False)

    def _find(self, commit: Commit) -> tuple[BranchState, frozenset[str]] | None:
        view = self.manifest.find_state(commit)
        return None if view is None else (view, view.log.files())

    def _show(self, view: BranchState, *, is_newest: bool) -> None:
        """Remember the tables of a state; branches with the same newest commit show the same."""
        state = view.state
        is_main = view.branch_id == MAIN
        if (state.head_commit_id, is_newest) in self._shown and not is_main:
            return
        self._shown.add((state.head_commit_id, is_newest))
        rank = is_newest, is_main, view.branch_id, view.log.version
        for table, found in state.live:
            self._pins[table.path].add(found.pin)
        for table in state.tables.values():
            known = self._names.get(table.path)
            if known is None or known[0] <= rank:
                self._names[table.path] = rank, table.type_key


def _line(head: str, oldest: str | None, known: Mapping[str, Commit]) -> Iterator[Commit]:
    """The commits from the newest to the oldest that can be read, as far as they are known."""
    for commit in line_of(head, known):
        yield commit
        if commit.id == oldest:
            return


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
