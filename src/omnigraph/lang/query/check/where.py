"""Checking the where clause of a mutation.

Owns which properties and structural columns a row can be chosen by, and types
each condition into a predicate over the statement's own row.
"""

from __future__ import annotations

from omnigraph.lang.query import plan
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.assignments import declared_param, report_missing
from omnigraph.lang.query.check.predicates import comparison, membership
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.check.values import constant, fit_literal
from omnigraph.lang.schema.catalog import EdgeType, NodeType

_EDGE_COLUMNS = {"from": ast.SRC, "to": ast.DST, ast.SRC: ast.SRC, ast.DST: ast.DST}


def check_where(
    checker: Checker, atoms: tuple[ast.Atom, ...], type_: NodeType | EdgeType
) -> tuple[plan.Predicate, ...]:
    """The conditions that are sound, all of which must hold."""
    predicates: list[plan.Predicate] = []
    for atom in atoms:
        column = _column(checker, atom.property, type_, presence=isinstance(atom, ast.IsNull))
        if column is None:
            continue
        predicate = _predicate(checker, atom, column)
        if predicate is not None:
            predicates.append(predicate)
    return tuple(predicates)


def _column(
    checker: Checker, name: ast.Name, type_: NodeType | EdgeType, *, presence: bool
) -> plan.Property | None:
    """The column a condition looks at; a Blob only where its ``presence`` is all it asks."""
    if name.text == ast.ID:
        return plan.Property(plan.ROW, ast.ID, plan.TEXT)
    if isinstance(type_, EdgeType) and name.text in _EDGE_COLUMNS:
        return plan.Property(plan.ROW, _EDGE_COLUMNS[name.text], plan.TEXT)
    definition = type_.properties.get(name.text)
    if definition is None:
        extra = ("from", "to") if isinstance(type_, EdgeType) else ()
        report_missing(checker, name, type_, extra)
        return None
    if definition.type.is_blob and not presence:
        checker.error(name.span, f"`{name.text}` is a Blob; rows cannot be chosen by it", "T11")
        return None
    return plan.Property(plan.ROW, name.text, definition.type)


def _predicate(checker: Checker, atom: ast.Atom, column: plan.Property) -> plan.Predicate | None:
    match atom:
        case ast.IsNull(_, negated):
            return plan.IsNull(column, negated)
        case ast.IsIn(_, choices):
            listed = (
                declared_param(checker, choices)
                if isinstance(choices, ast.Variable)
                else constant(checker, choices)
            )
            if listed is None:
                return None
            return membership(checker, atom.property.span.to(choices.span), column, listed)
        case ast.Compare():
            value = _value(checker, atom, column)
            if value is None:
                return None
            span = atom.property.span.to(atom.value.span)
            return comparison(checker, span, column, atom.op, value)


def _value(checker: Checker, atom: ast.Compare, column: plan.Property) -> plan.Scalarish | None:
    value = atom.value
    match value:
        case ast.Now():
            return plan.Now()
        case ast.Variable():
            return declared_param(checker, value)
        case _:
            # The operand rules of `contains`, `starts_with` and of lists and vectors are
            # T7 whatever the literal; only a plain comparison asks that it fit (T3).
            plain = column.type.is_plain and atom.op not in ("contains", "starts_with")
            if not plain:
                return constant(checker, value)
            what = f"`{atom.property.text}`"
            return fit_literal(checker, value, column.type, what, storing=False)
