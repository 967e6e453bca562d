"""Reports: what a cleanup removed, or would remove.

Owns the shape. Plain data: how it is shown is up to who asked.
"""

from __future__ import annotations

from dataclasses import dataclass


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
