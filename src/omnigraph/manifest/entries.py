"""The things a manifest records: tables, their versions, commits, heads, the schema.

Owns their shape. Frozen data without behaviour; how they become rows is rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from omnigraph.lang.schema.columns import AS_WRITTEN
from omnigraph.storage.tables.table import TablePin

MAIN = "main"
"""The name of the branch that every graph has, and its id: it is never made a second time."""
EntityKind = Literal["node", "edge"]


@dataclass(frozen=True, slots=True, order=True)
class TableIdentity:
    """Which table: the stable id of its type and the incarnation of its storage."""

    table_id: int
    incarnation: int

    def __str__(self) -> str:
        return f"{self.table_id:016x}:{self.incarnation:016x}"


@dataclass(frozen=True, slots=True)
class Registration:
    """A table's present name and its path below the graph root."""

    identity: TableIdentity
    type_key: str
    path: str

    @property
    def entity_kind(self) -> EntityKind:
        """Whether the table holds nodes or edges."""
        return "node" if self.type_key.startswith("node:") else "edge"

    @property
    def type_name(self) -> str:
        """The name of the type."""
        return self.type_key.split(":", 1)[1]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One published version of a table; ``version`` counts up by one, the pin says what it is."""

    identity: TableIdentity
    version: int
    pin: TablePin
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A table is gone from this version on."""

    identity: TableIdentity
    version: int


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of the manifest of a branch, as storage counts them: from one for each branch."""

    branch_id: str
    version: int


MESSAGE = "message"
"""Where the metadata of a commit note what somebody said about it."""
SCHEMA_STEPS = "schema_steps"
"""Where the metadata of a commit note the steps that changed the schema."""


@dataclass(frozen=True, slots=True, repr=False)
class Commit:
    """One graph commit; ``branch`` is None for main, ``created_at`` is µs since the epoch.

    ``manifest_version`` goes on counting where a branch was forked, ``stored`` says where the
    state lies that the commit published.
    """

    id: str
    branch: str | None
    manifest_version: int
    parent_id: str | None
    merged_parent_id: str | None
    actor: str | None
    created_at: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    stored: StoredVersion = StoredVersion(MAIN, 1)

    @property
    def message(self) -> str | None:
        """What somebody said about it, if anybody did."""
        found = self.metadata.get(MESSAGE)
        return found if isinstance(found, str) else None

    @property
    def time(self) -> datetime:
        """When it was made, in UTC."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.created_at)

    def __repr__(self) -> str:
        from omnigraph.display.history import commit_text

        return commit_text(self)

    def _repr_html_(self) -> str:
        from omnigraph.display.history import commit_html

        return commit_html(self)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a branch left another: at which of its commits and versions.

    ``history`` are the versions in whose logs the older commits are found, and commits before
    ``oldest_commit_id`` had been reclaimed by then.
    """

    branch: str
    manifest_version: int
    stored: StoredVersion
    commit_id: str
    history: tuple[StoredVersion, ...] = ()
    oldest_commit_id: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What a branch is at one version: its name and id, its newest commit, what was collected.

    ``epoch`` counts the collections that this branch has seen: files that were staged under
    one are never published under another. Commits older than ``oldest_commit_id`` have been
    reclaimed. A branch that has ``ended`` was deleted.
    """

    branch: str
    commit_id: str
    parent_id: str | None
    branch_id: str = MAIN
    version: int = 1
    epoch: int = 0
    oldest_commit_id: str | None = None
    origin: Origin | None = None
    ended: bool = False

    @property
    def first_version(self) -> int:
        """The manifest version that the branch began with, which storage calls its first."""
        return 1 if self.origin is None else self.origin.manifest_version


@dataclass(frozen=True, slots=True)
class SchemaContract:
    """The accepted schema: its source and its IR, byte for byte.

    ``columns`` says which columns are called otherwise than their properties, and which are left
    behind.
    """

    source: str
    ir: str
    shape_hash: str
    ir_hash: str
    identity_domain: str
    columns: str = AS_WRITTEN
