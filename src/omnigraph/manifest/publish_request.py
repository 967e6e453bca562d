"""What a publish asks for: changes of tables, a commit, and what must still hold.

Owns the request as plain data: it is staged, retried and written down as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.manifest.entries import Commit, Registration, SchemaContract, TableIdentity
from omnigraph.storage.objects.clock import microseconds_now, new_id
from omnigraph.storage.tables.table import TablePin


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """A new table at its first version."""

    table: Registration
    pin: TablePin


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Another name for a table; its path and versions stay."""

    identity: TableIdentity
    type_key: str


@dataclass(frozen=True, slots=True)
class AdvanceTable:
    """A table's next version; ``expected`` is the version it was built from."""

    identity: TableIdentity
    expected: int
    pin: TablePin


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table that goes; ``expected`` is the version it was dropped at."""

    identity: TableIdentity
    expected: int


TableChange = RegisterTable | RenameTable | AdvanceTable | DropTable


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """The commit a publish makes; minted once, so that a retry is the same commit."""

    id: str
    created_at: int
    actor: str | None = None
    merged_parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def mint(
        cls,
        actor: str | None = None,
        *,
        merged_parent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> PendingCommit:
        """A new commit, now."""
        return cls(new_id(), microseconds_now(), actor, merged_parent_id, dict(metadata or {}))


@dataclass(frozen=True, slots=True)
class ExactHead:
    """The publish is valid only on this head commit of this very branch, in this epoch."""

    commit_id: str
    branch_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """One atomic step of a branch.

    ``ancestors`` are the commits that a merge brings along, which the branch did not know: so
    what a commit descends from stays known when the branch is gone that it came from.
    """

    commit: PendingCommit
    changes: tuple[TableChange, ...] = ()
    schema: SchemaContract | None = None
    precondition: ExactHead | None = None
    ancestors: tuple[Commit, ...] = ()
