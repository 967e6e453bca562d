"""Typing what has a value of its own: variables, property access, literals, `now()`.

Owns what an expression denotes on its own. Whether it may stand where it
stands is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import did_you_mean, name_hint
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.scope import (
    Bound,
    Checker,
    EdgeBinding,
    NodeBinding,
    Scope,
    WayBinding,
)
from omnigraph.lang.query.check.values import constant
from omnigraph.lang.query.check.way_properties import way_property
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.types import RecordList, ValueType

Operand = plan.Expression | plan.NodeRef


def resolve_operand(scope: Scope, expr: terms.Expr) -> Operand | None:
    """A scalar or a node; None when it is neither, which has been reported."""
    checker = scope.checker
    match expr:
        case terms.Literal() | terms.ListLiteral():
            return constant(checker, expr)
        case terms.Now():
            return plan.Now()
        case terms.Access(variable) if variable.name in checker.elements:
            return element_field(checker, expr)
        case terms.Access():
            return resolve_access(scope, expr)
        case terms.Variable():
            return resolve_variable(scope, expr)
        case terms.Alias(name) if name in scope.columns:
            column = scope.columns[name]
            if isinstance(column, plan.Score):
                checker.error(expr.span, f"`{name}` is a score; it is ordered by alone", "T26")
                return None
            return column
        case terms.Alias(name):
            if name == "null":
                checker.error(expr.span, "nothing equals null", "T7", hint="write `is null`")
            else:
                hint = did_you_mean(name, scope.names(), prefix="$")
                hint = hint or f'a text takes quotes: `"{name}"`'
                checker.error(expr.span, f"`{name}` is no value here", "T7", hint=hint)
            return None
        case terms.NodeKey():
            checker.error(
                expr.span,
                "a node by its key stands at an end of an edge in a statement, and nowhere else",
                "T7",
                hint=f"bind it: `$x: {expr.type_name.text} {{ … }}`",
            )
            return None
        case terms.Aggregate():
            checker.error(
                expr.span,
                "an aggregate cannot stand in a filter",
                "T7",
                hint=f"aggregate a block: `{_with_argument(expr.name)} {{ … }}`",
            )
            return None
        case terms.TextCall():
            checker.error(
                expr.span, f"`{expr.name}` is a clause of its own, not a value to compare", "T7"
            )
            return None
        case terms.Nearest() | terms.Bm25() | terms.Rrf():
            checker.error(expr.span, "a ranking orders rows; it cannot stand in a filter", "T7")
            return None
        case _:
            raise AssertionError(f"{expr} is made of parts")


def _with_argument(name: terms.AggregateName) -> str:
    return name if name == "count" else f"{name}(…)"


def resolve_variable(scope: Scope, variable: terms.Variable) -> Operand | None:
    """A node or a parameter behind a bare variable."""
    bound = scope.find(variable.name)
    checker = scope.checker
    if isinstance(bound, EdgeBinding):
        checker.error(
            variable.span,
            f"${variable.name} is an edge and has no value of its own",
            "T23",
            hint=f"use a property such as `${variable.name}.@id`",
        )
        return None
    if isinstance(bound, NodeBinding | WayBinding):
        if bound.type is None:
            return None
        return plan.NodeRef(bound.name, bound.type.name, bound.nullable)
    if scope.is_value(variable.name):
        return scope.find_value(variable.name)
    return resolve_param(scope, variable)


def resolve_param(scope: Scope, variable: terms.Variable) -> plan.ParamRef | None:
    """A declared parameter; anything else is reported as not bound."""
    if variable.name == terms.ANONYMOUS:
        scope.checker.error(variable.span, "`$_` is anonymous and cannot be looked at")
        return None
    element = scope.checker.elements.get(variable.name)
    if isinstance(element, ValueType):
        return plan.ParamRef(variable.name, element)
    if variable.name not in scope.checker.params:
        scope.unbound(variable)
        return None
    type_ = scope.checker.params[variable.name]
    return plan.ParamRef(variable.name, type_) if type_ is not None else None


def element_field(checker: Checker, access: terms.Access) -> plan.ParamRef | None:
    """`$s.year`: a field of the record that a `for` is at."""
    name, field = access.variable.name, access.property
    element = checker.elements.get(name)
    if not isinstance(element, RecordList):
        checker.error(
            access.span,
            f"${name} is no record that a `for` goes through",
            "T14",
            hint=_no_record_hint(checker, name),
        )
        return None
    type_ = element.field(field.text)
    if type_ is None:
        known = [known for known, _ in element.fields]
        hint = name_hint(field.text, known)
        checker.error(field.span, f"${name} has no field `{field.text}`", "T6", hint=hint)
        return None
    return plan.ParamRef(plan.field_of(name, field.text), type_)


def _no_record_hint(checker: Checker, name: str) -> str | None:
    if name in checker.elements:
        return f"it is one value: write `${name}`"
    if name in checker.records:
        return f"write `for $x in ${name} {{ … }}`"
    records = [each for each, one in checker.elements.items() if isinstance(one, RecordList)]
    return name_hint(name, records, prefix="$") if records else None


def report_unbound(scope: Scope, variable: terms.Variable, code: str) -> None:
    """Report a variable that has no properties, because nothing binds it to a node or edge."""
    if scope.is_value(variable.name):
        scope.checker.error(
            variable.span, f"${variable.name} is a value and has no properties", code
        )
    elif variable.name in scope.checker.params:
        scope.checker.error(variable.span, f"${variable.name} is a parameter, not a node", code)
    elif variable.name == terms.ANONYMOUS:
        scope.checker.error(variable.span, "`$_` is anonymous and cannot be looked at", code)
    else:
        scope.unbound(variable, code)


def resolve_access(scope: Scope, access: terms.Access) -> plan.Property | None:
    """`$variable.property` of a node or an edge."""
    checker = scope.checker
    variable, name = access.variable, access.property
    bound = scope.find(variable.name)
    if bound is None:
        report_unbound(scope, variable, "T6")
        return None
    type_ = property_type(checker, bound, name)
    if type_ is None:
        return None
    return plan.Property(bound.name, name.text, type_.or_null(when=bound.nullable))


def property_type(checker: Checker, bound: Bound, name: terms.Name) -> ValueType | None:
    """The type of a property or structural column; None when there is no such thing (T6)."""
    if bound.type is None:
        return None
    if isinstance(bound, WayBinding):
        return way_property(checker, bound, name)
    is_edge = isinstance(bound, EdgeBinding)
    if name.text in terms.SYSTEM_PROPERTIES:
        if name.text == structural.ID or is_edge:
            return plan.TEXT
        checker.error(name.span, f"a node has no `{name.text}`; only edges do", "T6")
        return None
    if isinstance(bound.type, TypeSet) and name.text in bound.type.disagreeing:
        report_disagreeing(checker, bound.type, name, "T6")
        return None
    definition = bound.type.properties.get(name.text)
    if definition is not None:
        return definition.type
    kind = "edge" if is_edge else "node"
    hint = name_hint(name.text, bound.type.properties)
    if name.text.startswith("@"):
        hint = name_hint(name.text, terms.SYSTEM_PROPERTIES if is_edge else (structural.ID,))
    elif name.text == "id":
        hint = "the id is `@id`"
    if isinstance(bound.type, TypeSet) and is_edge:
        hint = hint or "only properties that all of these edge types have can be read"
    checker.error(
        name.span, f"{kind} type {bound.type.name} has no property `{name.text}`", "T6", hint=hint
    )
    return None


def report_disagreeing(checker: Checker, type_: TypeSet, name: terms.Name, code: str) -> None:
    """Report a property that the types of a set have in types that do not go together."""
    types: Mapping[str, NodeType | EdgeType] = (
        checker.catalog.nodes if type_.kind == "node" else checker.catalog.edges
    )
    having = [
        f"{member}.{name.text} is {types[member].properties[name.text].type}"
        for member in type_.members
        if name.text in types[member].properties
    ]
    checker.error(
        name.span,
        f"`{name.text}` is not one thing here: {', '.join(having)}",
        code,
        hint="narrow the variable to one type first" if type_.kind == "node" else None,
    )
