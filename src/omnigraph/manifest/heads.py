"""Heads: the few rows that tell what every branch of a graph is, read without its tables.

Owns a look at all branches at once, a bounded number of them at a time: what it costs depends on
how many branches there are, and not on how many types. A branch that cannot be read is told, and
keeps nobody from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.manifest.entries import MAIN, Commit, Head, TableVersion
from omnigraph.manifest.rows import check_stamp, from_table
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import HeadLog

CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class BranchHead:
    """One branch: its head and newest commit; or why neither can be read."""

    name: str
    branch_id: str
    head: Head | None = None
    commit: Commit | None = None
    has_own_tables: bool = False
    """Whether something it shows was written on it, and not where it was forked from."""
    error: str | None = None
    named_at: int = 0
    """When it was made; 0 for main. Microseconds since the epoch, as for commits."""

    @property
    def touched_at(self) -> int:
        """When somebody last did something with it that is known."""
        return max(self.named_at, 0 if self.commit is None else self.commit.created_at)

    @property
    def states(self) -> int:
        """How many states it has had since it began, at least; 0 if that is unknown."""
        return 0 if self.head is None else self.head.version - self.head.first_version + 1


def branch_heads(manifest: Manifest) -> list[BranchHead]:
    """Every branch that has a name and has not ended, main first, then by name."""
    names = manifest.refs.read().names
    named = sorted((name, ref.id) for name, ref in names.items() if ref.kind == "branch")

    def read(one: tuple[str, str]) -> BranchHead | None:
        return _read(manifest, *one)

    with ThreadPoolExecutor(CONCURRENCY) as pool:
        found = list(pool.map(read, [(MAIN, MAIN), *named]))
    times = {name: ref.created_at for name, ref in names.items()}
    return [replace(one, named_at=times.get(one.name, 0)) for one in found if one is not None]


def _read(manifest: Manifest, name: str, branch_id: str) -> BranchHead | None:
    for attempt in range(2):
        try:
            return _newest(manifest, name, branch_id)
        except StorageError as error:
            if error.kind != "not_found":
                return BranchHead(name, branch_id, error=error.message)
            # Its newest version was collected meanwhile: then there is another, or it is gone.
            ref = manifest.refs.read().names.get(name)
            if name != MAIN and (ref is None or ref.id != branch_id):
                return None
            if attempt:
                return BranchHead(name, branch_id, error=error.message)
        except OmniGraphError as error:
            return BranchHead(name, branch_id, error=error.message)
    raise AssertionError("the second attempt has returned")


def _newest(manifest: Manifest, name: str, branch_id: str) -> BranchHead | None:
    log = HeadLog.open(manifest.location.join(branch_id))
    check_stamp(log.metadata)
    kind = pc.field("object_type")
    own = pc.field("table_branch") == name
    if name == MAIN:
        own = pc.field("table_branch").is_null()
    entries: Sequence[object] = [
        *from_table(
            log.head(kind.isin(["graph_head", "graph_commit"]) | ((kind == "table_version") & own))
        )
    ]
    head = next((entry for entry in entries if isinstance(entry, Head)), None)
    if head is None:
        return BranchHead(name, branch_id, error="its manifest has no head")
    if head.ended:
        return None
    commits = (entry for entry in entries if isinstance(entry, Commit))
    commit = next((one for one in commits if one.id == head.commit_id), None)
    has_own = any(isinstance(entry, TableVersion) for entry in entries)
    return BranchHead(name, branch_id, head, commit, has_own)
