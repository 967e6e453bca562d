"""What verifying a graph found: findings, the branches that are whole, and what was looked at.

Owns the kinds of findings, which are stable words, and how many commits and entities of each are
named. Plain data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

SHOWN = 10
"""So many commits and entities of a finding are named; all are counted."""

Severity = Literal["damage", "note"]
FindingKind = Literal[
    # The manifest
    "names_unreadable",
    "branch_unreadable",
    "branch_misnamed",
    "history_unreadable",
    "ancestry_cut",
    "commit_lost",
    "schema_unreadable",
    # Files
    "version_missing",
    "version_unreadable",
    "version_altered",
    "file_missing",
    "file_size",
    "file_unreadable",
    "checksum",
    "row_count",
    # Rows
    "duplicate_id",
    "duplicate_row_id",
    "id_not_derived",
    "end_missing",
    "rule_broken",
    # Indexes
    "index_file_missing",
    "index_size",
    "index_unreadable",
    "index_disagrees",
    # Nothing is lost by these
    "copy_lags",
    "deletion_unfinished",
    "foreign_drift",
    "intent_expired",
    "intent_unreadable",
]
NOTES: frozenset[FindingKind] = frozenset(
    {
        "copy_lags",
        "deletion_unfinished",
        "foreign_drift",
        "intent_expired",
        "intent_unreadable",
    }
)
DERIVED: frozenset[FindingKind] = frozenset(
    {"index_file_missing", "index_size", "index_unreadable", "index_disagrees"}
)
"""Damage of what can be made again from the rows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth a word.

    ``path`` is relative to the root of the graph. ``commits`` are the newest of the affected ones
    that are still kept, ``entities`` the ids of the first affected entities; both are counted in
    full.
    """

    kind: FindingKind
    message: str
    path: str | None = None
    type_key: str | None = None
    property_name: str | None = None
    rule: str | None = None
    branches: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    commit_count: int = 0
    entities: tuple[str, ...] = ()
    entity_count: int = 0

    @property
    def severity(self) -> Severity:
        """Whether something is lost or wrong."""
        return "note" if self.kind in NOTES else "damage"

    def affecting(self, commits: Iterable[str], branches: Iterable[str]) -> Finding:
        """The same with the commits, newest first, and the branches that it affects."""
        every = tuple(dict.fromkeys(commits))
        return replace(
            self,
            commits=every[:SHOWN],
            commit_count=len(every),
            branches=tuple(sorted(set(branches))),
        )


@dataclass(frozen=True, slots=True)
class BranchVerdict:
    """What became known of a branch.

    ``newest_whole_commit_id`` is the newest of its commits, of those that are kept, that no
    damage affects; None if there is none, or if nobody could look.
    """

    branch: str
    is_whole: bool
    head_commit_id: str | None = None
    newest_whole_commit_id: str | None = None
    commits: int = 0


@dataclass(frozen=True, slots=True)
class Looked:
    """How much was looked at."""

    branches: int = 0
    commits: int = 0
    table_versions: int = 0
    files: int = 0
    rows: int = 0
    index_values: int = 0
    checksums: int = 0
    unverified: int = 0
    """Files that no checksum was recorded of when they were written."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Everything that was found."""

    deep: bool
    findings: tuple[Finding, ...] = ()
    branches: tuple[BranchVerdict, ...] = ()
    looked: Looked = field(default_factory=Looked)

    @property
    def damage(self) -> tuple[Finding, ...]:
        """The findings that say that something is lost or wrong."""
        return tuple(one for one in self.findings if one.severity == "damage")

    @property
    def is_sound(self) -> bool:
        """Whether nothing is lost or wrong."""
        return not self.damage

    @property
    def whole_branches(self) -> tuple[str, ...]:
        """The branches that no damage affects."""
        return tuple(one.branch for one in self.branches if one.is_whole)
