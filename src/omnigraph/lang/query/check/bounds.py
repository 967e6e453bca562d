"""How large a query may be: far more than a person writes, far less than planning it can bear.

Owns the numbers and where one is exceeded. Counts only; what the parts mean is for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.diagnostics import Phase, Reporter
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.source import Span

MAX_CONDITIONS = 20_000
"""Clauses of a read in all its blocks, or terms of one `where`."""
MAX_PATTERNS = 1_000
"""Bindings and traversals of one block."""
MAX_COLUMNS = 20_000
MAX_ORDER_KEYS = 1_000
MAX_PARAMS = 20_000
_PATTERNS = ast.Binding | ast.Traversal | ast.WayStep


def check_bounds(query: ast.Query, reporter: Reporter) -> None:
    """Report what a query has too much of, at the first that is too much."""
    spans = [param.span for param in query.params]
    _report(spans, MAX_PARAMS, "a query declares at most {} parameters", reporter)
    if isinstance(query.body, ast.Mutation):
        _check_mutation(query.body, reporter)
        return
    read = query.body
    spans = list(_conditions(read.clauses, reporter))
    _report(spans, MAX_CONDITIONS, "a query has at most {} clauses, all blocks together", reporter)
    spans = [column.span for column in read.projections]
    _report(spans, MAX_COLUMNS, "a query returns at most {} columns", reporter)
    spans = [key.span for key in read.ordering]
    _report(spans, MAX_ORDER_KEYS, "rows are ordered by at most {} keys", reporter)


def _check_mutation(mutation: ast.Mutation, reporter: Reporter) -> None:
    for statement in ast.flat_statements(mutation.statements):
        if isinstance(statement, ast.Update | ast.Delete):
            spans = [statement.where.span, *_of_expression(statement.where, reporter)]
            _report(spans, MAX_CONDITIONS, "a `where` has at most {} terms", reporter)
    spans = list(_conditions(mutation.clauses or (), reporter))
    _report(spans, MAX_CONDITIONS, "a query has at most {} clauses, all blocks together", reporter)
    spans = [column.span for column in mutation.projections]
    _report(spans, MAX_COLUMNS, "a query returns at most {} columns", reporter)


def _conditions(clauses: Sequence[ast.Clause], reporter: Reporter) -> Iterator[Span]:
    """Where the clauses of a block and of those inside it stand, conditions of bindings too."""
    patterns = [one.span for one in clauses if isinstance(one, _PATTERNS)]
    message = "a block has at most {} bindings and traversals"
    _report(patterns, MAX_PATTERNS, message, reporter)
    for clause in clauses:
        yield clause.span
        match clause:
            case ast.Binding():
                yield from (condition.property.span for condition in clause.matches)
            case ast.AnyOf(groups):
                for group in groups:
                    yield from _conditions(group, reporter)
            case ast.Not(inner) | ast.Exists(inner) | ast.Optional(inner):
                yield from _conditions(inner, reporter)
            case ast.Traversal(each=ast.Each() as each):
                yield from _conditions(each.clauses or (), reporter)
            case ast.Where(value) | ast.Let(_, value) | ast.For(_, value):
                yield from _of_expression(value, reporter)


def _of_expression(expr: terms.Expr, reporter: Reporter) -> Iterator[Span]:
    """Where the clauses of blocks inside an expression stand, and the terms it joins."""
    for part in terms.within(expr):
        if isinstance(part, terms.BlockValue):
            yield from _conditions(part.clauses, reporter)
        elif isinstance(part, terms.Logical):
            yield from (operand.span for operand in part.operands[1:])


def _report(spans: Sequence[Span], most: int, message: str, reporter: Reporter) -> None:
    if len(spans) > most:
        said = message.format(f"{most:,}")
        reporter.report(
            spans[most],
            f"{said}, this has {len(spans):,}",
            phase=Phase.TYPE,
            hint="many values of one property are `in` a list",
        )
