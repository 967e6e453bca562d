"""Changes: entities that were inserted, updated or deleted, and which of them are wanted.

Owns their shape, the identity of types across states, and reading the filters with the digest
that binds a token to them. Types are kept by identity, so that a rename does not end a feed.
Never reads a row.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeVar, get_args

import msgspec

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import unknown_type
from omnigraph.manifest.entries import MAIN, Commit, EntityKind, TableIdentity
from omnigraph.manifest.snapshot import Snapshot

Op = Literal["insert", "update", "delete"]
OPS: tuple[Op, ...] = get_args(Op)
KINDS: tuple[EntityKind, ...] = get_args(EntityKind)

_SEPARATOR = b"\x1f"

Names = str | Sequence[str] | None
_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True)
class TypeRef:
    """The type of an entity; ``id`` survives a rename and is new after a drop."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The ids of the two nodes of an edge, and their types where these may be several."""

    source: str
    target: str
    source_type: str | None = None
    target_type: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """What an entity said: its properties as a query result spells them, and an edge's ends."""

    properties: Mapping[str, Any]
    endpoints: Endpoints | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One changed entity; ``changed`` names the properties in which an update differs.

    Each image says what its own state calls properties. ``changed`` has the names of the later
    one, and of the earlier for what is not there any more; ``former`` has what properties of the
    later one were called before, if that was something else.
    """

    kind: EntityKind
    type: TypeRef
    id: str
    op: Op
    before: Image | None = None
    after: Image | None = None
    changed: tuple[str, ...] = ()
    former: Mapping[str, str | None] = field(default_factory=dict)

    def was(self, name: str) -> Any:
        """What a property said before, whatever it was called; null for one that was not there.

        >>> [change.was("year") for change in graph.diff("main", "draft")]
        [2014]
        """
        former = self.former.get(name, name)
        return None if self.before is None else self.before.properties.get(former or "")

    def now(self, name: str) -> Any:
        """What it says after; null for one that is not there any more.

        >>> [change.now("year") for change in graph.diff("main", "draft")]
        [2015]
        """
        return None if self.after is None else self.after.properties.get(name)

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


def type_id(snapshot: Snapshot, identity: TableIdentity) -> str:
    """What a type is called in change images and tokens, whatever its name is."""
    parts = (
        snapshot.schema.identity_domain.encode(),
        identity.table_id.to_bytes(8, "little"),
        identity.incarnation.to_bytes(8, "little"),
    )
    return urlsafe_b64encode(sha256(_SEPARATOR.join(parts)).digest()).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The wanted changes; an empty ``types`` means all types, also those to come."""

    kinds: frozenset[EntityKind] = frozenset(KINDS)
    types: frozenset[str] = frozenset()
    ops: frozenset[Op] = frozenset(OPS)

    def has_type(self, kind: EntityKind, type_id: str) -> bool:
        """Whether changes of a type are wanted."""
        return kind in self.kinds and (not self.types or type_id in self.types)

    @property
    def digest(self) -> str:
        """The same for selections that mean the same."""
        canonical = [sorted(self.kinds), sorted(self.types), sorted(self.ops)]
        return sha256(msgspec.json.encode(canonical)).hexdigest()


@dataclass(frozen=True, slots=True)
class Filters:
    """The names a caller gives; None, and no name, are all."""

    kinds: Names = None
    types: Names = None
    ops: Names = None

    @property
    def type_names(self) -> list[str]:
        """The names of types, of which each means the node type and the edge type."""
        return _names(self.types)

    def among(self, *snapshots: Snapshot) -> ChangeFilter:
        """The selection that the names make; types are looked up in the snapshots."""
        return ChangeFilter(
            _words("kind", self.kinds, KINDS),
            _types(self.type_names, snapshots),
            _words("op", self.ops, OPS),
        )


def _names(given: Names) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())


def _words(what: str, given: Names, known: Collection[_Word]) -> frozenset[_Word]:
    by_text = {str(word): word for word in known}
    names = _names(given)
    for name in names:
        if name not in by_text:
            hint = did_you_mean(name, by_text) or f"it is one of {', '.join(by_text)}"
            raise BadRequest(f"{name!r} is not a {what} of change: {hint}")
    return frozenset(by_text[name] for name in names or by_text)


def _types(names: list[str], snapshots: Iterable[Snapshot]) -> frozenset[str]:
    if not names:
        return frozenset()
    known: dict[str, set[str]] = {}
    for snapshot in snapshots:
        for shown in snapshot.tables.values():
            known.setdefault(shown.table.type_name, set()).add(type_id(snapshot, shown.identity))
    for name in names:
        if name not in known:
            raise unknown_type(name, known)
    return frozenset(found for name in names for found in known[name])
