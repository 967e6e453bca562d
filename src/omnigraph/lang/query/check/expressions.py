"""Typing expressions: what each denotes, and of which type it is.

Owns the walk over operators and calls and their rules (T26, T34). What names and literals
denote, and which operands a comparison takes, is for other modules.
"""

from __future__ import annotations

from omnigraph.lang.conditions import denied, either
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.functions.kinds import common_type
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.functions.signature import Misuse, judge
from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.aggregates import resolve_aggregate, resolve_block_value
from omnigraph.lang.query.check.arithmetic import arithmetic_type
from omnigraph.lang.query.check.operands import Operand, report_unbound, resolve_operand
from omnigraph.lang.query.check.predicates import comparison, membership
from omnigraph.lang.query.check.scope import Scope
from omnigraph.lang.query.check.search import resolve_text_call
from omnigraph.lang.query.check.values import constant, describe
from omnigraph.lang.query.parsing.foreign import function_hint
from omnigraph.lang.source import Span
from omnigraph.lang.structural import TYPE
from omnigraph.lang.types import Scalar, ValueType

CONDITIONAL = "if"
"""The function that is another spelling of `case`."""
TYPE_FUNCTION = "type"
"""The function that looks at what a variable stands for, and not at a value of it."""


def resolve(scope: Scope, expr: terms.Expr) -> Operand | None:
    """What an expression denotes: a value or a whole node; None after reporting."""
    match expr:
        case terms.ListLiteral():
            return _list(scope, expr)
        case terms.Negative():
            return _negative(scope, expr)
        case terms.Arithmetic():
            return _arithmetic(scope, expr)
        case terms.Call():
            return _call(scope, expr)
        case terms.Aggregate() if scope.aggregates:
            return resolve_aggregate(scope, expr)
        case terms.BlockValue():
            return resolve_block_value(scope, expr)
        case terms.Case():
            branches = [(branch.condition, branch.value) for branch in expr.branches]
            return _case(scope, branches, expr.otherwise, expr.span)
        case (
            terms.Comparison()
            | terms.NullTest()
            | terms.Membership()
            | terms.Negation()
            | terms.Logical()
        ):
            return _condition(scope, expr)
        case _:
            return resolve_operand(scope, expr)


def resolve_value(scope: Scope, expr: terms.Expr, code: str = "T26") -> plan.Expression | None:
    """An expression that has a value to work on; nodes and blobs have none."""
    found = resolve(scope, expr)
    if isinstance(found, plan.NodeRef):
        scope.checker.error(
            expr.span,
            f"${found.variable} is a node and has no value to compare",
            code,
            hint=f"compare `${found.variable}.@id` or a property",
        )
        return None
    if found is not None and found.type.is_blob:
        scope.checker.error(expr.span, "a Blob cannot be filtered on", code)
        return None
    if found is not None and found.type.is_object:
        scope.checker.error(expr.span, "collected objects can only be returned", "T26")
        return None
    return found


def resolve_condition(scope: Scope, expr: terms.Expr) -> plan.Expression | None:
    """An expression that is true, false or unknown."""
    if isinstance(expr, terms.TextCall):
        return resolve_text_call(scope, expr)
    if isinstance(expr, terms.Variable | terms.Access) or not isinstance(expr, terms.Condition):
        found = resolve(scope, expr)
    else:
        found = _condition(scope, expr)
    if found is None:
        return None
    if (
        isinstance(found, plan.NodeRef)
        or found.type.is_list
        or found.type.scalar is not Scalar.BOOL
    ):
        scope.checker.error(
            expr.span,
            f"a condition is true or false, this is {describe(found)}",
            "T26",
            hint=f"ask `exists {{ … }}` of ${found.variable}, or compare a property of it"
            if isinstance(found, plan.NodeRef)
            else "compare it with something",
        )
        return None
    return found


def _is_truth(type_: ValueType) -> bool:
    return type_.scalar is Scalar.BOOL and not type_.is_list


# -- conditions --------------------------------------------------------------------


def _condition(scope: Scope, expr: terms.Condition) -> plan.Expression | None:
    match expr:
        case terms.Logical(op, operands):
            known = [resolve_condition(scope, operand) for operand in operands]
            sound = tuple(one for one in known if one is not None)
            if len(sound) < len(known):
                return None
            return either((sound,) if op == "and" else tuple((one,) for one in sound))
        case terms.Negation(operand):
            inner = resolve_condition(scope, operand)
            return denied(inner) if inner is not None else None
        case terms.NullTest():
            return _null_test(scope, expr)
        case terms.Membership(operand, choices):
            left = resolve_value(scope, operand, "T7")
            among = resolve(scope, choices)
            if left is None or among is None:
                return None
            return membership(scope.checker, expr.span, left, among)
        case terms.Comparison(left_side, op, right_side):
            if isinstance(left_side, terms.TextCall):
                return _explicit_text_call(scope, expr, left_side)
            left = resolve_value(scope, left_side, "T7")
            right = resolve_value(scope, right_side, "T7")
            if left is None or right is None:
                return None
            return comparison(scope.checker, expr.span, left, op, right)


def _explicit_text_call(
    scope: Scope, expr: terms.Comparison, call: terms.TextCall
) -> plan.Expression | None:
    right = expr.right
    if expr.op == "=" and isinstance(right, terms.Literal) and right.value is True:
        return resolve_text_call(scope, call)
    scope.checker.error(
        expr.span,
        f"`{call.name}` is a condition of its own",
        "T7",
        hint=f"write `{call.name}(…)` alone, or `not {call.name}(…)`",
    )
    return None


def _null_test(scope: Scope, expr: terms.NullTest) -> plan.IsNull | None:
    operand = resolve(scope, expr.operand)
    if operand is None:
        return None
    if isinstance(operand, plan.NodeRef) and not operand.nullable:
        scope.checker.error(
            expr.operand.span,
            f"${operand.variable} is never null: only a node of `optional` can be",
            "T7",
        )
        return None
    return plan.IsNull(operand, expr.negated)


# -- values ------------------------------------------------------------------------


def _list(scope: Scope, expr: terms.ListLiteral) -> plan.Expression | None:
    if all(isinstance(item, terms.Literal) for item in expr.items):
        return constant(scope.checker, expr)
    found = [resolve_value(scope, item) for item in expr.items]
    items = tuple(item for item in found if item is not None)
    if len(items) < len(found):
        return None
    type_ = common_type(item.type for item in items)
    if type_ is None or not type_.is_plain:
        scope.checker.error(expr.span, "a list holds values of one kind", "T26")
        return None
    return plan.ListOf(items, ValueType(type_.scalar, is_list=True))


def _negative(scope: Scope, expr: terms.Negative) -> plan.Expression | None:
    operand = resolve_value(scope, expr.operand)
    if operand is None:
        return None
    zero = ValueType(Scalar.I64)
    type_ = arithmetic_type("-", zero, operand.type) if operand.type.is_numeric else None
    if type_ is None:
        scope.checker.error(
            expr.span, f"`-` stands before a number, found {describe(operand)}", "T26"
        )
        return None
    return plan.Negative(operand, type_)


def _arithmetic(scope: Scope, expr: terms.Arithmetic) -> plan.Expression | None:
    first = resolve_value(scope, expr.first)
    found = [(op, resolve_value(scope, operand), operand.span) for op, operand in expr.rest]
    if first is None:
        return None
    type_, end = first.type, expr.first.span
    rest: list[tuple[plan.ArithmeticOp, plan.Expression]] = []
    for op, operand, span in found:
        if operand is None:
            return None
        result = arithmetic_type(op, type_, operand.type)
        if result is None:
            scope.checker.error(
                end.to(span),
                f"`{op}` does not take {type_} and {operand.type}",
                "T26",
                hint=_way_out(op, type_, operand.type),
            )
            return None
        rest.append((op, operand))
        type_, end = result, expr.first.span.to(span)
    return plan.Arithmetic(first, tuple(rest), type_)


def _way_out(op: str, left: ValueType, right: ValueType) -> str | None:
    scalars = {left.scalar, right.scalar}
    if Scalar.DATETIME in scalars:
        return "moments move by `plus_hours(…)` and its kin; `hours_between(a, b)` tells them apart"
    if op == "+" and Scalar.STRING in scalars:
        return "`to_string(…)` makes a text of a value"
    return None


def _call(scope: Scope, expr: terms.Call) -> plan.Expression | None:
    checker, name = scope.checker, expr.name.text
    function = FUNCTIONS.get(name)
    if name == TYPE_FUNCTION:
        return _type_name(scope, expr)
    if function is None:
        checker.error(
            expr.name.span,
            f"there is no function `{name}`",
            "T34",
            hint=function_hint(name)
            or did_you_mean(
                name, (*FUNCTIONS, TYPE_FUNCTION, *terms.AGGREGATES, *terms.TEXT_CALLS)
            ),
        )
        return None
    if name == CONDITIONAL and len(expr.arguments) == 3:
        condition, chosen, otherwise = expr.arguments
        return _case(scope, [(condition, chosen)], otherwise, expr.span)
    found = [resolve_value(scope, argument) for argument in expr.arguments]
    arguments = tuple(argument for argument in found if argument is not None)
    if len(arguments) < len(found):
        return None
    judged = judge(function, [argument.type for argument in arguments])
    if isinstance(judged, Misuse):
        at = expr.span if judged.argument is None else expr.arguments[judged.argument].span
        checker.error(at, judged.message, "T34", hint=f"it is `{function.signature}`")
        return None
    return plan.Call(name, arguments, judged)


def _type_name(scope: Scope, expr: terms.Call) -> plan.Property | None:
    """`type($x)`: the name of a node's or an edge's type."""
    match expr.arguments:
        case (terms.Variable() as variable,):
            bound = scope.find(variable.name)
            if bound is None:
                report_unbound(scope, variable, "T34")
                return None
            return plan.Property(bound.name, TYPE, plan.TEXT.or_null(when=bound.nullable))
    scope.checker.error(
        expr.span, "`type` takes a node or an edge", "T34", hint="write `type($variable)`"
    )
    return None


def _case(
    scope: Scope,
    branches: list[tuple[terms.Expr, terms.Expr]],
    otherwise: terms.Expr | None,
    span: Span,
) -> plan.Expression | None:
    tests = [resolve_condition(scope, condition) for condition, _ in branches]
    values = [resolve_value(scope, value) for _, value in branches]
    last = resolve_value(scope, otherwise) if otherwise is not None else None
    if otherwise is not None and last is None:
        return None
    pairs = tuple(
        (test, value)
        for test, value in zip(tests, values, strict=True)
        if test is not None and value is not None
    )
    if len(pairs) < len(branches):
        return None
    found = [value for _, value in pairs] + ([last] if last is not None else [])
    type_ = common_type(value.type for value in found)
    if type_ is None:
        kinds = ", ".join(dict.fromkeys(str(value.type.without_null) for value in found))
        scope.checker.error(span, f"the values to choose from are of several kinds: {kinds}", "T26")
        return None
    may_be_null = last is None or any(value.type.nullable for value in found)
    return plan.Case(pairs, last, type_.without_null.or_null(when=may_be_null))
