"""Names in statements: what the match binds, what statements write, and what a row calls its own.

Owns which of them an expression of a statement may use, and which columns of the match that
takes. Parameters and elements of lists are for operands.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.expressions import leaves_of
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.scope import Checker, EdgeBinding, NodeBinding, Scope
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.structural import TYPE

ENDS = tuple(structural.ENDPOINTS.values())
EDGE_COLUMNS = {
    "from": structural.SRC,
    "to": structural.DST,
    structural.SRC: structural.SRC,
    structural.DST: structural.DST,
}


@dataclass(slots=True)
class Names:
    """What the statements of one mutation can name.

    ``matched`` is the scope of the match, and binds nothing where there is none. ``written`` are
    the names that statements give to what they write.
    """

    checker: Checker
    matched: Scope
    has_match: bool
    written: dict[str, NodeType | EdgeType] = field(default_factory=dict)
    columns: dict[str, plan.Column] = field(default_factory=dict)

    def write(self, variable: terms.Variable, type_: NodeType | EdgeType) -> None:
        """Give a name to what a statement writes (T32)."""
        name, checker = variable.name, self.checker
        known = {*checker.params, *checker.records, *checker.elements}
        if name == terms.ANONYMOUS or name in known or self.matched.knows(name):
            checker.error(variable.span, f"${name} is in use already", "T32")
            return
        self.written[name] = type_
        if isinstance(type_, NodeType):
            self.matched.declare(NodeBinding(name, type_))
        else:
            self.matched.declare(EdgeBinding(name, type_))

    def changed(self, variable: terms.Variable, verb: str) -> plan.BoundEntity | None:
        """What a variable stands for that a statement changes (T30)."""
        found = self.matched.find(variable.name)
        if variable.name in self.written:
            message, hint = "is written by this very query", "give the value where it is written"
        elif isinstance(found, NodeBinding | EdgeBinding):
            return self.entity(found)
        elif found is not None or self.matched.knows(variable.name):
            message, hint = "is neither a node nor an edge", None
        elif variable.name in {*self.checker.params, *self.checker.records}:
            message, hint = "is a parameter, and neither a node nor an edge", None
        elif not self.has_match:
            message = "is not bound: nothing is matched"
            hint = f"write `match {{ … }}` before the statements, or `{verb} Type … where …`"
        else:
            message = "is not bound"
            hint = name_hint(variable.name, self.matched.names(), prefix="$")
        self.checker.error(variable.span, f"${variable.name} {message}", "T30", hint=hint)
        return None

    def entity(self, found: NodeBinding | EdgeBinding) -> plan.BoundEntity | None:
        """What a variable is bound to; the match tells of each row which one it has."""
        if found.type is None:
            return None
        self.use(plan.Property(found.name, structural.ID, plan.TEXT))
        kind = "node" if isinstance(found, NodeBinding) else "edge"
        if not isinstance(found.type, TypeSet):
            return plan.BoundEntity(found.name, kind, (found.type.name,))
        self.use(plan.Property(found.name, TYPE, plan.TEXT))
        return plan.BoundEntity(found.name, kind, tuple(found.type.members))

    def shown(self, columns: Iterable[plan.Column]) -> tuple[plan.BoundEntity, ...]:
        """The entities that result columns look at."""
        looked_at: set[str] = set()
        for column in columns:
            if not isinstance(column.value, plan.Score):
                looked_at |= plan.variables_of(column.value)
        bound = (self.matched.own.get(name) for name in sorted(looked_at - self.written.keys()))
        found = (self.entity(one) for one in bound if isinstance(one, NodeBinding | EdgeBinding))
        return tuple(one for one in found if one is not None)

    def use(self, expression: plan.Expression | plan.NodeRef) -> None:
        """Have the match return what an expression looks at."""
        for leaf in leaves_of(expression):
            match leaf:
                case plan.Property(variable, name) if variable not in self.written:
                    if variable != plan.ROW or self.matched.find(variable) is not None:
                        self._add(plan.column_of(variable, name), leaf)
                case plan.NodeRef(variable) if variable not in self.written:
                    of_id = plan.Property(variable, structural.ID, plan.TEXT.or_null())
                    self._add(plan.column_of(variable, structural.ID), of_id)
                case plan.Computed(name):
                    self._add(name, leaf)

    def _add(self, name: str, value: plan.Expression) -> None:
        self.columns.setdefault(name, plan.Column(name, value))

    @contextmanager
    def own(self, columns: dict[str, plan.Output]) -> Iterator[Scope]:
        """The scope in which bare names are these."""
        scope = self.matched
        scope.columns = columns
        try:
            yield scope
        finally:
            scope.columns = {}


def own_columns(type_: NodeType | EdgeType, variable: str = plan.ROW) -> dict[str, plan.Output]:
    """The names that a row of a type has for its own values."""
    found: dict[str, plan.Output] = {
        name: plan.Property(variable, name, definition.type)
        for name, definition in type_.properties.items()
    }
    found[structural.ID] = plan.Property(variable, structural.ID, plan.TEXT)
    if isinstance(type_, EdgeType):
        for name, column in EDGE_COLUMNS.items():
            found.setdefault(name, plan.Property(variable, column, plan.TEXT))
    return found


def report_missing(
    checker: Checker, name: terms.Name, type_: NodeType | EdgeType, extra: Iterable[str]
) -> None:
    """Report a property that a mutation names and the type does not have."""
    hint = name_hint(name.text, [*type_.properties, *extra])
    if name.text.startswith("@"):
        is_edge = isinstance(type_, EdgeType)
        hint = name_hint(name.text, terms.SYSTEM_PROPERTIES if is_edge else (structural.ID,))
    elif name.text == "id":
        hint = "the id is `@id`, and only `where` may name it"
    checker.error(
        name.span,
        f"{type_.kind} type {type_.name} has no property `{name.text}`",
        "T11",
        hint=hint,
    )
