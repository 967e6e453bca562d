"""Checking assigned values: `property: value` of insert and update.

Owns the rules T3, T7, T11, T13 and T14 for them. Integers become floats where
the property is a float; nothing else is converted.
"""

from __future__ import annotations

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.check.values import fit_literal
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import FLOATS, INTEGERS, Scalar, ValueType, compatible


def check_assignments(
    checker: Checker,
    statement: ast.Insert | ast.Update,
    type_: NodeType | EdgeType,
    endpoints: tuple[str, ...],
) -> tuple[plan.Assignment, ...]:
    """The assignments that are sound; ``endpoints`` may be assigned like Strings."""
    if not statement.assignments:
        checker.error(statement.type_name.span, "nothing is assigned", "T10")
    seen: set[str] = set()
    sound: list[plan.Assignment] = []
    for assignment in statement.assignments:
        name = assignment.property
        if name.text in seen:
            checker.error(name.span, f"`{name.text}` is assigned twice", "T13")
            continue
        seen.add(name.text)
        target = _target(checker, name, type_, endpoints)
        if target is None:
            continue
        value = _value(checker, name.text, assignment.value, target)
        if value is not None:
            sound.append(plan.Assignment(name.text, value))
    return tuple(sound)


def _target(
    checker: Checker, name: ast.Name, type_: NodeType | EdgeType, endpoints: tuple[str, ...]
) -> ValueType | None:
    if name.text in endpoints:
        return plan.TEXT
    definition = type_.properties.get(name.text)
    if definition is None:
        report_missing(checker, name, type_, endpoints)
        return None
    return definition.type


def report_missing(
    checker: Checker, name: ast.Name, type_: NodeType | EdgeType, extra: tuple[str, ...]
) -> None:
    """Report a property that a mutation names and the type does not have."""
    hint = name_hint(name.text, [*type_.properties, *extra])
    if name.text == "id":
        hint = "the id is `@id`, and only `where` may name it"
    checker.error(
        name.span,
        f"{type_.kind} type {type_.name} has no property `{name.text}`",
        "T11",
        hint=hint,
    )


def declared_param(checker: Checker, variable: ast.Variable) -> plan.ParamRef | None:
    """A parameter used as a value of a mutation (T14 when it is not declared)."""
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


def _value(
    checker: Checker, name: str, value: ast.Value, target: ValueType
) -> plan.Scalarish | None:
    match value:
        case ast.Now():
            if target.scalar is Scalar.DATETIME and not target.is_list:
                return plan.Now()
            checker.error(value.span, f"`now()` is a DateTime, `{name}` is {target}", "T7")
            return None
        case ast.Variable():
            param = declared_param(checker, value)
            if param is None or _storable(param.type, target):
                return param
            checker.error(value.span, f"`{name}` is {target}, ${value.name} is {param.type}", "T7")
            return None
        case _:
            return fit_literal(checker, value, target, f"`{name}`", storing=True)


def _storable(source: ValueType, target: ValueType) -> bool:
    """Whether every value of the parameter type can be stored in the property."""
    if target.is_blob:
        return source.scalar in (Scalar.BLOB, Scalar.STRING) and not source.is_list
    if source.scalar in FLOATS and target.scalar in INTEGERS:
        return False
    return compatible(source, target)
