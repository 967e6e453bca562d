"""Typing filters: comparisons, string predicates, `in`, `is null`, text calls.

Owns which operands each operator takes (T7). Used for the clauses of a match
block; the where clause of a mutation has rules of its own.
"""

from __future__ import annotations

from omnigraph.lang.query import plan, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.operands import Operand, resolve_operand
from omnigraph.lang.query.check.scope import Checker, Scope
from omnigraph.lang.query.check.search import resolve_text_call
from omnigraph.lang.query.check.values import describe
from omnigraph.lang.source import Span
from omnigraph.lang.types import compatible

FilterClause = ast.Filter | ast.NullTest | ast.Membership | ast.TextPredicate


def resolve_filter(scope: Scope, clause: FilterClause) -> plan.Predicate | None:
    """One filter clause as a predicate, or None after reporting."""
    match clause:
        case ast.TextPredicate(call):
            return resolve_text_call(scope, call)
        case ast.NullTest():
            return _null_test(scope, clause)
        case ast.Membership():
            return _membership(scope, clause)
        case ast.Filter():
            if isinstance(clause.left, terms.TextCall):
                return _explicit_text_predicate(scope, clause, clause.left)
            left = _scalar(scope, clause.left)
            right = _scalar(scope, clause.right)
            if left is None or right is None:
                return None
            return comparison(scope.checker, clause.span, left, clause.op, right)


def _explicit_text_predicate(
    scope: Scope, clause: ast.Filter, call: terms.TextCall
) -> plan.Predicate | None:
    right = clause.right
    if clause.op == "=" and isinstance(right, terms.Literal) and right.value is True:
        return resolve_text_call(scope, call)
    scope.checker.error(
        clause.span,
        f"`{call.name}` is a clause of its own",
        "T7",
        hint=f"write `{call.name}(…)` alone, or inside `not {{ … }}`",
    )
    return None


def _scalar(scope: Scope, expr: terms.Expr) -> plan.Scalarish | None:
    """An operand that has a value; nodes and blobs have none a filter could look at."""
    operand = resolve_operand(scope, expr)
    if isinstance(operand, plan.NodeRef):
        scope.checker.error(
            expr.span,
            f"${operand.variable} is a node and has no value to compare",
            "T7",
            hint=f"compare `${operand.variable}.@id` or a property",
        )
        return None
    if operand is not None and operand.type.is_blob:
        scope.checker.error(expr.span, "a Blob cannot be filtered on", "T7")
        return None
    return operand


def _null_test(scope: Scope, clause: ast.NullTest) -> plan.IsNull | None:
    operand: Operand | None = resolve_operand(scope, clause.operand)
    if operand is None:
        return None
    if isinstance(operand, plan.NodeRef) and not operand.nullable:
        scope.checker.error(
            clause.operand.span,
            f"${operand.variable} is never null: only a node of `optional` can be",
            "T7",
        )
        return None
    return plan.IsNull(operand, clause.negated)


def _membership(scope: Scope, clause: ast.Membership) -> plan.InList | None:
    left = _scalar(scope, clause.operand)
    choices = resolve_operand(scope, clause.choices)
    if left is None or choices is None:
        return None
    return membership(scope.checker, clause.span, left, choices)


# -- rules shared with the where clause of mutations -------------------------------


def membership(
    checker: Checker, span: Span, left: plan.Scalarish, choices: Operand
) -> plan.InList | None:
    """`left in choices`."""
    if not left.type.is_plain:
        checker.error(
            span,
            f"the left side of `in` is one value, found {describe(left)}",
            "T7",
            hint="use `contains` for a list property" if left.type.is_list else None,
        )
        return None
    if not isinstance(choices, plan.ParamRef | plan.Const) or not choices.type.is_list:
        checker.error(span, f"the right side of `in` is a list, found {describe(choices)}", "T7")
        return None
    empty = choices == plan.Const((), choices.type)
    if not empty and not compatible(left.type, choices.type.element()):
        checker.error(span, f"cannot look for {describe(left)} in {describe(choices)}", "T7")
        return None
    return plan.InList(left, choices)


def comparison(
    checker: Checker, span: Span, left: plan.Scalarish, op: terms.FilterOp, right: plan.Scalarish
) -> plan.Predicate | None:
    """`left op right` for the operators of a filter."""
    if op == "contains":
        return _contains(checker, span, left, right)
    if op == "starts_with":
        if left.type.is_text and right.type.is_text:
            return plan.StartsWith(left, right)
        checker.error(
            span,
            f"`starts_with` compares two Strings, found {describe(left)} and {describe(right)}",
            "T7",
        )
        return None
    for side in (left, right):
        if not side.type.is_plain:
            kind = "list" if side.type.is_list else "vector"
            checker.error(
                span,
                f"`{op}` does not compare a {kind}",
                "T7",
                hint="use `contains` for membership" if side.type.is_list else None,
            )
            return None
    if not compatible(left.type, right.type):
        checker.error(span, f"cannot compare {describe(left)} with {describe(right)}", "T7")
        return None
    return plan.Comparison(left, op, right)


def _contains(
    checker: Checker, span: Span, left: plan.Scalarish, right: plan.Scalarish
) -> plan.Contains | None:
    if left.type.is_list and right.type.is_plain and compatible(left.type.element(), right.type):
        return plan.Contains(left, right)
    if left.type.is_text and right.type.is_text:
        return plan.Contains(left, right)
    checker.error(
        span,
        "`contains` looks for a value in a list or a String in a String, "
        f"found {describe(left)} and {describe(right)}",
        "T7",
    )
    return None
