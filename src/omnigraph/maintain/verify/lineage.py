"""Lineage: the branches, their names, their ancestry, and what every kept commit shows.

Owns which commits a table version matters to. A branch that cannot be read is a finding and
hides no other; where the names are lost, branches are known by what their heads say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TypeVar

from omnigraph.errors import BranchNotFound, OmniGraphError, StorageError
from omnigraph.maintain.verify.report import DERIVED, Finding
from omnigraph.manifest.entries import MAIN, Commit, StoredVersion
from omnigraph.manifest.refs import DIRECTORY, Refs
from omnigraph.manifest.snapshot import MANIFEST_NAME, BranchState, ancestors_of, catalog_of
from omnigraph.manifest.state import line_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import HeadLog
from omnigraph.storage.tables.table import TablePin

CONCURRENCY = 8
TRIED = 100
"""Of a branch that cannot be read so many versions are tried."""
T = TypeVar("T")
R = TypeVar("R")

PinKey = tuple[str, TablePin]
"""A version of a table, by the path of the table."""


def in_parallel(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results in order; every thread reads storage as its caller does."""
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        yield from pool.map(lambda item: copy_context().run(work, item), items)


@dataclass(slots=True)
class BranchLook:
    """One branch: its newest state, and its kept commits, newest first."""

    name: str
    branch_id: str
    view: BranchState | None = None
    line: Sequence[Commit] = ()

    @property
    def mark(self) -> tuple[int, str | None, bool] | None:
        """What a cleanup or a deletion changes about it."""
        if self.view is None:
            return None
        head = self.view.state.head
        return head.epoch, head.oldest_commit_id, head.ended


@dataclass(slots=True)
class Lineage:
    """Everything that is published and kept."""

    manifest: Manifest
    names: Refs = field(default_factory=Refs)
    branches: list[BranchLook] = field(default_factory=list)
    pins: defaultdict[PinKey, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """The kept commits, newest first, that show a version of a table."""
    type_keys: dict[str, str] = field(default_factory=dict)
    """What tables are called, by path."""
    stored: dict[tuple[str, int], dict[str, None]] = field(default_factory=dict)
    """The versions of manifests that kept commits are read from, with these commits."""
    findings: list[Finding] = field(default_factory=list)
    hurt: set[str] = field(default_factory=set)
    """The kept commits that have lost something, or show something wrong."""
    _branches_of: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, manifest: Manifest, only: str | None) -> Lineage:
        """Look at all branches, or at one."""
        found = cls(manifest)
        for name, branch_id in found._named():
            if only is None or name == only:
                found._look(BranchLook(name, branch_id))
        if only is not None and not found.branches:
            raise BranchNotFound(f"there is no branch {only}", details={"branch": only})
        found._look_at_states()
        return found

    @property
    def commits(self) -> dict[str, Commit]:
        """The kept commits of all branches."""
        return {one.id: one for branch in self.branches for one in branch.line}

    def report(self, finding: Finding, commits: Iterable[str] = (), *names: str) -> None:
        """Add a finding, with the branches that have the commits that it affects."""
        affected = list(commits)
        branches = {name for one in affected for name in self._branches_of[one]}
        self.findings.append(finding.affecting(affected, {*branches, *names}))
        if finding.severity == "damage" and finding.kind not in DERIVED:
            self.hurt |= set(affected)

    def has_moved(self) -> bool:
        """Whether a cleanup or a deletion has begun since, which explains what is missing."""
        newest = Manifest(self.manifest.root)
        try:
            if newest.refs.read().epoch != self.names.epoch:
                return True
            return any(
                branch.mark != BranchLook("", "", newest.view_by_id(branch.branch_id)).mark
                for branch in self.branches
                if branch.view is not None
            )
        except BranchNotFound:
            return True
        except OmniGraphError:
            return False

    # -- names -----------------------------------------------------------------------

    def _named(self) -> list[tuple[str, str]]:
        try:
            self.names = self.manifest.refs.read()
        except OmniGraphError as error:
            self.report(
                Finding("names_unreadable", f"the names of branches: {error.message}", DIRECTORY)
            )
            return [(MAIN, MAIN), *self._unnamed()]
        named = sorted((name, ref.id) for name, ref in self.names.names.items())
        return [(MAIN, MAIN), *named]

    def _unnamed(self) -> Iterator[tuple[str, str]]:
        """The branches that call themselves by a name, where no names can be read."""
        paths = (name.split("/") for name in self.manifest.objects.list())
        for branch_id in sorted({parts[0] for parts in paths if len(parts) > 1} - {MAIN}):
            try:
                state = self.manifest.view_by_id(branch_id).state
            except OmniGraphError:
                continue  # perhaps one that was being made: nobody has named it
            if not state.head.ended:
                yield state.branch, branch_id

    # -- one branch ------------------------------------------------------------------

    def _look(self, branch: BranchLook) -> None:
        place = f"{MANIFEST_NAME}/{branch.branch_id}"
        try:
            view = self.manifest.view_by_id(branch.branch_id)
        except OmniGraphError as error:
            if branch.name != MAIN and self._is_gone(branch):
                return
            self.branches.append(branch)
            text = f"branch {branch.name} cannot be read: {error.message}"
            self.report(Finding("branch_unreadable", text, place), (), branch.name)
            branch.line = self._left(branch)
            return
        head = view.state.head
        if head.ended:
            text = f"the deletion of branch {branch.name} was cut short: cleanup finishes it"
            self.report(Finding("deletion_unfinished", text, place))
            return
        self.branches.append(branch)
        branch.view = view
        self._branches_of[head.commit_id].add(branch.name)
        if (head.branch, head.branch_id) != (branch.name, branch.branch_id):
            text = f"what is named {branch.name} says that it is branch {head.branch}"
            self.report(Finding("branch_misnamed", text, place), [head.commit_id], branch.name)
        try:
            catalog_of(view.state.schema)
        except OmniGraphError as error:
            text = f"the schema of branch {branch.name} cannot be read: {error.message}"
            self.report(Finding("schema_unreadable", text, place), [head.commit_id], branch.name)
        branch.line = self._line(branch, view)
        for commit in branch.line:
            self._branches_of[commit.id].add(branch.name)

    def _left(self, branch: BranchLook) -> Sequence[Commit]:
        """The commits of a branch whose newest state is lost, as far as they can be read."""
        older = newest_left(self.manifest, branch.branch_id)
        if older is None:
            return ()
        # What was reclaimed since is not there, and nothing is wrong with that.
        left = [one for one in self._line(branch, older) if self._is_there(one)]
        for commit in left:
            self._branches_of[commit.id].add(branch.name)
        return left

    def _is_there(self, commit: Commit) -> bool:
        try:
            return self.manifest.find_state(commit) is not None
        except OmniGraphError:
            return False

    def _is_gone(self, branch: BranchLook) -> bool:
        """Whether a branch was deleted since its name was read."""
        try:
            ref = self.manifest.refs.read().names.get(branch.name)
        except OmniGraphError:
            return False
        return ref is None or ref.id != branch.branch_id

    def _line(self, branch: BranchLook, view: BranchState) -> Sequence[Commit]:
        """The kept commits of a branch; what is wrong with its ancestry is told."""
        place, head = f"{MANIFEST_NAME}/{branch.branch_id}", view.state.head
        try:
            known = ancestors_of(view)
        except OmniGraphError as error:
            text = f"the history of branch {branch.name} cannot be read: {error.message}"
            self.report(Finding("history_unreadable", text, place), (), branch.name)
            return list(line_of(head.commit_id, view.state.known_commits))
        self._check_closed(branch, known, place)
        line = list(line_of(head.commit_id, known))
        oldest = head.oldest_commit_id
        kept = list(takewhile(lambda one: one.id != oldest, line))
        if oldest is not None and len(kept) == len(line):
            text = f"branch {branch.name} keeps commits from {oldest} on, which it does not have"
            self.report(Finding("ancestry_cut", text, place), [line[-1].id], branch.name)
        return line[: len(kept) + 1]

    def _check_closed(self, branch: BranchLook, known: Mapping[str, Commit], place: str) -> None:
        cut: defaultdict[str, list[str]] = defaultdict(list)
        for commit in known.values():
            for parent in (commit.parent_id, commit.merged_parent_id):
                if parent is not None and parent not in known:
                    cut[parent].append(commit.id)
        for parent, children in sorted(cut.items()):
            text = f"branch {branch.name} descends from commit {parent}, which it does not have"
            self.report(Finding("ancestry_cut", text, place), children, branch.name)

    # -- what commits show -----------------------------------------------------------

    def _look_at_states(self) -> None:
        heads = {
            branch.view.state.head_commit_id: branch.view
            for branch in self.branches
            if branch.view is not None
        }
        every = self.commits
        for commit, found in zip(
            every.values(),
            in_parallel(lambda one: self._state(one, heads), every.values()),
            strict=True,
        ):
            if isinstance(found, BranchState):
                self._note(commit.id, found)
            else:
                where = f"{MANIFEST_NAME}/{commit.stored.branch_id}"
                text = f"commit {commit.id} is kept and cannot be read: {found}"
                self.report(Finding("commit_lost", text, where), [commit.id])

    def _state(self, commit: Commit, heads: Mapping[str, BranchState]) -> BranchState | str:
        try:
            found = self.manifest.find_state(commit)
        except OmniGraphError as error:
            return error.message
        if found is not None:
            return found
        # The newest state of a branch shows its newest commit, whatever version made that.
        return heads.get(commit.id) or f"version {commit.stored.version} of it is not there"

    def _note(self, commit_id: str, view: BranchState) -> None:
        key = view.branch_id, view.log.version
        self.stored.setdefault(key, {})[commit_id] = None
        for table, version in view.state.live:
            self.pins[table.path, version.pin][commit_id] = None
            self.type_keys[table.path] = table.type_key


def newest_left(manifest: Manifest, branch_id: str) -> BranchState | None:
    """The newest state of a branch that can be read, where the newest of all cannot."""
    try:
        versions = list(islice(HeadLog.versions(manifest.location.join(branch_id)), TRIED))
    except OmniGraphError:
        return None
    for version in versions:
        with suppress(OmniGraphError):
            found = manifest.view_of(StoredVersion(branch_id, version))
            return None if found.state.head.ended else found
    return None


def is_missing(error: OmniGraphError) -> bool:
    """Whether an error says that something is not there."""
    return isinstance(error, StorageError) and error.kind == "not_found"
