"""Checking the property conditions of a binding: `$p: Person { name: $n }`.

Owns the rules T2 and T3 for them and turns each into a predicate.
"""

from __future__ import annotations

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.expressions import resolve
from omnigraph.lang.query.check.operands import report_disagreeing
from omnigraph.lang.query.check.predicates import as_time
from omnigraph.lang.query.check.scope import NodeBinding, Scope
from omnigraph.lang.query.check.values import constant, describe, fit_literal
from omnigraph.lang.query.spelling import spell
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.types import Scalar, ValueType, compatible


def check_matches(
    scope: Scope, binding: ast.Binding, node: resolved.NodeVariable
) -> list[plan.Predicate]:
    """The predicates of a binding's property conditions."""
    bound = scope.find(node.name)
    nullable = isinstance(bound, NodeBinding) and bound.nullable
    predicates: list[plan.Predicate] = []
    for condition in binding.matches:
        type_ = _property_type(scope, node, condition.property)
        if type_ is None:
            continue
        value = _value(scope, condition, type_)
        if value is None:
            continue
        left = plan.Property(node.name, condition.property.text, type_.or_null(when=nullable))
        if type_.is_list:
            predicates.append(plan.Contains(left, value))
        else:
            predicates.append(plan.Comparison(left, "=", value))
    return predicates


def _property_type(scope: Scope, node: resolved.NodeVariable, name: terms.Name) -> ValueType | None:
    checker = scope.checker
    if name.text == structural.ID:
        return plan.TEXT
    bound = scope.find(node.name)
    if not isinstance(bound, NodeBinding) or bound.type is None:
        return None
    properties = bound.type.properties
    if isinstance(bound.type, TypeSet) and name.text in bound.type.disagreeing:
        report_disagreeing(checker, bound.type, name, "T2")
        return None
    definition = properties.get(name.text)
    if definition is None:
        checker.error(
            name.span,
            f"node type {bound.type.name} has no property `{name.text}`",
            "T2",
            hint=name_hint(
                name.text, (structural.ID,) if name.text.startswith("@") else properties
            ),
        )
        return None
    if definition.type.is_blob:
        checker.error(name.span, f"`{name.text}` is a Blob and cannot be matched", "T3")
        return None
    if definition.type.is_vector:
        checker.error(name.span, f"`{name.text}` is a vector and cannot be matched", "T3")
        return None
    return definition.type


def _value(scope: Scope, condition: ast.PropertyMatch, type_: ValueType) -> plan.Expression | None:
    checker = scope.checker
    name, value = condition.property.text, condition.value
    wanted = type_.element() if type_.is_list else type_
    match value:
        case terms.Literal():
            if value.kind == "string" and wanted.scalar in (Scalar.DATE, Scalar.DATETIME):
                const = constant(checker, value)
                return as_time(checker, value.span, const, wanted.scalar) if const else None
            return fit_literal(checker, value, wanted, f"`{name}`", storing=False)
        case terms.Now() if wanted.scalar is not Scalar.DATETIME:
            checker.error(value.span, f"`now()` is a DateTime, `{name}` is {wanted}", "T7")
            return None
        case terms.ListLiteral() if type_.is_list:
            checker.error(
                value.span, f"`{name}` is matched by one element it contains, not by a list", "T3"
            )
            return None
        case terms.ListLiteral() if all(isinstance(one, terms.Literal) for one in value.items):
            return fit_literal(checker, value, wanted, f"`{name}`", storing=False)
    operand = resolve(scope, value)
    if operand is None:
        return None
    if isinstance(operand, plan.NodeRef) or not compatible(operand.type, wanted):
        verb = "contains" if type_.is_list else "is"
        checker.error(
            value.span, f"`{name}` {verb} {wanted}, {spell(value)} is {describe(operand)}", "T7"
        )
        return None
    return operand
