"""The syntax tree of `.gq`: exactly what was written, nothing resolved.

Owns the tree's shape from clauses to files; terms.py has what stands inside them.
Spans do not take part in equality, so a tree equals the tree of its formatted
text. Never validates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omnigraph.lang.query.terms import (
    Count,
    Expr,
    InsertVerb,
    Ordering,
    Projection,
    Variable,
)
from omnigraph.lang.source import Name, Span, Spanned
from omnigraph.lang.types import RecordList, ValueType

# -- clauses of a match block ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`property: value` inside a binding."""

    property: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Binding(Spanned):
    """`$v: Type { property: value, … }`."""

    variable: Variable
    type_name: Name
    matches: tuple[PropertyMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class HopRange(Spanned):
    """`{min,max}`, or `{min,}` for as far as anything new is found."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Each(Spanned):
    """`each $edge, $node { … }`: what holds of every step; without a block the names alone."""

    edge: Variable
    node: Variable
    clauses: tuple[Clause, ...] | None = None


@dataclass(frozen=True, slots=True)
class Traversal(Spanned):
    """`$a edge $b`, `$a <edge> $b`, `$a $w:edge $b`; with bounds `$w` is the way.

    ``others`` are alternatives to the edge: `$a knows|follows $b`.
    """

    left: Variable
    edge: Name
    right: Variable
    edge_variable: Variable | None = None
    undirected: bool = False
    hops: HopRange | None = None
    others: tuple[Name, ...] = ()
    every: bool = False
    each: Each | None = None
    weight: Expr | None = None


@dataclass(frozen=True, slots=True)
class WayStep(Spanned):
    """`$x $w $y`, `$x <$w> $y`: a step of a way."""

    left: Variable
    way: Variable
    right: Variable
    undirected: bool = False


@dataclass(frozen=True, slots=True)
class Where(Spanned):
    """A condition that stands as a clause."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Not(Spanned):
    """`not { … }`."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Exists(Spanned):
    """`exists { … }`."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Let(Spanned):
    """`let $name = expr`."""

    variable: Variable
    value: Expr


@dataclass(frozen=True, slots=True)
class For(Spanned):
    """`for $name in expr`: a row for each element."""

    variable: Variable
    items: Expr


@dataclass(frozen=True, slots=True)
class AnyOf(Spanned):
    """`any { … } or { … }`."""

    groups: tuple[tuple[Clause, ...], ...]
    group_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Optional(Spanned):
    """`optional { … }`."""

    clauses: tuple[Clause, ...]


Clause = Binding | Traversal | WayStep | Where | Let | For | Not | Exists | AnyOf | Optional


# -- reads -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LimitPer(Spanned):
    """`limit 3 per { $c.name }`."""

    count: Count
    keys: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Branch(Spanned):
    """`union match … return …`, or the same with `union all`."""

    keeps_equal: bool
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """`match … return … union … order … limit … per … limit … offset …`."""

    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool = False
    ordering: tuple[Ordering, ...] = ()
    limit: Count | None = None
    offset: Count | None = None
    per: LimitPer | None = None
    branches: tuple[Branch, ...] = ()


# -- mutations -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment:
    """`property: value`."""

    property: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Insert(Spanned):
    """`insert Type { … }`, and so with `create` and `upsert`; `insert $v: Type { … }` names it."""

    verb: InsertVerb
    type_name: Name
    assignments: tuple[Assignment, ...]
    variable: Variable | None = None


@dataclass(frozen=True, slots=True)
class Update(Spanned):
    """`update Type set { … } where …`."""

    type_name: Name
    assignments: tuple[Assignment, ...]
    where: Expr


@dataclass(frozen=True, slots=True)
class Delete(Spanned):
    """`delete Type where …`."""

    type_name: Name
    where: Expr


@dataclass(frozen=True, slots=True)
class UpdateMatched(Spanned):
    """`update $p set { … }`: what the match has bound."""

    variable: Variable
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class DeleteMatched(Spanned):
    """`delete $p`: what the match has bound."""

    variable: Variable


@dataclass(frozen=True, slots=True)
class ForEach(Spanned):
    """`for $x in $list { … }`: the statements for each element of a parameter."""

    variable: Variable
    over: Variable
    statements: tuple[Statement, ...]


Statement = Insert | Update | Delete | UpdateMatched | DeleteMatched | ForEach


@dataclass(frozen=True, slots=True)
class Mutation:
    """Statements that publish together: `match { … } update … return { … }`."""

    statements: tuple[Statement, ...]
    clauses: tuple[Clause, ...] | None = None
    """The block whose rows the statements are fed with; None where there is none."""
    projections: tuple[Projection, ...] = ()


def flat_statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement once, those for each element of a list too."""
    for statement in statements:
        if isinstance(statement, ForEach):
            yield from flat_statements(statement.statements)
        else:
            yield statement


# -- queries ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param(Spanned):
    """`$name: Type`; the type stays a bare name when no such type exists."""

    name: str
    type: ValueType | RecordList | Name


@dataclass(frozen=True, slots=True)
class Query(Spanned):
    """One named query."""

    name: Name
    params: tuple[Param, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class QueryFile:
    """A whole `.gq` file."""

    queries: tuple[Query, ...] = ()
