"""Checking `return`: the result columns of a read.

Owns column names and types, aggregates and their grouping keys, and scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from omnigraph.lang.query import plan, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.blocks import aggregate_type
from omnigraph.lang.query.check.expressions import resolve
from omnigraph.lang.query.check.scope import Scope
from omnigraph.lang.query.check.search import resolve_ranking

_SCORE_NAMES = {terms.Nearest: "nearest", terms.Bm25: "bm25", terms.Rrf: "rrf"}


@dataclass(frozen=True, slots=True)
class CheckedColumns:
    """The columns of a result; ``complete`` is false when one of them was faulty."""

    columns: tuple[plan.Column, ...]
    aggregated: bool
    complete: bool

    def named(self, name: str) -> plan.Column | None:
        """A column by its name."""
        return next((column for column in self.columns if column.name == name), None)


def check_columns(scope: Scope, projections: tuple[ast.Projection, ...]) -> CheckedColumns:
    """Resolve every projection."""
    aggregated = any(isinstance(item.expr, terms.Aggregate) for item in projections)
    columns: list[plan.Column] = []
    names: set[str] = set()
    for item in projections:
        name = item.alias.text if item.alias is not None else default_name(item.expr)
        if item.alias is None and _is_computed(item.expr):
            scope.checker.error(
                item.span, "a computed column needs a name", "T25", hint="write `… as name`"
            )
        if name in names:
            where = item.alias.span if item.alias is not None else item.span
            scope.checker.error(
                where,
                f"two result columns are called `{name}`",
                "T25",
                hint="give one of them an alias: `… as other_name`",
            )
        names.add(name)
        value = _output(scope, item.expr)
        if value is None:
            continue
        columns.append(plan.Column(name, value))
        if aggregated and isinstance(value, plan.Score):
            scope.checker.error(
                item.expr.span, "a score is of one row, and cannot stand beside an aggregate", "T9"
            )
    return CheckedColumns(tuple(columns), aggregated, len(columns) == len(projections))


def default_name(expr: terms.Expr) -> str:
    """What a column without an alias is called."""
    match expr:
        case terms.Access(variable, name):
            return f"{variable.name}.{name.text}"
        case terms.Variable(name) | terms.Alias(name):
            return name
        case terms.Aggregate(_, argument):
            return default_name(argument)
        case terms.Now():
            return "now"
        case terms.TextCall(name):
            return name
        case terms.Nearest() | terms.Bm25() | terms.Rrf():
            return _SCORE_NAMES[type(expr)]
        case _:
            return "literal"


def _is_computed(expr: terms.Expr) -> bool:
    """Whether nothing in an expression could name its column."""
    if isinstance(expr, terms.Aggregate):
        return _is_computed(expr.argument)
    computed = (terms.Negative, terms.Arithmetic, terms.Call, terms.Case)
    return isinstance(expr, (*computed, *get_args(terms.Condition)))


def _output(scope: Scope, expr: terms.Expr) -> plan.Output | None:
    match expr:
        case terms.Aggregate():
            return _aggregate(scope, expr)
        case terms.Nearest() | terms.Bm25() | terms.Rrf():
            ranking = resolve_ranking(scope, expr)
            return plan.Score(ranking) if ranking is not None else None
        case terms.Alias(name):
            hint = f"did you mean `${name}`?" if name in scope.names() else None
            scope.checker.error(
                expr.span, f"`{name}` is no value; a column cannot refer to another", hint=hint
            )
            return None
        case terms.TextCall():
            scope.checker.error(
                expr.span, f"`{expr.name}` is a clause of `match`; it has no value to return"
            )
            return None
        case _:
            return _readable(scope, expr)


def _readable(scope: Scope, expr: terms.Expr) -> plan.Expression | plan.NodeRef | None:
    """A value that may leave the query: anything but a Blob."""
    value = resolve(scope, expr)
    if value is not None and not isinstance(value, plan.NodeRef) and value.type.is_blob:
        scope.checker.error(
            expr.span, "a Blob is read through the blob interface, not by a query", "T24"
        )
        return None
    return value


def _aggregate(scope: Scope, expr: terms.Aggregate) -> plan.Aggregate | None:
    argument_expr = expr.argument
    if isinstance(
        argument_expr, terms.Aggregate | terms.Nearest | terms.Bm25 | terms.Rrf | terms.TextCall
    ):
        scope.checker.error(
            argument_expr.span, f"`{expr.name}` aggregates a property, variable or literal", "T8"
        )
        return None
    if isinstance(argument_expr, terms.Alias):
        known = argument_expr.name in scope.names()
        hint = f"did you mean `${argument_expr.name}`?" if known else None
        scope.checker.error(argument_expr.span, "an aggregate cannot refer to a column", hint=hint)
        return None
    argument = _readable(scope, argument_expr)
    if argument is None:
        return None
    if isinstance(argument, plan.NodeRef):
        if expr.name == "count":
            return plan.Aggregate("count", argument, plan.COUNT_TYPE)
        described = f"the node ${argument.variable}"
    else:
        type_ = aggregate_type(expr.name, argument.type)
        if type_ is not None:
            return plan.Aggregate(expr.name, argument, type_)
        described = str(argument.type)
    scope.checker.error(expr.span, f"cannot take the {expr.name} of {described}", "T8")
    return None
