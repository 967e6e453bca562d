"""Conditions about rows, as plain frozen data: typed operands and the predicates over them.

Owns what an update, a delete, a scan and a query say about a row. Every name is
resolved, every literal converted. Never evaluates anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from omnigraph.lang.types import Scalar, ValueType

CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]
TextMode = Literal["search", "fuzzy", "match_text"]
ConstantScalar = str | int | float | bool | date | datetime
Constant = ConstantScalar | None | tuple[ConstantScalar, ...]

TIMESTAMP = ValueType(Scalar.DATETIME)


# -- operands --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a bound variable; `@id`, `@src` and `@dst` are the structural columns."""

    variable: str
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A whole node."""

    variable: str
    node_type: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class ParamRef:
    """A declared parameter."""

    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, already of its Python type."""

    value: Constant
    type: ValueType


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of the statement, the same wherever it is read."""

    type: ValueType = TIMESTAMP


Scalarish = Property | ParamRef | Const | Now


# -- predicates ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`; unknown when either side is null."""

    left: Scalarish
    op: CompareOp
    right: Scalarish


@dataclass(frozen=True, slots=True)
class Contains:
    """List membership, or exact substring when the left side is text."""

    left: Scalarish
    right: Scalarish


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Exact prefix."""

    left: Scalarish
    right: Scalarish


@dataclass(frozen=True, slots=True)
class InList:
    """Equal to one of the choices."""

    operand: Scalarish
    choices: ParamRef | Const


@dataclass(frozen=True, slots=True)
class IsNull:
    """True or false, never unknown; ``operand`` may be a whole optional node."""

    operand: Scalarish | NodeRef
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A full-text predicate on a node's text."""

    mode: TextMode
    subject: Property
    node_type: str
    query: ParamRef | Const
    edits: ParamRef | Const | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """At least one group holds; the predicates of a group hold together."""

    groups: tuple[tuple[Predicate, ...], ...]


Predicate = Comparison | Contains | StartsWith | InList | IsNull | TextMatch | Either


def variables_of(predicate: Predicate) -> frozenset[str]:
    """The variables a predicate looks at."""
    return frozenset(_variables(predicate))


def _variables(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case Comparison(left, _, right) | Contains(left, right) | StartsWith(left, right):
            operands: tuple[Scalarish | NodeRef, ...] = (left, right)
        case InList(operand, _) | IsNull(operand, _):
            operands = (operand,)
        case TextMatch():
            operands = (predicate.subject,)
        case Either(groups):
            for group in groups:
                for member in group:
                    yield from _variables(member)
            return
    for operand in operands:
        if isinstance(operand, Property | NodeRef):
            yield operand.variable
