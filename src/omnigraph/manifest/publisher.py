"""The publisher: one request, one compare-and-swap, a bounded number of attempts.

Owns the retry: every attempt reads, checks and writes again, what storage gave no clear
answer to is read back, and nothing is acknowledged that the newest state does not contain.
Never decides whether a request is right (apply.py) and never touches a data table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import pyarrow as pa

from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    OmniGraphError,
    StorageError,
    StorageKind,
)
from omnigraph.manifest.apply import next_state, version_of
from omnigraph.manifest.branch_state import BranchState, find_commit
from omnigraph.manifest.entries import Head
from omnigraph.manifest.publish_request import PublishRequest
from omnigraph.manifest.rows import to_table
from omnigraph.manifest.sealing import seal
from omnigraph.manifest.stamp import check_stamp
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.tables.head_log import CompareAndSwapLost

ATTEMPTS = 6
MARK_ATTEMPTS = 256
"""A mark depends on nothing that others write, so that it goes on until it is through."""
RETRIED: frozenset[StorageKind] = frozenset({"transient", "unknown"})
"""The failures that another attempt may cure."""

Mark = Callable[[BranchState], Head | None]
"""What the head of a branch is to become; None when it is so already."""


class BranchStates(Protocol):
    """What the publisher asks of the manifest it publishes to."""

    def view_by_id(self, branch_id: str) -> BranchState:
        """The newest state of a branch."""

    def load(self, branch_id: str) -> BranchState:
        """The newest state of a branch, read from storage."""

    def remember(self, view: BranchState) -> None:
        """Keep a state."""

    def is_named(self, branch_id: str) -> bool:
        """Whether a name means this branch."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one request to one branch."""

    manifest: BranchStates
    branch_id: str
    request: PublishRequest
    known: BranchState | None = None
    """The newest state that the caller has seen: the first attempt is made on it."""

    def run(self) -> BranchState:
        """Make the request visible in one step, or say why not.

        A lost race is retried from a fresh read, with every check run again. An
        error of storage is read back: if the commit is there, it succeeded.
        """
        doubt: StorageError | None = None
        aimed: int | None = None
        view = self.known
        for attempt in range(ATTEMPTS):
            fresh = attempt > 0 or view is None
            try:
                if fresh or view is None:
                    view = self.manifest.load(self.branch_id)
                if self._is_published(view, aimed):
                    return view
            except StorageError as error:
                if error.kind == "not_found" and not fresh:
                    view = None  # what was known of the branch has been collected: read it
                    continue
                if aimed is None:
                    raise
                raise _in_doubt(self.request, error, "unknown") from error
            try:
                published = self._attempt(view)
            except CompareAndSwapLost:
                doubt, aimed = None, view.log.version + 1
                if self.request.precondition is None:
                    _pause(attempt)
            except StorageError as error:
                doubt, aimed = error, view.log.version + 1
                if error.kind not in RETRIED:
                    break
                _pause(attempt)
            except OmniGraphError:
                if fresh:
                    raise
            else:
                self._require_named(published)
                self.manifest.remember(published)
                return published
        return self._settle(doubt, aimed)

    def _require_named(self, published: BranchState) -> None:
        """Refuse a commit that was made where a branch has been, and everything else is gone.

        A branch is collected only after its name is gone.
        """
        if published.log.is_alone and not self.manifest.is_named(self.branch_id):
            branch = published.state.branch
            raise BranchNotFound(f"branch {branch} has been deleted", details={"branch": branch})

    def _is_published(self, view: BranchState, aimed: int | None) -> bool:
        """Whether an attempt whose answer was lost did succeed, however much came after it.

        The log is looked at only when the commit may have been sealed away already: it
        aimed at a version before the oldest in the head, or was minted before that one.
        """
        known = view.state.known_commits
        if self.request.commit.id in known:
            return True
        oldest = view.state.commits[0]
        passed = aimed is not None and aimed < oldest.stored.version
        if not passed and self.request.commit.created_at >= oldest.created_at:
            return False
        return find_commit(view, self.request.commit.id) is not None

    def _settle(self, doubt: StorageError | None, aimed: int | None) -> BranchState:
        """Read back what became of the last attempt: a lost race may be one won, too.

        A client that repeats a put whose answer was lost sees its own success as a conflict.
        """
        try:
            view = self.manifest.load(self.branch_id)
            if self._is_published(view, aimed):
                return view
        except StorageError as error:
            raise _in_doubt(self.request, doubt or error, "unknown") from error
        if doubt is None or aimed is None:
            raise _too_busy(view, ATTEMPTS)
        # A version that somebody else has taken cannot become this commit's any more.
        taken = view.log.version >= aimed
        raise _in_doubt(self.request, doubt, "not_published" if taken else "unknown") from doubt

    def _attempt(self, view: BranchState) -> BranchState:
        state = next_state(view.state, self.request, view.log.version + 1)
        return _replace(view, state, {"omnigraph.commit": self.request.commit.id})


def publish_mark(manifest: BranchStates, branch_id: str, mark: Mark) -> BranchState:
    """Change the head of a branch without a commit; asked again after a lost race.

    A mark whose attempt was not proven is simply made again: it means the same twice.
    """
    failure: StorageError | None = None
    view = manifest.view_by_id(branch_id)
    for attempt in range(MARK_ATTEMPTS):
        head = mark(view)
        if head is None:
            return view
        head = replace(head, version=version_of(view.state, view.log.version + 1))
        try:
            published = _replace(view, replace(view.state, head=head), {})
        except CompareAndSwapLost:
            failure = None
        except StorageError as error:
            if error.kind not in RETRIED or attempt >= ATTEMPTS:
                raise
            failure = error
        else:
            manifest.remember(published)
            return published
        _pause(min(attempt, 4))
        view = manifest.load(branch_id)
    raise failure or _too_busy(view, MARK_ATTEMPTS)


def _replace(view: BranchState, state: ManifestState, properties: dict[str, str]) -> BranchState:
    check_stamp(view.log.metadata)
    brought = state.known_commits.keys() - view.state.known_commits.keys()
    sealing = seal(state, view.log.log_sizes(), brought)
    sealed = None
    if sealing.sealed:
        sealed = to_table(sealing.sealed)
        if sealing.absorbed:
            sealed = pa.concat_tables([view.log.log_rows(sealing.absorbed), sealed])
    log = view.log.replace_head(
        to_table(sealing.state.entries()),
        sealed=sealed,
        absorbed=sealing.absorbed,
        properties=properties,
    )
    return BranchState(log, sealing.state, view.root)


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 - jitter, not a secret


def _too_busy(view: BranchState, attempts: int) -> Conflict:
    branch = view.state.branch
    return Conflict(
        f"branch {branch} is too busy: {attempts} attempts to publish lost the race; retry",
        details={"branch": branch, "attempts": attempts},
    )


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
