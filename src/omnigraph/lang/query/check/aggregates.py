"""Typing aggregates and blocks that have a value.

Owns which aggregate takes what (T8), that none stands in another (T29), and the step from a block
inside an expression to a fold of its solutions.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.expressions import SortKey, is_fixed
from omnigraph.lang.functions.kinds import number_of
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query.check.operands import resolve_param
from omnigraph.lang.query.check.scope import Scope
from omnigraph.lang.types import INTEGERS, NUMERIC, Scalar, ValueType

OBJECTS = ValueType(Scalar.STRING, is_list=True, is_object=True)
_TRUTHS = ("bool_and", "bool_or", "count_if")
_MEASURES = ("avg", "median", "percentile", "stddev", "variance")
_DISTINCT = ("count", "sum", "avg", "collect")


def resolve_block_value(
    scope: Scope, expr: terms.BlockValue, name: str | None = None
) -> plan.Computed | None:
    """The value of a block; the fold that makes it joins those of the block around."""
    # Blocks are made of expressions, and expressions of blocks.
    from omnigraph.lang.query.check.blocks import check_block

    inner = Scope(scope.checker, scope)
    block = check_block(inner, expr.clauses)
    value: plan.BlockValue
    if isinstance(expr.value, terms.Aggregate):
        found = resolve_aggregate(inner, expr.value)
        if found is None:
            return None
        value, type_ = found, found.type
    else:
        value, type_ = expr.value, ValueType(Scalar.BOOL)
    made = scope.checker.fresh_name() if name is None else name
    block = replace(block, values=tuple(inner.made))
    scope.made.append(resolved.Fold(made, value, block, frozenset(inner.used_outer)))
    return plan.Computed(made, type_)


def resolve_aggregate(scope: Scope, expr: terms.Aggregate) -> plan.Aggregate | None:
    """An aggregate of rows that the scope describes."""
    for part in terms.parts_of(expr):
        if terms.has_aggregate(part):
            scope.checker.error(
                part.span,
                "an aggregate cannot stand inside another",
                "T29",
                hint="a block has a value for each row: `avg(count { … })`",
            )
            return None
    allowed, scope.aggregates = scope.aggregates, False
    try:
        return _resolved(scope, expr)
    finally:
        scope.aggregates = allowed


def _resolved(scope: Scope, expr: terms.Aggregate) -> plan.Aggregate | None:
    if expr.distinct and expr.name not in _DISTINCT:
        scope.checker.error(expr.span, f"`{expr.name}` takes no `distinct`", "T8")
        return None
    if expr.fields:
        return _collected_objects(scope, expr)
    if expr.argument is None:
        if expr.name == "count":
            return plan.Aggregate("count", None, plan.COUNT_TYPE)
        scope.checker.error(expr.span, f"`{expr.name}` needs something to look at", "T8")
        return None
    argument = _argument(scope, expr, expr.argument)
    if argument is None:
        return None
    fraction = _fraction(scope, expr)
    order = _order(scope, expr)
    limit = _limit(scope, expr)
    if order is None or (expr.name == "percentile" and fraction is None):
        return None
    if isinstance(argument, plan.NodeRef):
        if expr.name == "count":
            return plan.Aggregate("count", argument, plan.COUNT_TYPE, expr.distinct)
        described = f"the node ${argument.variable}"
    else:
        type_ = aggregate_type(expr.name, argument.type)
        if type_ is not None:
            return plan.Aggregate(expr.name, argument, type_, expr.distinct, fraction, order, limit)
        described = str(argument.type)
    hint = None
    if expr.name == "collect" and isinstance(argument, plan.NodeRef):
        hint = f"collect objects: `collect({{ ${argument.variable}.name }})`"
    scope.checker.error(expr.span, f"cannot take the {expr.name} of {described}", "T8", hint=hint)
    return None


def aggregate_type(function: terms.AggregateName, argument: ValueType) -> ValueType | None:
    """The type of an aggregate of a scalar, or None when there is no such aggregate (T8)."""
    is_number = argument.scalar in NUMERIC and not argument.is_list
    if function == "count":
        return plan.COUNT_TYPE
    if function in _TRUTHS:
        is_truth = argument.scalar is Scalar.BOOL and not argument.is_list
        made = plan.COUNT_TYPE if function == "count_if" else plan.CONDITION
        return made if is_truth else None
    if function == "sum":
        return number_of((argument,)).or_null() if is_number else None
    if function in _MEASURES:
        return plan.FLOAT_TYPE if is_number else None
    if function == "collect":
        return ValueType(argument.scalar, is_list=True) if argument.is_plain else None
    if function == "any_value":
        return argument.or_null()
    return argument.or_null() if argument.is_plain else None


def _argument(
    scope: Scope, expr: terms.Aggregate, argument: terms.Expr
) -> plan.Expression | plan.NodeRef | None:
    from omnigraph.lang.query.check.expressions import resolve

    if isinstance(argument, terms.Nearest | terms.Bm25 | terms.Rrf | terms.TextCall):
        scope.checker.error(
            argument.span, f"`{expr.name}` aggregates a property, variable or literal", "T8"
        )
        return None
    if isinstance(argument, terms.Alias):
        known = argument.name in scope.names()
        hint = f"did you mean `${argument.name}`?" if known else None
        scope.checker.error(argument.span, "an aggregate cannot refer to a column", hint=hint)
        return None
    found = resolve(scope, argument)
    if found is not None and not isinstance(found, plan.NodeRef) and found.type.is_blob:
        scope.checker.error(
            argument.span, "a Blob is read through the blob interface, not by a query", "T24"
        )
        return None
    return found


def _fraction(scope: Scope, expr: terms.Aggregate) -> plan.Expression | None:
    from omnigraph.lang.query.check.expressions import resolve_value

    if expr.name != "percentile":
        return None
    found = resolve_value(scope, expr.fraction, "T8") if expr.fraction is not None else None
    value = found.value if isinstance(found, plan.Const) else 0
    if (
        found is None
        or not found.type.is_numeric
        or not is_fixed(found)
        or not isinstance(value, int | float)
        or not 0 <= value <= 1
    ):
        scope.checker.error(
            expr.span,
            "`percentile` takes a part between 0 and 1, the same for every row",
            "T8",
            hint="write `percentile(x, 0.95)`",
        )
        return None
    return found


def _order(scope: Scope, expr: terms.Aggregate) -> tuple[SortKey, ...] | None:
    from omnigraph.lang.query.check.expressions import resolve

    keys: list[SortKey] = []
    for ordering in expr.order:
        found = resolve(scope, ordering.expr)
        if isinstance(found, plan.NodeRef):
            found = plan.Property(found.variable, "@id", plan.TEXT.or_null())
        if found is None:
            return None
        if not found.type.is_plain:
            scope.checker.error(ordering.expr.span, f"{found.type} has no order")
            return None
        keys.append(SortKey(found, ordering.descending, ordering.nulls))
    return tuple(keys)


def _limit(scope: Scope, expr: terms.Aggregate) -> plan.Fixed | None:
    if expr.limit is None:
        return None
    if isinstance(expr.limit, terms.Literal):
        value = expr.limit.value if isinstance(expr.limit.value, int) else 0
        return plan.Const(value, ValueType(Scalar.I64))
    param = resolve_param(scope, expr.limit)
    if param is not None and (param.type.scalar not in INTEGERS or param.type.is_list):
        scope.checker.error(
            expr.limit.span, f"a number of rows is an integer, ${param.name} is {param.type}"
        )
    return param


def _collected_objects(scope: Scope, expr: terms.Aggregate) -> plan.Aggregate | None:
    from omnigraph.lang.query.check.expressions import resolve

    fields: list[tuple[str, plan.Expression | plan.NodeRef]] = []
    for field in expr.fields:
        name = _field_name(scope, field)
        if any(name == known for known, _ in fields):
            scope.checker.error(
                field.span, f"two fields are called `{name}`", "T25", hint="write `… as other_name`"
            )
        found = resolve(scope, field.expr)
        if found is None:
            return None
        if not isinstance(found, plan.NodeRef) and (found.type.is_blob or found.type.is_object):
            scope.checker.error(field.expr.span, "this cannot be a field of an object", "T24")
            return None
        fields.append((name, found))
    order = _order(scope, expr)
    limit = _limit(scope, expr)
    if order is None:
        return None
    return plan.Aggregate("collect", None, OBJECTS, order=order, limit=limit, fields=tuple(fields))


def _field_name(scope: Scope, field: terms.Projection) -> str:
    if field.alias is not None:
        return field.alias.text
    match field.expr:
        case terms.Access(_, property_):
            return property_.text
        case terms.Variable(name):
            return name
    scope.checker.error(
        field.span, "a computed field needs a name", "T25", hint="write `… as name`"
    )
    return ""
