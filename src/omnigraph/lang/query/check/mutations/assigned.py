"""Checking assigned values: literals, parameters and expressions as values of properties.

Owns whether a value can be stored in a property (T3, T7, T14). Which properties a statement may
assign is for statements.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.expressions import resolve_value
from omnigraph.lang.query.check.operands import element_field
from omnigraph.lang.query.check.scope import Checker, Scope
from omnigraph.lang.query.check.values import describe, fit_literal
from omnigraph.lang.types import FLOATS, INTEGERS, RecordList, Scalar, ValueType, compatible


def assigned_value(
    scope: Scope, name: str, value: terms.Expr, target: ValueType
) -> plan.Expression | None:
    """A value as one that the property may be given; None after reporting."""
    checker = scope.checker
    match value:
        case terms.NodeKey():
            checker.error(value.span, f"`{name}` is {target}, and a node is no value", "T7")
            return None
        case terms.Now():
            if target.scalar is Scalar.DATETIME and not target.is_list:
                return plan.Now()
            checker.error(value.span, f"`now()` is a DateTime, `{name}` is {target}", "T7")
            return None
        case terms.Literal():
            return fit_literal(checker, value, target, f"`{name}`", storing=True)
        case terms.ListLiteral(items) if all(isinstance(one, terms.Literal) for one in items):
            return fit_literal(checker, value, target, f"`{name}`", storing=True)
        case terms.Variable() | terms.Access() if not is_bound(scope, value):
            param = declared_param(checker, value)
            if param is None or _storable(param.type, target):
                return param
            checker.error(value.span, f"`{name}` is {target}, ${param.name} is {param.type}", "T7")
            return None
    found = resolve_value(scope, value)
    if found is not None and any(isinstance(one, plan.TextMatch) for one in _all_parts(found)):
        checker.error(
            value.span,
            "a search cannot stand in a value that is stored",
            "T30",
            hint="search in the match",
        )
        return None
    if found is None or _storable(found.type, target):
        return found
    checker.error(
        value.span,
        f"`{name}` is {target}, this is {describe(found)}",
        "T7",
        hint=_way_out(found.type, target),
    )
    return None


def _all_parts(expression: plan.Expression) -> Iterator[plan.Expression | plan.NodeRef]:
    waiting: list[plan.Expression | plan.NodeRef] = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(plan.parts_of(found))


def is_bound(scope: Scope, value: terms.Variable | terms.Access) -> bool:
    """Whether a name is one of the match, or of an earlier statement, and no parameter."""
    return scope.knows(value.name if isinstance(value, terms.Variable) else value.variable.name)


def declared_param(checker: Checker, value: terms.Variable | terms.Access) -> plan.ParamRef | None:
    """A parameter, or an element of one, used as a value of a mutation (T14 for any other)."""
    if isinstance(value, terms.Access):
        return element_field(checker, value)
    variable = value
    element = checker.elements.get(variable.name)
    if isinstance(element, ValueType):
        return plan.ParamRef(variable.name, element)
    if isinstance(element, RecordList):
        example = element.fields[0][0]
        checker.error(
            variable.span,
            f"${variable.name} is a record and has no value of its own",
            "T7",
            hint=f"use a field: `${variable.name}.{example}`",
        )
        return None
    if variable.name not in checker.params:
        checker.error(
            variable.span,
            f"${variable.name} is not a declared parameter",
            "T14",
            hint=name_hint(variable.name, checker.params, prefix="$"),
        )
        return None
    type_ = checker.params[variable.name]
    return plan.ParamRef(variable.name, type_) if type_ is not None else None


def _storable(source: ValueType, target: ValueType) -> bool:
    """Whether every value of a type can be stored in the property."""
    if target.is_blob:
        return source.scalar in (Scalar.BLOB, Scalar.STRING) and not source.is_list
    if source.scalar in FLOATS and target.scalar in INTEGERS:
        return False
    return compatible(source, target)


def _way_out(source: ValueType, target: ValueType) -> str | None:
    if source.is_list or target.is_list:
        return None
    if source.scalar in FLOATS and target.scalar in INTEGERS:
        return "`to_int(…)` cuts, `round(…)` rounds, `div(a, b)` divides integers"
    functions = {
        Scalar.STRING: "to_string",
        Scalar.DATE: "to_date",
        Scalar.DATETIME: "to_datetime",
        Scalar.BOOL: "to_bool",
    }
    function = functions.get(target.scalar)
    return None if function is None else f"`{function}(…)` makes one of it"
