"""Checking `return`: the result columns of a read.

Owns column names and types, aggregates and their grouping keys, and scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import get_args

from omnigraph.lang.expressions import parts_of
from omnigraph.lang.query import plan, terms
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


def check_columns(scope: Scope, projections: tuple[terms.Projection, ...]) -> CheckedColumns:
    """Resolve every projection."""
    aggregated = any(terms.has_aggregate(item.expr) for item in projections)
    columns: list[plan.Column] = []
    faulty: list[terms.Projection] = []
    names: set[str] = set()
    scope.aggregates = True
    for item in projections:
        name = item.alias.text if item.alias is not None else default_name(item.expr)
        if item.alias is None and _is_computed(item.expr):
            scope.checker.error(
                item.span, "a computed column needs a name", "T25", hint="write `… as name`"
            )
        elif name in names:
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
            faulty.append(item)
            continue
        columns.append(plan.Column(name, value))
        if aggregated and isinstance(value, plan.Score):
            scope.checker.error(
                item.expr.span, "a score is of one row, and cannot stand beside an aggregate", "T9"
            )
    scope.aggregates = False
    if aggregated and not faulty:
        _check_group_keys(scope, projections, columns)
    return CheckedColumns(tuple(columns), aggregated, not faulty)


def _check_group_keys(
    scope: Scope, projections: tuple[terms.Projection, ...], columns: list[plan.Column]
) -> None:
    """What stands beside an aggregate in one column is the same for all rows of a group."""
    keys = {column.value for column in columns if not is_of_group(column.value)}
    nodes = {key.variable for key in keys if isinstance(key, plan.NodeRef)}
    for item, column in zip(projections, columns, strict=True):
        value = column.value
        if isinstance(value, plan.Aggregate | plan.NodeRef | plan.Score) or value in keys:
            continue
        for leaf in loose_parts(value, keys):
            if isinstance(leaf, plan.Property) and leaf.variable in nodes:
                continue
            if isinstance(leaf, plan.Property | plan.NodeRef | plan.Computed):
                scope.checker.error(
                    item.expr.span,
                    "beside an aggregate, only what rows are grouped by has one value",
                    "T9",
                    hint="return it as a column of its own too, or aggregate it",
                )
                break


def loose_parts(
    value: plan.Expression | plan.NodeRef, keys: Collection[plan.Output]
) -> Iterator[plan.Expression | plan.NodeRef]:
    """The parts of an expression that are neither aggregates nor among some others."""
    waiting: list[plan.Expression | plan.NodeRef] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, plan.Aggregate) or found in keys:
            continue
        yield found
        waiting.extend(parts_of(found))


def is_of_group(value: plan.Output) -> bool:
    """Whether a column is a value of a group rather than one that rows are grouped by."""
    if isinstance(value, plan.Score):
        return False
    waiting: list[plan.Expression | plan.NodeRef] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, plan.Aggregate):
            return True
        waiting.extend(parts_of(found))
    return False


def default_name(expr: terms.Expr) -> str:
    """What a column without an alias is called."""
    match expr:
        case terms.Access(variable, name):
            return f"{variable.name}.{name.text}"
        case terms.Variable(name) | terms.Alias(name):
            return name
        case terms.Aggregate(_, argument) if argument is not None:
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
        return expr.argument is None or _is_computed(expr.argument)
    computed = (terms.Negative, terms.Arithmetic, terms.Call, terms.Case, terms.BlockValue)
    return isinstance(expr, (*computed, *get_args(terms.Condition)))


def _output(scope: Scope, expr: terms.Expr) -> plan.Output | None:
    match expr:
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
