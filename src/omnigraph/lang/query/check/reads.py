"""Checking reads as a whole: match, return, order, limit.

Owns the rules between the parts: what may order what, when a limit is needed,
which scores may be returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from omnigraph.lang import structural
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.expressions import is_fixed, leaves_of, rewritten
from omnigraph.lang.functions.kinds import common_type
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.blocks import check_block
from omnigraph.lang.query.check.columns import CheckedColumns, check_columns, default_name
from omnigraph.lang.query.check.expressions import resolve
from omnigraph.lang.query.check.operands import resolve_param
from omnigraph.lang.query.check.scope import Checker, Scope, WayBinding
from omnigraph.lang.query.check.search import resolve_ranking
from omnigraph.lang.types import INTEGERS, ValueType


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
    per: plan.LimitPer | None = None
    needed: frozenset[str] = frozenset()
    """Values that order or limits look at, which are computed before rows are cut."""
    branches: tuple[CheckedRead, ...] = ()
    keeps_equal: bool = False


def check_read(checker: Checker, read: ast.Read) -> CheckedRead:
    """Resolve a read; only meaningful when nothing was reported."""
    if read.branches:
        return _check_union(checker, read)
    scope = Scope(checker)
    block = check_block(scope, read.clauses)
    columns = check_columns(scope, read.projections)
    ordering = _Ordering(scope, read, columns)
    ranking = ordering.ranking()
    order = ordering.keys()
    per = _per(scope, read, ordering)
    if ranking is not None and read.per is not None:
        checker.error(read.per.span, "`limit … per` follows an order by values, not a ranking")
    _check_scores(scope, read, columns, ranking)
    limit = _row_count(scope, read.limit)
    offset = _row_count(scope, read.offset)
    ways = frozenset(name for name, bound in scope.own.items() if isinstance(bound, WayBinding))
    block = replace(block, values=tuple(scope.made))
    keys = [key.by for key in order] + list(per.keys if per is not None else ())
    named = {column.name: column.value for column in columns.columns}
    needed = _names_in(named.get(key) if isinstance(key, str) else key for key in keys)
    return CheckedRead(
        block,
        columns,
        read.distinct,
        ranking,
        order,
        limit,
        offset,
        tuple(scope.own),
        ways,
        per,
        needed,
    )


def _names_in(values: Iterable[plan.Output | None]) -> frozenset[str]:
    return frozenset(
        name
        for value in values
        if value is not None and not isinstance(value, plan.Score)
        for name in plan.variables_of(value)
    )


def _check_union(checker: Checker, read: ast.Read) -> CheckedRead:
    """Parts with the same columns; order and limits are about all of their rows (T33)."""
    heads = (
        ast.Read(read.clauses, read.projections, read.distinct),
        *(ast.Read(one.clauses, one.projections, one.distinct) for one in read.branches),
    )
    parts = tuple(check_read(checker, head) for head in heads)
    keeps_equal = read.branches[0].keeps_equal
    columns = _united(checker, read, parts)
    for branch in read.branches:
        if branch.keeps_equal != keeps_equal:
            checker.error(branch.span, "`union` and `union all` do not mix", "T33")
    scope = Scope(checker)
    whole = replace(read, distinct=True)
    ordering = _Ordering(scope, whole, columns)
    if read.ordering and isinstance(read.ordering[0].expr, terms.Ranking):
        checker.error(read.ordering[0].span, "a union is ordered by its columns, not ranked", "T33")
    order = ordering.keys()
    per = _per(scope, whole, ordering)
    return CheckedRead(
        resolved.ResolvedBlock((), (), ()),
        columns,
        not keeps_equal,
        None,
        order,
        _row_count(scope, read.limit),
        _row_count(scope, read.offset),
        (),
        per=per,
        branches=parts,
        keeps_equal=keeps_equal,
    )


def _united(checker: Checker, read: ast.Read, parts: tuple[CheckedRead, ...]) -> CheckedColumns:
    """The columns that the parts of a union have in common."""
    first = parts[0].columns
    types = [_type_of(column.value) for column in first.columns]
    names = [column.name for column in first.columns]
    for branch, part in zip(read.branches, parts[1:], strict=True):
        if not (first.complete and part.columns.complete):
            continue
        found = [column.name for column in part.columns.columns]
        if found != names:
            checker.error(
                branch.span,
                f"the parts of a union have the same columns in the same order: "
                f"`{', '.join(names)}`, but here `{', '.join(found)}`",
                "T33",
                hint="name them alike with `as`",
            )
            continue
        for number, column in enumerate(part.columns.columns):
            left, right = types[number], _type_of(column.value)
            both = None if left is None or right is None else common_type((left, right))
            if both is None or left is None or right is None:
                checker.error(branch.span, f"`{column.name}` is of two kinds", "T33")
                break
            types[number] = both.without_null.or_null(when=left.nullable or right.nullable)
    columns = tuple(
        plan.Column(name, plan.Computed(name, type_ or plan.TEXT))
        for name, type_ in zip(names, types, strict=True)
    )
    complete = all(part.columns.complete for part in parts)
    return CheckedColumns(columns, aggregated=False, complete=complete)


def _type_of(value: plan.Output) -> ValueType | None:
    """The type of a column that may be united with another; whole nodes are not."""
    return None if isinstance(value, plan.NodeRef) else value.type


def _per(scope: Scope, read: ast.Read, ordering: _Ordering) -> plan.LimitPer | None:
    if read.per is None:
        return None
    count = _row_count(scope, read.per.count)
    keys = [ordering.key(key, "a key of `per`") for key in read.per.keys]
    if count is None:
        return None
    return plan.LimitPer(count, tuple(key for key in keys if key is not None))


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
            by = self.key(ordering.expr, "an order key")
            if by is not None:
                keys.append(plan.OrderKey(by, ordering.descending, ordering.nulls))
        return tuple(keys)

    def key(self, expr: terms.Expr, what: str) -> str | plan.Expression | None:
        """A result column by its name, or an expression over the variables."""
        if isinstance(expr, terms.Alias) and self.columns.named(expr.name) is None:
            if self.columns.complete:
                hint = did_you_mean(expr.name, self._spelt_columns())
                self.checker.error(
                    expr.span, f"alias '{expr.name}' not found for ordering", hint=hint
                )
            return None
        if isinstance(expr, terms.Alias):
            return self._column(expr)
        if isinstance(expr, terms.Ranking):
            self.checker.error(expr.span, f"a ranking is not {what}")
            return None
        if terms.has_aggregate(expr) and not self.columns.aggregated:
            self.checker.error(
                expr.span, "rows that are not grouped have no aggregates to be ordered by", "T9"
            )
            return None
        self.scope.columns = {column.name: column.value for column in self.columns.columns}
        self.scope.aggregates = self.columns.aggregated
        found = resolve(self.scope, expr)
        self.scope.aggregates = False
        self.scope.columns = {}
        if isinstance(found, plan.NodeRef):
            if self._has_rows:
                return plan.Property(found.variable, structural.ID, plan.TEXT.or_null())
            return self._whole_node(expr, found)
        if found is None:
            return None
        if found.type.is_blob:
            self.checker.error(expr.span, "a Blob has no order", "T24")
            return None
        if not found.type.is_plain:
            self.checker.error(expr.span, f"{found.type} has no order")
            return None
        return found if self._has_rows else self._of_columns(expr, found)

    @property
    def _has_rows(self) -> bool:
        """Whether a result row is one row of the variables."""
        return not (self.columns.aggregated or self.read.distinct)

    def _spelt_columns(self) -> list[str]:
        """The result columns as order keys would name them."""
        names = [column.name for column in self.columns.columns]
        return [f"${name}" if "." in name else name for name in names]

    def _column(self, expr: terms.Alias) -> str | plan.Expression | None:
        column = self.columns.named(expr.name)
        if column is None:
            return None
        value = column.value
        if isinstance(value, plan.NodeRef):
            if self._has_rows:
                return plan.Property(value.variable, structural.ID, plan.TEXT.or_null())
            return column.name
        if value.type.is_list or value.type.is_vector:
            self.checker.error(expr.span, f"`{column.name}` has no order")
            return None
        return column.name

    def _whole_node(self, expr: terms.Expr, node: plan.NodeRef) -> str | None:
        for column in self.columns.columns:
            if column.value == node:
                return column.name
        self._only_columns(expr)
        return None

    def _of_columns(self, expr: terms.Expr, found: plan.Expression) -> str | plan.Expression | None:
        """An expression in terms of result columns."""
        columns = self.columns.columns
        for column in columns:
            if column.value == found:
                return column.name

        def column_of(part: plan.Expression) -> plan.Expression | None:
            for column in columns:
                if column.value == part and not isinstance(part, plan.Const):
                    return plan.Computed(column.name, part.type)
            return None

        written = rewritten(found, column_of)
        names = {column.name for column in columns}
        for leaf in leaves_of(written):
            is_column = isinstance(leaf, plan.Computed) and leaf.name in names
            if not is_column and not is_fixed(leaf):
                if self.columns.complete:
                    self._only_columns(expr)
                return None
        return written

    def _only_columns(self, expr: terms.Expr) -> None:
        why = "an aggregate query" if self.columns.aggregated else "`return distinct`"
        if self.read.branches:
            why = "a union"
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


def _row_count(scope: Scope, count: terms.Count | None) -> plan.RowCount | None:
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
