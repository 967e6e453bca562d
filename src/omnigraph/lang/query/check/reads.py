"""Checking reads as a whole: match, return, order, limit.

Owns the rules between the parts: what may order what, when a limit is needed,
which scores may be returned.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.blocks import check_block
from omnigraph.lang.query.check.columns import CheckedColumns, check_columns, default_name
from omnigraph.lang.query.check.expressions import resolve
from omnigraph.lang.query.check.operands import resolve_access, resolve_param
from omnigraph.lang.query.check.scope import Checker, Scope, WayBinding
from omnigraph.lang.query.check.search import resolve_ranking
from omnigraph.lang.types import INTEGERS


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """A read with every name resolved, ready to be lowered."""

    block: resolved.ResolvedBlock
    columns: CheckedColumns
    distinct: bool
    ranking: plan.Ranking | None
    order: tuple[plan.OrderKey, ...]
    limit: plan.RowCount | None
    offset: plan.RowCount | None
    variables: tuple[str, ...]
    ways: frozenset[str] = frozenset()
    """Those of the variables that stand for ways."""


def check_read(checker: Checker, read: ast.Read) -> CheckedRead:
    """Resolve a read; only meaningful when nothing was reported."""
    scope = Scope(checker)
    block = check_block(scope, read.clauses)
    columns = check_columns(scope, read.projections)
    ordering = _Ordering(scope, read, columns)
    ranking = ordering.ranking()
    order = ordering.keys()
    _check_scores(scope, read, columns, ranking)
    limit = _row_count(scope, read.limit)
    offset = _row_count(scope, read.offset)
    ways = frozenset(name for name, bound in scope.own.items() if isinstance(bound, WayBinding))
    return CheckedRead(
        block, columns, read.distinct, ranking, order, limit, offset, tuple(scope.own), ways
    )


class _Ordering:
    """Checks the order keys of one read."""

    def __init__(self, scope: Scope, read: ast.Read, columns: CheckedColumns) -> None:
        self.scope = scope
        self.checker = scope.checker
        self.read = read
        self.columns = columns

    def ranking(self) -> plan.Ranking | None:
        """The ranking call that is the first order key, if one is."""
        if not self.read.ordering or not isinstance(self.read.ordering[0].expr, terms.Ranking):
            return None
        expr = self.read.ordering[0].expr
        if self.read.limit is None:
            if isinstance(expr, terms.Nearest):
                self.checker.error(expr.span, "`nearest` needs a `limit`", "T17")
            elif isinstance(expr, terms.Rrf):
                self.checker.error(expr.span, "`rrf` needs a `limit`", "T21")
        ranking = resolve_ranking(self.scope, expr)
        if ranking is None:
            return None
        returned = any(column.value == plan.Score(ranking) for column in self.columns.columns)
        if self.columns.aggregated or (self.read.distinct and not returned):
            self._only_columns(expr)
        return ranking

    def keys(self) -> tuple[plan.OrderKey, ...]:
        """The order keys that are not a leading ranking."""
        keys: list[plan.OrderKey] = []
        for index, ordering in enumerate(self.read.ordering):
            if isinstance(ordering.expr, terms.Ranking):
                if index > 0:
                    self.checker.error(
                        ordering.expr.span, "a ranking can only be the first order key"
                    )
                continue
            by = self._key(ordering.expr)
            if by is not None:
                keys.append(plan.OrderKey(by, ordering.descending))
        return tuple(keys)

    def _key(self, expr: terms.Expr) -> str | plan.Expression | None:
        match expr:
            case terms.Alias():
                return self._alias(expr)
            case terms.Access():
                return self._property(expr)
            case terms.Aggregate():
                self.checker.error(
                    expr.span,
                    "unsupported ordering expression",
                    hint="give it an alias in `return` and order by that",
                )
                return None
        if self.columns.aggregated or self.read.distinct:
            self._only_columns(expr)
            return None
        found = resolve(self.scope, expr)
        if isinstance(found, plan.NodeRef):
            return plan.Property(found.variable, structural.ID, plan.TEXT.or_null())
        if found is not None and not found.type.is_plain:
            self.checker.error(expr.span, f"{found.type} has no order")
            return None
        return found

    def _alias(self, expr: terms.Alias) -> str | None:
        column = self.columns.named(expr.name)
        if column is None:
            if self.columns.complete:
                hint = did_you_mean(expr.name, self._spelt_columns())
                self.checker.error(
                    expr.span, f"alias '{expr.name}' not found for ordering", hint=hint
                )
            return None
        return self._sortable(expr, column)

    def _spelt_columns(self) -> list[str]:
        """The result columns as order keys would name them."""
        names = [column.name for column in self.columns.columns]
        return [f"${name}" if "." in name else name for name in names]

    def _sortable(self, expr: terms.Alias | terms.Access, column: plan.Column) -> str | None:
        value = column.value
        if isinstance(value, plan.NodeRef) or value.type.is_list or value.type.is_vector:
            self.checker.error(expr.span, f"`{column.name}` has no order")
            return None
        return column.name

    def _property(self, expr: terms.Access) -> str | plan.Property | None:
        name = default_name(expr)
        column = self.columns.named(name)
        if self.columns.aggregated or self.read.distinct:
            if column is not None:
                return self._sortable(expr, column)
            if self.columns.complete:
                self._only_columns(expr)
            return None
        access = resolve_access(self.scope, expr)
        if access is None:
            return None
        if access.type.is_blob:
            self.checker.error(expr.span, "a Blob has no order", "T24")
            return None
        if not access.type.is_plain:
            self.checker.error(expr.span, f"{access.type} has no order")
            return None
        return access

    def _only_columns(self, expr: terms.Expr) -> None:
        why = "an aggregate query" if self.columns.aggregated else "`return distinct`"
        self.checker.error(
            expr.span,
            f"{why} is ordered by its result columns only",
            "T9",
            hint="return it too, or order by the alias it has",
        )


def _check_scores(
    scope: Scope, read: ast.Read, columns: CheckedColumns, ranking: plan.Ranking | None
) -> None:
    """A returned score is that of the ranking in use, or of the only one there is."""
    expected = ranking
    for projection in read.projections:
        if not isinstance(projection.expr, terms.Ranking):
            continue
        name = projection.alias.text if projection.alias else default_name(projection.expr)
        column = columns.named(name)
        if column is None or not isinstance(column.value, plan.Score):
            continue
        if expected is None:
            expected = column.value.ranking
        elif column.value.ranking != expected:
            other = "the ranking in `order`" if ranking is not None else "the other one returned"
            scope.checker.error(projection.expr.span, f"this score differs from {other}")


def _row_count(scope: Scope, count: ast.Count | None) -> plan.RowCount | None:
    if count is None:
        return None
    if isinstance(count, terms.Literal):
        return int(count.value) if isinstance(count.value, int) else None
    if scope.find(count.name) is not None:
        scope.checker.error(
            count.span, f"a number of rows is an integer, ${count.name} is bound in `match`"
        )
        return None
    param = resolve_param(scope, count)
    if param is None:
        return None
    if param.type.scalar not in INTEGERS or param.type.is_list:
        scope.checker.error(
            count.span, f"a number of rows is an integer, ${count.name} is {param.type}"
        )
        return None
    return param
