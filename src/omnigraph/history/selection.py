"""Selections: which changes are wanted, by kind, type and operation.

Owns reading the filters, what is said about a wrong name, and the digest that binds a
token to them. Types are kept by identity, so that a rename does not end a feed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

import msgspec

from omnigraph.errors import BadRequest
from omnigraph.history.changes import KINDS, OPS, Op
from omnigraph.history.compared import type_id
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import unknown_type
from omnigraph.manifest.entries import EntityKind
from omnigraph.manifest.snapshot import Snapshot

Names = str | Sequence[str] | None
_Word = TypeVar("_Word", bound=str)


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
