"""Scopes: which variable means what, and where it may be seen.

Owns look-up through nested blocks and remembers which outer variables a block
used. A variable of unknown type is kept, so that its uses are not reported too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from omnigraph.lang.diagnostics import Phase, Reporter, name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.source import Span
from omnigraph.lang.types import RecordList, ValueType


@dataclass(frozen=True, slots=True)
class NodeBinding:
    """A variable that stands for a node; ``type`` is None when its type is unknown."""

    name: str
    type: NodeType | TypeSet | None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class EdgeBinding:
    """A variable that stands for an edge; ``type`` is None when its type is unknown."""

    name: str
    type: EdgeType | TypeSet | None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class WayBinding:
    """A variable that stands for a way: through nodes, by edges."""

    name: str
    type: EdgeType | TypeSet | None
    node: NodeType | TypeSet | None
    weighted: bool = False
    nullable: bool = False


Bound = NodeBinding | EdgeBinding | WayBinding


@dataclass(frozen=True, slots=True)
class Checker:
    """What every part of the checker needs: the catalog, the parameters, a place to report."""

    catalog: Catalog
    params: dict[str, ValueType | None]
    reporter: Reporter
    records: dict[str, RecordList] = field(default_factory=dict)
    """The parameters that are lists of records."""
    elements: dict[str, ValueType | RecordList] = field(default_factory=dict)
    """What each `for` around a statement goes through, by the name of its element."""
    anonymous: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)
    """The values that are being typed, each for the sake of the one before."""

    def error(
        self, span: Span, message: str, code: str | None = None, *, hint: str | None = None
    ) -> None:
        """Report a type error."""
        self.reporter.report(span, message, phase=Phase.TYPE, code=code, hint=hint)

    def fresh_name(self) -> str:
        """A name for an anonymous variable that no query can spell."""
        name = f"_{len(self.anonymous) + 1}"
        self.anonymous.append(name)
        return f"#{name}"


class Unresolved(Protocol):
    """A value with a name that is typed when somebody asks for it."""

    @property
    def is_open(self) -> bool:
        """Whether somebody has asked."""

    @property
    def uses(self) -> Iterator[str]:
        """The names that it is made of."""

    def resolve(self) -> plan.Expression | None:
        """What the name stands for; None after reporting."""


class Scope:
    """The variables one block sees: its own and those of the blocks around it."""

    def __init__(self, checker: Checker, outer: Scope | None = None) -> None:
        self.checker = checker
        self.outer = outer
        self.own: dict[str, Bound] = {}
        self.narrowed: dict[str, NodeBinding] = {}
        """Variables of the blocks around, where this block knows more of their types."""
        self.used_outer: set[str] = set()
        self.values: dict[str, plan.Expression | None] = {}
        """What `let` and `for` of this block name; None for what cannot be typed."""
        self.waiting: dict[str, Unresolved] = {}
        """Those that nothing asked for yet, and those that are typed."""
        self.made: list[resolved.Value] = []
        """What has to be computed for each row of this block."""
        self.is_optional = False
        """Whether its block may have no solution, and is null then."""
        self.aggregates = False
        """Whether expressions are about groups of rows."""
        self.columns: Mapping[str, plan.Output] = {}
        """The result columns that expressions may name."""

    def find(self, name: str) -> Bound | None:
        """A bound variable by name; using an outer one is remembered."""
        bound = self.own.get(name)
        if bound is None and self.outer is not None:
            bound = self.outer.find(name)
            if bound is not None:
                self.used_outer.add(name)
                bound = self.narrowed.get(name, bound)
        return bound

    def knows(self, name: str) -> bool:
        """Whether a name stands for something here; that is no use of it."""
        if name in self.own or name in self.values or name in self.waiting:
            return True
        return self.outer is not None and self.outer.knows(name)

    def is_value(self, name: str) -> bool:
        """Whether a name is one of `let` or `for`."""
        if name in self.values or name in self.waiting:
            return True
        return self.outer is not None and self.outer.is_value(name)

    def find_value(self, name: str) -> plan.Expression | None:
        """What a name of `let` or `for` stands for; using an outer one is remembered."""
        if name in self.waiting and name not in self.values:
            found = self.waiting[name].resolve()
            self.values[name] = found
            return found
        if name in self.values:
            return self.values[name]
        if self.outer is None:
            return None
        found = self.outer.find_value(name)
        if isinstance(found, plan.Computed):
            self.used_outer.add(name)
        return found

    def narrow(self, bound: NodeBinding, type_: NodeType | TypeSet) -> None:
        """Have a variable stand for nodes of fewer types, in this block and those inside it."""
        known = replace(bound, type=type_)
        if bound.name in self.own:
            self.own[bound.name] = known
        else:
            self.narrowed[bound.name] = known

    def declare(self, bound: Bound) -> None:
        """Make a variable visible in this block."""
        self.own[bound.name] = bound

    def visible(self) -> Iterator[Bound]:
        """Every variable that can be seen here, inner ones first."""
        yield from self.own.values()
        if self.outer is not None:
            yield from self.outer.visible()

    def names(self) -> set[str]:
        """Every name that `$` may stand before here, parameters included."""
        bound = {bound.name for bound in self.visible() if not bound.name.startswith("#")}
        return bound | set(self.value_names()) | set(self.checker.params)

    def value_names(self) -> Iterator[str]:
        """Every name of a value that can be seen here."""
        yield from self.waiting
        if self.outer is not None:
            yield from self.outer.value_names()

    def unbound(self, variable: terms.Variable, code: str | None = None) -> None:
        """Report a variable that nothing binds."""
        self.checker.error(
            variable.span,
            f"variable ${variable.name} is not bound",
            code,
            hint=name_hint(variable.name, self.names(), prefix="$"),
        )
