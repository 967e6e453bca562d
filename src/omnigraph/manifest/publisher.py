"""The publisher: one request, one compare-and-swap, a bounded number of attempts.

Owns the retry: every attempt reads, checks and writes anew, and what storage
gave no clear answer to is read back. Never decides whether a request is right
(apply.py) and never touches a data table.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from omnigraph.errors import (
    Conflict,
    OmniGraphError,
    ReadSetChanged,
    StorageError,
    StorageKind,
)
from omnigraph.manifest.apply import next_state
from omnigraph.manifest.changes import PublishRequest
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.rows import to_table
from omnigraph.manifest.sealing import seal
from omnigraph.manifest.stamp import check_stamp
from omnigraph.manifest.view import View, find_commit
from omnigraph.storage.headlog import HeadMoved
from omnigraph.storage.location import Location

ATTEMPTS = 6
RETRIED: frozenset[StorageKind] = frozenset({"transient", "unknown"})
"""The failures that another attempt may cure."""


class BranchStates(Protocol):
    """What the publisher asks of the manifest it publishes to."""

    location: Location

    def known(self, branch: str) -> View | None:
        """The newest state seen of a branch, which may be out of date."""

    def load(self, branch: str) -> View:
        """The newest state of a branch, read anew."""

    def remember(self, view: View) -> None:
        """Keep a state."""

    def identifier(self, branch: str) -> str | None:
        """What tells a branch from a later one of the same name."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one request to one branch."""

    manifest: BranchStates
    branch: str
    request: PublishRequest

    def run(self) -> View:
        """Make the request visible in one step, or say why not.

        A lost race is retried from a fresh read, with every check run again. An
        error of storage is read back: if the commit is there, it succeeded.
        """
        doubt: StorageError | None = None
        aimed: int | None = None
        view = self.manifest.known(self.branch)
        identifier = _expected_identifier(self.request, view)
        for attempt in range(ATTEMPTS):
            fresh = attempt > 0 or view is None
            try:
                if fresh or view is None:
                    view = self.manifest.load(self.branch)
                    identifier = identifier or view.identifier
                if self._is_published(view, aimed):
                    return view
                self._check_identity(identifier)
            except StorageError as error:
                if aimed is None:
                    raise
                raise _in_doubt(self.request, error, "unknown") from error
            try:
                published = self._attempt(view)
            except HeadMoved:
                doubt, aimed = None, view.state.version + 1
                if self.request.precondition is None:
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
                self.manifest.remember(published)
                return published
        return self._settle(doubt, aimed)

    def _is_published(self, view: View, aimed: int | None) -> bool:
        """Whether an attempt whose answer was lost did succeed, however much came after it.

        The log is looked at only when the commit may have been sealed away already: it
        aimed at a version before the oldest in the head, or was minted before that one.
        """
        recent = view.state.commits
        if any(commit.id == self.request.commit.id for commit in recent):
            return True
        oldest = recent[0]
        passed = aimed is not None and aimed < oldest.manifest_version
        if not passed and self.request.commit.created_at >= oldest.created_at:
            return False
        return find_commit(view, self.request.commit.id) is not None

    def _settle(self, doubt: StorageError | None, aimed: int | None) -> View:
        """Read back what became of the last attempt: a lost race may be one won, too.

        A client that repeats a put whose answer was lost sees its own success as a conflict.
        """
        try:
            view = self.manifest.load(self.branch)
            if self._is_published(view, aimed):
                return view
        except StorageError as error:
            raise _in_doubt(self.request, doubt or error, "unknown") from error
        if doubt is None or aimed is None:
            raise Conflict(
                f"branch {self.branch} is too busy: {ATTEMPTS} attempts to publish lost the race; "
                "retry",
                details={"branch": self.branch, "attempts": ATTEMPTS},
            )
        # A version that somebody else has taken cannot become this commit's any more.
        taken = view.state.version >= aimed
        raise _in_doubt(self.request, doubt, "not_published" if taken else "unknown") from doubt

    def _attempt(self, view: View) -> View:
        check_stamp(view.log.metadata)
        state = next_state(view.state, self.request)
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
            properties={"omnigraph.commit": self.request.commit.id},
        )
        if log.version != sealing.state.version:
            raise StorageError(
                f"commit {self.request.commit.id} landed at manifest version {log.version}, not "
                f"{sealing.state.version}: something else writes to {self.manifest.location}",
                kind="permanent",
            )
        return View(log, sealing.state, view.identifier)

    def _check_identity(self, expected: str | None) -> None:
        """A handle of a deleted branch must not write into a new one of the same name."""
        if self.branch == MAIN:
            return
        actual = self.manifest.identifier(self.branch)
        if actual != expected:
            raise ReadSetChanged(
                f"branch {self.branch} was deleted and created anew: read it again",
                details={
                    "member": f"branch_identifier:{self.branch}",
                    "expected": expected,
                    "actual": actual,
                },
            )


def _pause(attempt: int) -> None:
    time.sleep(random.uniform(0, 0.005 * 2**attempt))  # noqa: S311 - jitter, not a secret


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
