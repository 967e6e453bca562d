"""The manifest of one graph: reading its states and publishing to it.

Owns the compare-and-swap and its bounded retry: every attempt reads, checks
and writes anew. Keeps the newest state of each branch it has seen, and proves
it fresh with one version probe.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Literal

import pyarrow as pa

from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    NotFound,
    OmniGraphError,
    ReadSetChanged,
    StorageError,
    StorageKind,
)
from omnigraph.manifest.apply import next_state
from omnigraph.manifest.branch_names import native_name
from omnigraph.manifest.changes import PublishRequest
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.rows import Entry, from_table, to_table
from omnigraph.manifest.sealing import seal
from omnigraph.manifest.stamp import check_stamp
from omnigraph.manifest.state import ManifestState, fold
from omnigraph.storage.headlog import BranchRef, HeadLog, HeadMoved
from omnigraph.storage.location import Location
from omnigraph.storage.objects import ControlObjects

ATTEMPTS = 6
RETRIED: frozenset[StorageKind] = frozenset({"transient", "unknown"})
"""The failures that another attempt may cure."""
MANIFEST_NAME = "__manifest"


@dataclass(frozen=True, slots=True)
class View:
    """One state of a branch together with the storage version it was read from."""

    log: HeadLog
    state: ManifestState
    identifier: str | None
    """Tells a branch from a later one of the same name; None for main."""


class Manifest:
    """Reads and publishes the manifest below one graph root."""

    def __init__(self, root: Location) -> None:
        self.location = root.join(MANIFEST_NAME)
        self._views: dict[str, View] = {}
        self._objects = ControlObjects(self.location)
        self._lock = Lock()

    # -- reading ---------------------------------------------------------------------

    def view(self, branch: str = MAIN) -> View:
        """The newest state of a branch."""
        known = self._views.get(branch)
        if known is not None and self._is_fresh(known):
            return known
        return self._load(branch)

    def view_at(self, commit: Commit) -> View:
        """The state a commit published."""
        branch = commit.branch or MAIN
        identifier = self._identifier(branch)
        try:
            log = HeadLog.open(self.location, native_name(branch), commit.manifest_version)
        except StorageError as error:
            if error.kind == "not_found":
                raise _gone(commit, "its version of the manifest is not there") from error
            raise
        view = self._read(log, branch, identifier)
        if view.state.head_commit_id != commit.id:
            raise _gone(commit, f"branch {branch} was deleted and created anew")
        return view

    def _is_fresh(self, view: View) -> bool:
        branch = view.state.branch
        if self._identifier(branch) != view.identifier:
            return False
        return view.log.latest_version() == view.log.version

    def _load(self, branch: str) -> View:
        identifier = self._identifier(branch)
        log = HeadLog.open(self.location, native_name(branch))
        view = self._read(log, branch, identifier)
        self._remember(view)
        return view

    def _read(self, log: HeadLog, branch: str, identifier: str | None) -> View:
        check_stamp(log.metadata)
        state = fold(from_table(log.head()), version=log.version, branch=branch)
        return View(log, state, identifier)

    def _remember(self, view: View) -> None:
        with self._lock:
            known = self._views.get(view.state.branch)
            same = known is not None and known.identifier == view.identifier
            if not same or known is None or known.log.version <= view.log.version:
                self._views[view.state.branch] = view

    # -- lineage ---------------------------------------------------------------------

    def commits(self, branch: str = MAIN) -> list[Commit]:
        """The commits reachable on a branch, newest first."""
        view = self.view(branch)
        commits = [entry for entry in self._history(view) if isinstance(entry, Commit)]
        commits.sort(key=lambda commit: (commit.manifest_version, commit.created_at, commit.id))
        return commits[::-1]

    def find_commit(self, commit_id: str) -> Commit:
        """A commit of any branch by its id."""
        for branch in (MAIN, *sorted(self.branches())):
            try:
                view = self.view(branch)
            except BranchNotFound:
                continue  # deleted since it was listed
            for entry in self._history(view):
                if isinstance(entry, Commit) and entry.id == commit_id:
                    return entry
        raise NotFound(f"there is no commit {commit_id}", details={"commit_id": commit_id})

    @staticmethod
    def _history(view: View) -> Iterator[Entry]:
        # Newest first as a whole: most look-ups are answered without touching the log.
        yield from view.state.recent
        if view.log.log_sizes():
            yield from from_table(view.log.log())

    # -- publishing --------------------------------------------------------------------

    def publish(self, branch: str, request: PublishRequest) -> View:
        """Make a request visible in one step, or say why not.

        A lost race is retried from a fresh read, with every check run again. An
        error of storage is read back: if the commit is there, it succeeded.
        """
        doubt: StorageError | None = None
        aimed: int | None = None
        view = self._views.get(branch)
        identifier = _expected_identifier(request, view)
        for attempt in range(ATTEMPTS):
            fresh = attempt > 0 or view is None
            try:
                if fresh or view is None:
                    view = self._load(branch)
                    identifier = identifier or view.identifier
                if self._is_published(view, request, aimed):
                    return view
                self._check_identity(branch, identifier)
            except StorageError as error:
                if aimed is None:
                    raise
                raise _in_doubt(request, error, "unknown") from error
            try:
                published = self._attempt(view, request)
            except HeadMoved:
                doubt, aimed = None, view.state.version + 1
                _pause(attempt)
            except StorageError as error:
                doubt, aimed = error, view.state.version + 1
                if error.kind not in RETRIED:
                    break
                _pause(attempt)
            except OmniGraphError:
                if fresh:
                    raise
            else:
                self._remember(published)
                return published
        return self._settle(branch, request, doubt, aimed)

    def _is_published(self, view: View, request: PublishRequest, aimed: int | None) -> bool:
        """Whether an attempt whose answer was lost did succeed, however much came after it.

        The log is looked at only when the commit may have been sealed away already: it
        aimed at a version before the oldest in the head, or was minted before that one.
        """
        recent = view.state.commits
        if any(commit.id == request.commit.id for commit in recent):
            return True
        oldest = recent[0]
        passed = aimed is not None and aimed < oldest.manifest_version
        if not passed and request.commit.created_at >= oldest.created_at:
            return False
        return any(
            isinstance(entry, Commit) and entry.id == request.commit.id
            for entry in self._history(view)
        )

    def _settle(
        self, branch: str, request: PublishRequest, doubt: StorageError | None, aimed: int | None
    ) -> View:
        """Read back what became of the last attempt: a lost race may be one won, too.

        A client that repeats a put whose answer was lost sees its own success as a conflict.
        """
        try:
            view = self._load(branch)
            if self._is_published(view, request, aimed):
                return view
        except StorageError as error:
            raise _in_doubt(request, doubt or error, "unknown") from error
        if doubt is None or aimed is None:
            raise Conflict(
                f"branch {branch} is too busy: {ATTEMPTS} attempts to publish lost the race; retry",
                details={"branch": branch, "attempts": ATTEMPTS},
            )
        # A version that somebody else has taken cannot become this commit's any more.
        taken = view.state.version >= aimed
        raise _in_doubt(request, doubt, "not_published" if taken else "unknown") from doubt

    def _attempt(self, view: View, request: PublishRequest) -> View:
        check_stamp(view.log.metadata)
        state = next_state(view.state, request)
        sealing = seal(state, view.log.log_sizes())
        sealed = None
        if sealing.sealed:
            sealed = to_table(sealing.sealed)
            if sealing.absorbed:
                sealed = pa.concat_tables([view.log.log_rows(sealing.absorbed), sealed])
        log = view.log.replace_head(
            to_table(sealing.state.entries()),
            sealed=sealed,
            absorbed=sealing.absorbed,
            properties={"omnigraph.commit": request.commit.id},
        )
        if log.version != sealing.state.version:
            raise StorageError(
                f"commit {request.commit.id} landed at manifest version {log.version} instead of "
                f"{sealing.state.version}: something else writes to {self.location}",
                kind="permanent",
            )
        return View(log, sealing.state, view.identifier)

    def _check_identity(self, branch: str, expected: str | None) -> None:
        """A handle of a deleted branch must not write into a new one of the same name."""
        if branch == MAIN:
            return
        actual = self._identifier(branch)
        if actual != expected:
            raise ReadSetChanged(
                f"branch {branch} was deleted and created anew: read it again",
                details={
                    "member": f"branch_identifier:{branch}",
                    "expected": expected,
                    "actual": actual,
                },
            )

    # -- branches --------------------------------------------------------------------

    def branches(self) -> dict[str, BranchRef]:
        """The branches besides main, by name."""
        return self._main_log().branches()

    def create_branch(self, name: str, source: str) -> None:
        """Fork a branch from the head of another."""
        view = self.view(source)
        view.log.create_branch(name)

    def delete_branch(self, name: str) -> None:
        """Remove a branch; what other branches share with it stays."""
        self._main_log().delete_branch(name)
        with self._lock:
            self._views.pop(name, None)

    def has_storage_of(self, name: str) -> bool:
        """Whether storage holds something for a branch: it exists, or is just being made."""
        try:
            HeadLog.open(self.location, native_name(name))
        except StorageError as error:
            if error.kind == "not_found":
                return False
            raise
        return True

    def _main_log(self) -> HeadLog:
        known = self._views.get(MAIN)
        return known.log if known is not None else HeadLog.open(self.location)

    def _identifier(self, branch: str) -> str | None:
        """What tells the branch of this name from others; None for main, which never changes."""
        if branch == MAIN:
            return None
        reference = HeadLog.find_branch(self._objects, branch) or self.branches().get(branch)
        if reference is None:
            raise BranchNotFound(f"there is no branch {branch}", details={"branch": branch})
        return reference.identifier


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 - jitter, not a secret


def _gone(commit: Commit, reason: str) -> NotFound:
    return NotFound(f"commit {commit.id} is gone: {reason}", details={"commit_id": commit.id})


def _expected_identifier(request: PublishRequest, view: View | None) -> str | None:
    """The branch a request was made for: the one it names, or the one that was read before."""
    if request.precondition is not None and request.precondition.branch_identifier is not None:
        return request.precondition.branch_identifier
    return view.identifier if view is not None else None


def _in_doubt(
    request: PublishRequest, error: StorageError, outcome: Literal["unknown", "not_published"]
) -> StorageError:
    told = "it was not published" if outcome == "not_published" else "it is not visible now"
    return StorageError(
        f"storage failed while commit {request.commit.id} was being published, and {told}: "
        f"{error.message}",
        kind=error.kind,
        details={**error.details, "commit_id": request.commit.id, "outcome": outcome},
    )
