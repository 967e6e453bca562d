"""The syntax tree of `.pg`: exactly what was written, nothing resolved.

Owns the tree's shape. Spans do not take part in equality, so a tree equals
the tree of its formatted text. Never validates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from omnigraph.lang.source import NOWHERE, Name, Span, Spanned
from omnigraph.lang.types import ValueType

LiteralKind = Literal["string", "float", "integer", "bool", "name"]
ConstraintName = Literal["key", "unique", "index", "range", "check"]

CONSTRAINT_NAMES: tuple[ConstraintName, ...] = ("key", "unique", "index", "range", "check")


@dataclass(frozen=True, slots=True)
class Argument(Spanned):
    """A literal or bare name as an argument; ``text`` is its decoded value as a string.

    Numbers keep the digits that were written, sign included; the name of a structural
    column keeps its `@`.
    """

    kind: LiteralKind
    text: str


@dataclass(frozen=True, slots=True)
class Bounds(Spanned):
    """`lo..hi` of `@range`, either side possibly open."""

    low: Argument | None
    high: Argument | None


@dataclass(frozen=True, slots=True)
class Annotation(Spanned):
    """`@name`, `@name(value)` or `@name(value, key=value)`."""

    name: str
    value: Argument | None = None
    options: tuple[tuple[Name, Argument], ...] = ()


@dataclass(frozen=True, slots=True)
class Property(Spanned):
    """`name: Type @annotation…`."""

    name: Name
    type: ValueType
    annotations: tuple[Annotation, ...] = ()
    type_span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constraint(Spanned):
    """A body constraint, its arguments as written."""

    name: ConstraintName
    arguments: tuple[Argument | Bounds, ...]


Member = Property | Constraint


@dataclass(frozen=True, slots=True)
class Cardinality(Spanned):
    """`@card(min..max)`; no maximum means unbounded."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Interface(Spanned):
    """`interface Name { … }`."""

    name: Name
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class Node(Spanned):
    """`node Name @annotation… implements A, B { … }`."""

    name: Name
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[Name, ...] = ()
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge(Spanned):
    """`edge Name: From -> To @card(…) @annotation… { … }`."""

    name: Name
    source: Name
    target: Name
    cardinality: Cardinality | None = None
    annotations: tuple[Annotation, ...] = ()
    members: tuple[Member, ...] = ()


Declaration = Interface | Node | Edge


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole `.pg` file."""

    declarations: tuple[Declaration, ...] = ()


def properties_of(members: tuple[Member, ...]) -> tuple[Property, ...]:
    """The properties among the members of a body, in written order."""
    return tuple(member for member in members if isinstance(member, Property))


def constraints_of(members: tuple[Member, ...]) -> tuple[Constraint, ...]:
    """The constraints among the members of a body, in written order."""
    return tuple(member for member in members if isinstance(member, Constraint))
