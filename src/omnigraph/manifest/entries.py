"""The things a manifest records: tables, their versions, commits, heads, the schema.

Owns their shape. Frozen data without behaviour; how they become rows is rows.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.storage.table import TablePin

MAIN = "main"
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
class Commit:
    """One graph commit; ``branch`` is None for main, ``created_at`` is µs since the epoch."""

    id: str
    branch: str | None
    manifest_version: int
    parent_id: str | None
    merged_parent_id: str | None
    actor: str | None
    created_at: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of a branch; a branch without commits of its own has no head entry."""

    branch: str
    commit_id: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class SchemaContract:
    """The accepted schema: its source and its IR, byte for byte."""

    source: str
    ir: str
    shape_hash: str
    ir_hash: str
    identity_domain: str
