"""Limits: which types, properties and rows of a graph an actor may see.

Owns what several grants say together: a type is shown that any of them shows, a property hidden
that all of these hide, a row shown that any of these shows. Plain data, which knows no schema.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Grant:
    """What one rule shows: some types or all, without some properties, and those rows that pass.

    Types are named as in a schema, or as `node:Name` and `edge:Name`.
    """

    types: frozenset[str] | None = None
    hide: tuple[tuple[str, frozenset[str]], ...] = ()
    rows: tuple[tuple[str, str], ...] = ()

    @property
    def is_limited(self) -> bool:
        """Whether there is anything that it does not show."""
        return self.types is not None or bool(self.hide) or bool(self.rows)

    def shows(self, kind: str, name: str) -> bool:
        """Whether it shows anything of a type."""
        return self.types is None or not self.types.isdisjoint(_names(kind, name))

    def hidden(self, kind: str, name: str) -> frozenset[str]:
        """The properties of a type that it does not show."""
        hide = dict(self.hide)
        return frozenset().union(*(hide.get(one, ()) for one in _names(kind, name)))

    def conditions(self, kind: str, name: str) -> tuple[str, ...]:
        """What a row has to pass to be shown, all of it."""
        rows: Mapping[str, str] = dict(self.rows)
        return tuple(rows[one] for one in _names(kind, name) if one in rows)


def _names(kind: str, name: str) -> tuple[str, str]:
    return name, f"{kind}:{name}"


@dataclass(frozen=True)
class ReadLimits:
    """What an actor sees: whatever any of these grants shows; without any, nothing."""

    actor: str
    grants: tuple[Grant, ...]

    def shows(self, kind: str, name: str) -> bool:
        """Whether anything of a type is shown."""
        return any(grant.shows(kind, name) for grant in self.grants)

    def hidden(self, kind: str, name: str) -> frozenset[str]:
        """The properties of a shown type that are not: those that every grant hides."""
        each = [grant.hidden(kind, name) for grant in self._showing(kind, name)]
        return frozenset.intersection(*each) if each else frozenset()

    def conditions(self, kind: str, name: str) -> tuple[tuple[str, ...], ...]:
        """Groups of conditions of which a row has to pass one; none where all rows are shown."""
        each = {grant.conditions(kind, name) for grant in self._showing(kind, name)}
        return () if () in each else tuple(sorted(each))

    @property
    def has_rows(self) -> bool:
        """Whether rows of any type are hidden."""
        return any(grant.rows for grant in self.grants)

    @cached_property
    def digest(self) -> str:
        """What tells these limits from others, for caches."""
        said = repr((self.actor, sorted(map(_said, self.grants))))
        return hashlib.sha256(said.encode()).hexdigest()

    def _showing(self, kind: str, name: str) -> list[Grant]:
        return [grant for grant in self.grants if grant.shows(kind, name)]


def _said(grant: Grant) -> str:
    types = None if grant.types is None else sorted(grant.types)
    return repr((types, [(name, sorted(hidden)) for name, hidden in grant.hide], grant.rows))
