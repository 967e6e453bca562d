"""Changes: one entity that was inserted, updated or deleted, with what it said before and after.

Owns their shape. Frozen data: where changes come from is compared.py and stream.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from omnigraph.manifest.entries import MAIN, Commit, EntityKind

Op = Literal["insert", "update", "delete"]
OPS: tuple[Op, ...] = get_args(Op)
KINDS: tuple[EntityKind, ...] = get_args(EntityKind)


@dataclass(frozen=True, slots=True)
class TypeRef:
    """The type of an entity; ``id`` survives a rename and is new after a drop."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The ids of the two nodes of an edge."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Image:
    """What an entity said: its properties as a query result spells them, and an edge's ends."""

    properties: Mapping[str, Any]
    endpoints: Endpoints | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One changed entity; ``changed`` names the properties in which an update differs."""

    kind: EntityKind
    type: TypeRef
    id: str
    op: Op
    before: Image | None = None
    after: Image | None = None
    changed: tuple[str, ...] = ()

    @property
    def endpoints(self) -> Endpoints | None:
        """The ends of an edge, as they are now or were last."""
        image = self.after or self.before
        return None if image is None else image.endpoints


@dataclass(frozen=True, slots=True)
class Cause:
    """The commit that made some changes; ``authored_at`` is µs since the epoch."""

    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    authored_branch: str
    actor_id: str | None
    authored_at: int

    @classmethod
    def of(cls, commit: Commit) -> Cause:
        """The commit as a cause."""
        return cls(
            commit.id,
            commit.parent_id,
            commit.merged_parent_id,
            commit.branch or MAIN,
            commit.actor,
            commit.created_at,
        )


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """Changes of one commit: all of them, or those that one page had room for."""

    cause: Cause
    changes: tuple[Change, ...]
