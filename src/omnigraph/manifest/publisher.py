"""The publisher: one request, one compare-and-swap, and reading back what became of it.

Owns what is said of an attempt: what storage gave no clear answer to is read back, and nothing
is acknowledged that the newest state does not contain. Owns also when history leaves the head
fragment: the head stays small, and the log has few fragments, because neighbours of one size
are merged. Never tries a request again, never decides whether it is right (publish_request.py)
and never touches a data table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import pyarrow as pa

from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    StorageError,
    StorageKind,
)
from omnigraph.manifest.entries import Commit, Head, TableVersion
from omnigraph.manifest.publish_request import (
    PendingCommit,
    PublishRequest,
    next_state,
    require_live,
    version_of,
)
from omnigraph.manifest.rows import check_stamp, to_table
from omnigraph.manifest.snapshot import BranchState, find_commit
from omnigraph.manifest.state import ManifestState
from omnigraph.storage.logs.head_log import CompareAndSwapLost

MARK_ATTEMPTS = 256
"""A mark depends on nothing that others write, so that it goes on until it is through."""
FAILURES = 6
"""So many failures of storage are tried over."""
RETRIED: frozenset[StorageKind] = frozenset({"transient", "unknown"})
"""The failures that another attempt may cure."""

Mark = Callable[[BranchState], Head | None]
"""What the head of a branch is to become; None when it is so already."""

SEAL_ENTRIES = 64
FANOUT = 8
MERGED_FROM = 4
"""So many sealed fragments are worth being merged by somebody who asks for it."""


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


def publish(manifest: BranchStates, view: BranchState, request: PublishRequest) -> BranchState:
    """Make a request visible in one step on a state of a branch, or say why not.

    Raises HeadMoved when another publish came first: it is known then that this one did not
    happen, and that it never will on that state. A failure of storage is read back; what is
    not known then is told, with the commit to look for.
    """
    aimed = view.log.version + 1
    try:
        if is_published(view, request.commit):
            return view
    except StorageError as error:
        if error.kind != "not_found":
            raise
        # What was known of the branch has been collected, so that there is a newer state.
        return _read_back(manifest, view, request, None)
    state = next_state(view.state, request, aimed)
    try:
        published = _replace(view, state, {"omnigraph.commit": request.commit.id})
    except CompareAndSwapLost:
        return _read_back(manifest, view, request, None)
    except StorageError as error:
        return _read_back(manifest, view, request, error)
    _require_named(manifest, published)
    manifest.remember(published)
    return published


def is_published(view: BranchState, commit: PendingCommit, aimed: int | None = None) -> bool:
    """Whether an attempt whose answer was lost did succeed, however much came after it.

    The log is looked at only when the commit may have been sealed away already: it
    ``aimed`` at a version before the oldest in the head, or was minted before that one.
    """
    if commit.id in view.state.known_commits:
        return True
    oldest = view.state.commits[0]
    passed = aimed is not None and aimed < oldest.stored.version
    if not passed and commit.created_at >= oldest.created_at:
        return False
    return find_commit(view, commit.id) is not None


def _read_back(
    manifest: BranchStates, view: BranchState, request: PublishRequest, doubt: StorageError | None
) -> BranchState:
    """Read back what became of an attempt: a lost race may be one won, too.

    A client that repeats a put whose answer was lost sees its own success as a conflict.
    """
    aimed = view.log.version + 1
    try:
        newest = manifest.load(view.branch_id)
        if is_published(newest, request.commit, aimed):
            return newest
    except StorageError as error:
        raise _in_doubt(request, doubt or error, "unknown") from error
    if doubt is None:
        require_live(newest.state)
        raise CompareAndSwapLost
    # A version that somebody else has taken cannot become this commit's any more.
    taken = newest.log.version >= aimed
    raise _in_doubt(request, doubt, "not_published" if taken else "unknown") from doubt


def _require_named(manifest: BranchStates, published: BranchState) -> None:
    """Refuse a commit that was made where a branch has been, and everything else is gone.

    A branch is collected only after its name is gone.
    """
    if published.log.is_alone and not manifest.is_named(published.branch_id):
        branch = published.state.branch
        raise BranchNotFound(f"branch {branch} has been deleted", details={"branch": branch})


def publish_mark(
    manifest: BranchStates, branch_id: str, mark: Mark, on: BranchState | None = None
) -> BranchState:
    """Change the head of a branch without a commit; asked again after a lost race.

    A mark whose attempt was not proven is simply made again: it means the same twice. ``on`` is
    the state that the caller takes for the newest; whether it is, the first attempt shows.
    """
    failure: StorageError | None = None
    view = manifest.view_by_id(branch_id) if on is None else on
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
            if error.kind not in RETRIED or attempt >= FAILURES:
                raise
            failure = error
        else:
            manifest.remember(published)
            return published
        _pause(min(attempt, 4))
        view = manifest.load(branch_id)
    raise failure or _too_busy(view.state.branch)


def merge_log(manifest: BranchStates, branch_id: str) -> tuple[int, int]:
    """Merge the sealed fragments of a branch into one; how many went, and how many came.

    Publishes do the same by themselves, tier by tier. What the branch shows stays as it is, and
    nobody who is about to publish has to prepare anything again.
    """
    view = manifest.view_by_id(branch_id)
    for attempt in range(MARK_ATTEMPTS):
        everything = range(len(view.log.log_sizes()))
        if len(everything) < MERGED_FROM:
            return 0, 0
        head = replace(view.state.head, version=version_of(view.state, view.log.version + 1))
        state = replace(view.state, head=head)
        try:
            check_stamp(view.log.metadata)
            log = view.log.replace_head(
                to_table(state.entries()),
                sealed=view.log.log_rows(everything),
                absorbed=everything,
            )
        except CompareAndSwapLost:
            _pause(min(attempt, 4))
            view = manifest.load(branch_id)
        else:
            manifest.remember(BranchState(log, state, view.root))
            return len(everything), 1
    raise _too_busy(view.state.branch)


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


def _too_busy(branch: str) -> Conflict:
    return Conflict(
        f"branch {branch} is too busy: {MARK_ATTEMPTS} attempts to publish lost the race; retry",
        details={"branch": branch, "attempts": MARK_ATTEMPTS},
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


@dataclass(frozen=True, slots=True)
class Seal:
    """The head that stays, what is sealed, and the log positions that are merged into it."""

    state: ManifestState
    sealed: tuple[Commit | TableVersion, ...] = ()
    absorbed: tuple[int, ...] = ()


def seal(state: ManifestState, log_sizes: Sequence[int], brought: Collection[str] = ()) -> Seal:
    """Move history out of the head once there is enough of it.

    What this very publish has brought along stays: should it lose, its log is read all the same.
    """
    if len(state.recent) < SEAL_ENTRIES:
        return Seal(state)
    # The newest commit stays: it is the head's own witness.
    stays = {state.head_commit_id, *brought}
    kept: list[Commit | TableVersion] = []
    sealed: list[Commit | TableVersion] = []
    for entry in state.recent:
        (kept if isinstance(entry, Commit) and entry.id in stays else sealed).append(entry)
    if not sealed:
        return Seal(state)
    return Seal(
        replace(state, recent=tuple(kept)), tuple(sealed), _absorbed(len(sealed), log_sizes)
    )


def _absorbed(size: int, log_sizes: Sequence[int]) -> tuple[int, ...]:
    """The newest fragments to merge: a full row of the same tier, tier by tier."""
    first = len(log_sizes)
    while True:
        tier = _tier(size)
        run = first
        while run > 0 and _tier(log_sizes[run - 1]) <= tier:
            run -= 1
        if first - run < FANOUT - 1:
            return tuple(range(first, len(log_sizes)))
        size += sum(log_sizes[run:first])
        first = run


def _tier(size: int) -> int:
    tier, limit = 0, SEAL_ENTRIES * FANOUT // 2
    while size >= limit:
        tier, limit = tier + 1, limit * FANOUT
    return tier
