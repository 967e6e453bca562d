"""Checking `where`: which rows of its type a statement is about.

Owns reading conditions about a row's own values (T7, T11), and telling those that name a node at an
end of an edge. What an expression denotes is for expressions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.lang import structural
from omnigraph.lang.conditions import conjuncts
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.expressions import resolve_condition
from omnigraph.lang.query.check.mutations.assigned import declared_param
from omnigraph.lang.query.check.mutations.edge_ends import end_node, is_node
from omnigraph.lang.query.check.mutations.names import (
    EDGE_COLUMNS,
    ENDS,
    Names,
    own_columns,
    report_missing,
)
from omnigraph.lang.query.check.predicates import comparison, membership
from omnigraph.lang.query.check.scope import Checker, Scope
from omnigraph.lang.query.check.values import constant, fit_literal
from omnigraph.lang.schema.catalog import EdgeType, NodeType


def check_where(
    names: Names, where: terms.Expr, type_: NodeType | EdgeType
) -> tuple[tuple[plan.Predicate, ...], tuple[plan.AtEnd, ...]]:
    """The conditions that are sound, all of which must hold, and those that name a node."""
    checker = names.checker
    predicates: list[plan.Predicate] = []
    ends: list[plan.AtEnd] = []
    for part in _together(where):
        if isinstance(type_, EdgeType) and _names_node(checker, part, type_):
            found = _at_end(checker, part, type_)
            if found is not None:
                ends.append(found)
        elif _is_plain(part):
            predicate = _predicate(checker, part, type_)
            if predicate is not None:
                predicates.append(predicate)
        else:
            predicates.extend(_general(names, part, type_))
    return tuple(predicates), tuple(ends)


def _together(where: terms.Expr) -> Iterator[terms.Expr]:
    """The conditions that `and` joins."""
    if isinstance(where, terms.Logical) and where.op == "and":
        for operand in where.operands:
            yield from _together(operand)
    else:
        yield where


# -- a property beside a value ------------------------------------------------------

_Plain = terms.Comparison | terms.NullTest | terms.Membership


def _is_plain(part: terms.Expr) -> bool:
    """Whether a condition is about one property, and values that stand for themselves."""
    match part:
        case terms.NullTest(terms.Alias()):
            return True
        case terms.Membership(terms.Alias(), choices):
            return isinstance(choices, terms.Variable | terms.Access) or _is_literal_list(choices)
        case terms.Comparison(terms.Alias(), _, right):
            known = terms.Literal | terms.Variable | terms.Access | terms.Now | terms.NodeKey
            return isinstance(right, known) or _is_literal_list(right)
    return False


def _is_literal_list(value: terms.Expr) -> bool:
    return isinstance(value, terms.ListLiteral) and all(
        isinstance(item, terms.Literal) for item in value.items
    )


def _predicate(
    checker: Checker, part: terms.Expr, type_: NodeType | EdgeType
) -> plan.Predicate | None:
    match part:
        case terms.NullTest(terms.Alias() as name, negated):
            column = _column(checker, name, type_, presence=True)
            return None if column is None else plan.IsNull(column, negated)
        case terms.Membership(terms.Alias() as name, choices):
            column = _column(checker, name, type_, presence=False)
            listed = (
                declared_param(checker, choices)
                if isinstance(choices, terms.Variable | terms.Access)
                else constant(checker, choices)
                if isinstance(choices, terms.ListLiteral)
                else None
            )
            if column is None or listed is None:
                return None
            return membership(checker, name.span.to(choices.span), column, listed)
        case terms.Comparison(terms.Alias() as name, op, right):
            column = _column(checker, name, type_, presence=False)
            if column is None:
                return None
            value = _compared_value(checker, name, op, right, column)
            if value is None:
                return None
            return comparison(checker, name.span.to(right.span), column, op, value)
    raise AssertionError(f"{part} is not plain")


def _column(
    checker: Checker, name: terms.Alias, type_: NodeType | EdgeType, *, presence: bool
) -> plan.Property | None:
    """The column a condition looks at; a Blob only where its ``presence`` is all it asks."""
    if name.name == structural.ID:
        return plan.Property(plan.ROW, structural.ID, plan.TEXT)
    if isinstance(type_, EdgeType) and name.name in EDGE_COLUMNS:
        return plan.Property(plan.ROW, EDGE_COLUMNS[name.name], plan.TEXT)
    definition = type_.properties.get(name.name)
    if definition is None:
        report_missing(checker, terms.Name(name.name, span=name.span), type_, _ends_of(type_))
        return None
    if definition.type.is_blob and not presence:
        checker.error(name.span, f"`{name.name}` is a Blob; rows cannot be chosen by it", "T11")
        return None
    return plan.Property(plan.ROW, name.name, definition.type)


def _ends_of(type_: NodeType | EdgeType) -> tuple[str, ...]:
    return ENDS if isinstance(type_, EdgeType) else ()


def _compared_value(
    checker: Checker,
    name: terms.Alias,
    op: terms.FilterOp,
    value: terms.Expr,
    column: plan.Property,
) -> plan.Fixed | None:
    match value:
        case terms.NodeKey():
            checker.error(value.span, f"`{name.name}` is no end of an edge", "T7")
            return None
        case terms.Now():
            return plan.Now()
        case terms.Variable() | terms.Access():
            return declared_param(checker, value)
        case terms.Literal() | terms.ListLiteral():
            # The operand rules of `contains`, `starts_with` and of lists and vectors are
            # T7 whatever the literal; only a plain comparison asks that it fit (T3).
            words = ("contains", "starts_with", "ends_with")
            if not column.type.is_plain or op in words:
                return constant(checker, value)
            return fit_literal(checker, value, column.type, f"`{name.name}`", storing=False)
    raise AssertionError(f"{value} is not plain")


# -- any other condition ------------------------------------------------------------

_ELSEWHERE: dict[type, str] = {
    terms.BlockValue: "a block",
    terms.NodeKey: "a node by its key",
    terms.TextCall: "a search",
    terms.Nearest: "a ranking",
    terms.Bm25: "a ranking",
    terms.Rrf: "a ranking",
}


def _general(
    names: Names, part: terms.Expr, type_: NodeType | EdgeType
) -> Iterator[plan.Predicate]:
    """A condition of any shape about the values of one row."""
    checker, columns = names.checker, own_columns(type_)
    missing = False
    for found in terms.within(part):
        if isinstance(found, terms.Alias) and found.name not in (*columns, "null"):
            name = terms.Name(found.name, span=found.span)
            report_missing(checker, name, type_, _ends_of(type_))
            missing = True
        elif type(found) in _ELSEWHERE:
            what = _ELSEWHERE[type(found)]
            checker.error(
                found.span,
                f"{what} cannot stand inside a condition of `where`",
                "T30",
                hint="match first: `match { … }`, then `update $x set { … }` or `delete $x`",
            )
            missing = True
    if missing:
        return
    scope = Scope(checker)
    scope.columns = columns
    condition = resolve_condition(scope, part)
    if condition is not None:
        yield from conjuncts(condition)


def names_matched(names: Names, values: Iterable[terms.Expr]) -> bool:
    """Report variables of the match (T30): a statement with `where` runs once for all rows."""
    known: dict[str, terms.Variable] = {}
    for value in values:
        for part in terms.within(value):
            if isinstance(part, terms.Variable | terms.Access):
                variable = part if isinstance(part, terms.Variable) else part.variable
                if names.matched.knows(variable.name):
                    known.setdefault(variable.name, variable)
    for name, variable in known.items():
        names.checker.error(
            variable.span,
            f"${name} is bound by the match, and a statement with `where` runs but once",
            "T30",
            hint="bind its rows in the match as well, and change them by their variable",
        )
    return bool(known)


# -- a node at an end ----------------------------------------------------------------


def _names_node(checker: Checker, part: terms.Expr, edge: EdgeType) -> bool:
    """Whether a condition is about the node at an end, and not about its id alone."""
    match part:
        case terms.Comparison(terms.Alias(name), _, right):
            names_key = is_node(checker, right)
        case terms.Membership(terms.Alias(name)):
            names_key = False
        case _:
            return False
    column = EDGE_COLUMNS.get(name)
    return column is not None and (names_key or column in edge.shared)


def _at_end(checker: Checker, part: terms.Expr, edge: EdgeType) -> plan.AtEnd | None:
    if not isinstance(part, terms.Comparison | terms.Membership):
        return None
    left = part.left if isinstance(part, terms.Comparison) else part.operand
    if not isinstance(left, terms.Alias):
        return None
    column = EDGE_COLUMNS[left.name]
    if not isinstance(part, terms.Comparison) or part.op != "=":
        checker.error(
            left.span,
            f"`{left.name}` is compared by `=` with one node",
            "T28",
            hint=f"write `{left.name} = Type(…)`",
        )
        return None
    node = end_node(Scope(checker), edge, column, part.right)
    return None if node is None else plan.AtEnd(column, node)
