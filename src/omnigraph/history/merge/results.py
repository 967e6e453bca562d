"""What a merge reports: its outcome, its commit, and what a trial run would do.

Owns their shape; imported by the façade and whoever renders them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from omnigraph.errors import MergeConflict
from omnigraph.history.merge.resolution import Side
from omnigraph.manifest.entries import Commit

Outcome = Literal["already_up_to_date", "fast_forward", "merged"]


@dataclass(frozen=True, slots=True)
class MergedRowCounts:
    """What a merge does to one type; ``combined`` of the updated rows mix both sides."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    combined: int = 0


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What became of a merge.

    ``commit`` is None when nothing was to be merged, and for a dry run. A dry run says in
    ``counts`` what would happen to each type and in ``conflicts`` what stands in the way;
    ``resolved`` are the conflicts that were settled, with the side that won.
    """

    source: str
    target: str
    outcome: Outcome
    commit: Commit | None = None
    actor: str | None = None
    base_commit_id: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    is_dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[tuple[MergeConflict, Side], ...] = ()
    counts: Mapping[str, MergedRowCounts] = field(default_factory=dict)

    def with_deletion(self, error: str | None) -> MergeResult:
        """The same, after the source branch was to be deleted."""
        return replace(self, branch_deleted=error is None, branch_delete_error=error)
