"""Views: a state of a branch together with the storage version it was read from.

Owns the pair, the snapshot that it shows, and the way from it into history: the branch's own
log, and the logs of the versions that it was forked from. Immutable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow.compute as pc

from omnigraph.manifest.entries import Commit, StoredVersion
from omnigraph.manifest.publish_request import ExactHead
from omnigraph.manifest.rows import from_table
from omnigraph.manifest.snapshot import Snapshot, snapshot_of
from omnigraph.manifest.state import ManifestState, line_of
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.head_log import HeadLog

MANIFEST_NAME = "__manifest"
_IS_COMMIT = pc.field("object_type") == "graph_commit"


@dataclass(frozen=True)
class BranchState:
    """One state of a branch together with the storage version it was read from."""

    log: HeadLog
    state: ManifestState
    root: Location
    """Where the graph lies."""

    @property
    def branch_id(self) -> str:
        """What tells the branch from every other."""
        return self.state.branch_id

    @cached_property
    def snapshot(self) -> Snapshot:
        """What the state shows; made once, for every reader of it."""
        return snapshot_of(self.state, self.root)

    @property
    def stored(self) -> StoredVersion:
        """Where the state lies."""
        return StoredVersion(self.branch_id, self.log.version)

    @property
    def exact(self) -> ExactHead:
        """What must still be so for a write that was built on it to be published."""
        return ExactHead(self.state.head_commit_id, self.branch_id, self.state.epoch)

    @property
    def history(self) -> tuple[StoredVersion, ...]:
        """The versions whose logs hold what is not in the head, this one first."""
        origin = self.state.head.origin
        inherited = () if origin is None else origin.history
        return (self.stored, *inherited) if self.log.log_sizes() else inherited


def commits_of(view: BranchState) -> list[Commit]:
    """The commits of a branch, newest first: each the first parent of the one before it."""
    return list(line_of(view.state.head_commit_id, ancestors_of(view)))


def retained_line(view: BranchState) -> Iterator[Commit]:
    """Those of a branch's commits that can still be read, newest first."""
    for commit in commits_of(view):
        yield commit
        if commit.id == view.state.head.oldest_commit_id:
            return


def ancestors_of(view: BranchState) -> Mapping[str, Commit]:
    """Every commit that a branch descends from, over all parents of every merge, by id."""
    sealed = {commit.id: commit for commit in _sealed(view, _IS_COMMIT)}
    return {**sealed, **view.state.known_commits}


def find_commit(view: BranchState, commit_id: str) -> Commit | None:
    """One commit that a branch descends from; most are found without touching the log."""
    wanted = pc.field("object_id") == commit_id
    return view.state.known_commits.get(commit_id) or next(_sealed(view, wanted), None)


def _sealed(view: BranchState, where: pc.Expression) -> Iterator[Commit]:
    """The commits of the logs; the filter runs in the scan, so other rows are never decoded."""
    for stored in view.history:
        log = view.log
        if stored != view.stored:
            log = HeadLog.open(view.root.join(MANIFEST_NAME, stored.branch_id), stored.version)
        entries = from_table(log.log(where))
        yield from (entry for entry in entries if isinstance(entry, Commit))
