"""Typing `let` and `for`: values that the clauses of a block name.

Owns that a name is given once (T32), that no value depends on itself (T32), and that a value is
typed when it is first asked for, wherever in the block it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.expressions import is_fixed, is_small
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.aggregates import resolve_block_value
from omnigraph.lang.query.check.expressions import resolve_value
from omnigraph.lang.query.check.scope import Scope
from omnigraph.lang.query.check.values import describe

Named = ast.Let | ast.For
MAX_DEPTH = 32
"""How many values may be typed inside each other: what is typed waits on the stack."""


def declare_values(scope: Scope, clauses: tuple[ast.Clause, ...]) -> None:
    """Make the names of a block known; what they stand for is found out when they are used."""
    for clause in clauses:
        if not isinstance(clause, Named):
            continue
        name = clause.variable.name
        if name == terms.ANONYMOUS:
            scope.checker.error(clause.variable.span, "a value needs a name to be used by", "T32")
        elif name in scope.waiting or name in scope.checker.params or scope.knows(name):
            _report_reuse(scope, clause.variable)
        else:
            scope.waiting[name] = _Named(scope, clause)


def check_values(scope: Scope, clauses: tuple[ast.Clause, ...]) -> None:
    """Type what nothing asked for yet, and report names that variables of the block have too."""
    for clause in clauses:
        if isinstance(clause, Named) and clause.variable.name != terms.ANONYMOUS:
            if clause.variable.name in scope.own:
                _report_reuse(scope, clause.variable)
            elif clause.variable.name in scope.waiting:
                scope.find_value(clause.variable.name)


def _report_reuse(scope: Scope, variable: terms.Variable) -> None:
    scope.checker.error(
        variable.span, f"${variable.name} is in use already; name the value otherwise", "T32"
    )


class _Named:
    """One clause that names a value."""

    def __init__(self, scope: Scope, clause: Named) -> None:
        self.scope = scope
        self.clause = clause
        self.is_open = False

    def resolve(self) -> plan.Expression | None:
        """What the name stands for; None after reporting."""
        variable = self.clause.variable
        if self.is_open:
            self.scope.checker.error(
                variable.span, f"${variable.name} depends on its own value", "T32"
            )
            return None
        self.is_open = True
        self._ask_for_others()
        checker = self.scope.checker
        if len(checker.typed) >= MAX_DEPTH:
            checker.error(
                variable.span,
                f"${variable.name} is at the end of a chain of more than {MAX_DEPTH} values, each "
                "in a block of another; name them in the order in which they are used",
                "T32",
            )
            return None
        checker.typed.append(variable.name)
        try:
            if isinstance(self.clause, ast.For):
                return self._element(self.clause)
            return self._value(self.clause)
        finally:
            checker.typed.pop()

    @property
    def uses(self) -> Iterator[str]:
        """The names that its expression has outside of blocks."""
        clause = self.clause
        for part in terms.within(clause.items if isinstance(clause, ast.For) else clause.value):
            if isinstance(part, terms.Variable):
                yield part.name

    def _ask_for_others(self) -> None:
        """Have all that it is made of typed first, the last link of a chain before the others."""
        scope, asked = self.scope, {self.clause.variable.name}
        chain: list[tuple[str, Iterator[str]]] = [("", self.uses)]
        while chain:
            name, uses = chain[-1]
            for other in uses:
                found = scope.waiting.get(other)
                if found is None or found.is_open or other in scope.values or other in asked:
                    continue
                asked.add(other)
                chain.append((other, found.uses))
                break
            else:
                chain.pop()
                if name:
                    scope.find_value(name)

    def _value(self, clause: ast.Let) -> plan.Expression | None:
        scope, name = self.scope, clause.variable.name
        if isinstance(clause.value, terms.BlockValue):
            return resolve_block_value(scope, clause.value, name)
        found = resolve_value(scope, clause.value)
        if found is None:
            return None
        if is_small(found) and is_fixed(found):
            if scope.is_optional:
                # Outside it is null where the block has no solution.
                scope.made.append(resolved.Let(name, found))
            return found
        scope.made.append(resolved.Let(name, found))
        return plan.Computed(name, found.type)

    def _element(self, clause: ast.For) -> plan.Expression | None:
        scope, name = self.scope, clause.variable.name
        found = resolve_value(scope, clause.items)
        if found is None:
            return None
        if not found.type.is_list:
            scope.checker.error(
                clause.items.span, f"`for` goes through a list, found {describe(found)}", "T26"
            )
            return None
        scope.made.append(resolved.ForEach(name, found))
        is_stored = isinstance(found, plan.Property | plan.ParamRef | plan.Const)
        return plan.Computed(name, found.type.element().or_null(when=not is_stored))
