"""Reports: what a cleanup removed, what indexes a branch has, what building and optimizing did.

Owns their shape, which is that of their JSON. Frozen data without behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Coverage = Literal["complete", "partial", "pending", "none", "unasked"]
"""`pending` is wanted and not there, `none` is a declaration that asks for no index.

`unasked` is there and not wanted any more: it does no harm.
"""
Done = Literal["built", "extended", "rebuilt"]


CleanupStep = Literal["branches", "epochs", "files"]


@dataclass(frozen=True, slots=True)
class CleanupProgress:
    """How far a cleanup is: branches read, epochs begun, files removed."""

    step: CleanupStep
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DirectoryCleanup:
    """One directory of the graph.

    ``type_key`` is `__manifest`, or the path again, for a directory that is no table.
    ``error`` says why a directory was left alone, or only half done.
    """

    type_key: str
    path: str
    bytes_removed: int = 0
    files_removed: int = 0
    old_versions_removed: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What was removed; for a dry run, what would be."""

    tables: tuple[DirectoryCleanup, ...]
    commits_reclaimed: int
    dry_run: bool = False
    notices: tuple[str, ...] = ()
    """What the sweep of unfinished writes left for a person to look at."""

    @property
    def bytes_removed(self) -> int:
        """Bytes in all."""
        return sum(table.bytes_removed for table in self.tables)

    @property
    def files_removed(self) -> int:
        """Files in all."""
        return sum(table.files_removed for table in self.tables)

    @property
    def old_versions_removed(self) -> int:
        """Versions of tables and of the manifest in all."""
        return sum(table.old_versions_removed for table in self.tables)

    @property
    def errors(self) -> dict[str, str]:
        """What went wrong, by directory."""
        return {table.path: table.error for table in self.tables if table.error is not None}


@dataclass(frozen=True, slots=True)
class IndexState:
    """One index that is there or wanted.

    Rows that are not covered are found all the same: they are scanned. ``reason`` says why
    there is no index, or what is special about it.
    """

    type_key: str
    property: str
    kind: str | None
    state: Coverage
    rows_covered: int
    rows_total: int
    uncovered_fragments: int = 0
    segments: int = 0
    size_bytes: int = 0
    why: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """All indexes of a branch, by type and property."""

    branch: str
    commit_id: str
    indexes: tuple[IndexState, ...]

    @property
    def pending(self) -> tuple[IndexState, ...]:
        """Those that are wanted and not there."""
        return tuple(index for index in self.indexes if index.state == "pending")


@dataclass(frozen=True, slots=True)
class IndexChange:
    """One index that was built, extended to more rows, or built again."""

    type_key: str
    property: str
    kind: str
    action: Done
    rows: int
    """How many rows were read for it; for vectors, how many of them."""


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """A wanted index that was not built, and why."""

    type_key: str
    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What building indexes did; without any changes there is no commit."""

    branch: str
    commit_id: str | None
    changes: tuple[IndexChange, ...] = ()
    pending: tuple[PendingIndex, ...] = ()


# -- optimize ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatasetOptimize:
    """What was done to one type, or would be; `__manifest` is the log of the branch.

    ``skipped`` says why what was worth doing was not done, or not all of it. ``indexes_dropped``
    are the columns whose index nobody asks for any more. ``lance_version`` is what is published.
    """

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    rows_rewritten: int = 0
    committed: bool = False
    skipped: str | None = None
    published_dataset_version: int | None = None
    lance_version: int | None = None
    indexes: tuple[IndexChange, ...] = ()
    indexes_dropped: tuple[str, ...] = ()
    pending: tuple[PendingIndex, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether anything was done, or would be."""
        return bool(self.fragments_removed or self.indexes or self.indexes_dropped)


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What optimizing a branch did, or would do; without anything to do there is no commit."""

    branch: str
    commit_id: str | None
    datasets: tuple[DatasetOptimize, ...] = ()
    engine: str = "inline"
    dry_run: bool = False

    @property
    def fragments_removed(self) -> int:
        """Fragments of types that are gone, in all."""
        return sum(one.fragments_removed for one in self.datasets)
