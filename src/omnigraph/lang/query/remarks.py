"""Remarks on what a query says, beside what is wrong with it.

Owns blocks that look at a variable bound further down (L102) and divisions by a literal 0 (L105).
Looks at the syntax alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.lint_report import Finding
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.source import Source, Span

Clauses = Sequence[ast.Clause]
_DIVIDING = ("/", "%")


def remarks_on(source: Source, query: ast.Query) -> Iterator[Finding]:
    """The remarks on one query."""
    if not isinstance(query.body, ast.Read):
        return
    read = query.body
    parts: tuple[ast.Read | ast.Branch, ...] = (read, *read.branches)
    for part in parts:
        expressions = [one.expr for one in part.projections]
        yield from _Remarks(source, query.name.text).of_block(part.clauses, expressions)
    orders = [one.expr for one in read.ordering] + list(read.per.keys if read.per else ())
    yield from _Remarks(source, query.name.text).of_block((), orders)


class _Remarks:
    def __init__(self, source: Source, query: str) -> None:
        self.source = source
        self.query = query

    def of_block(self, clauses: Clauses, more: Sequence[terms.Expr] = ()) -> Iterator[Finding]:
        """The remarks on a block, on the blocks in it and on further expressions."""
        bound = {name: span for clause in reversed(clauses) for name, span in _binds(clause)}
        for clause in clauses:
            for inner in _inside(clause):
                if not isinstance(clause, ast.Optional):
                    yield from self._later(clause.span, inner, bound)
                yield from self.of_block(inner)
            for expr in _expressions(clause):
                yield from self._divisions(expr)
        for expr in more:
            yield from self._divisions(expr)
            for part in terms.within(expr):
                if isinstance(part, terms.BlockValue):
                    yield from self.of_block(part.clauses)

    def _later(self, at: Span, block: Clauses, bound: dict[str, Span]) -> Iterator[Finding]:
        own = {name for clause in block for name, _ in _binds(clause)}
        for name in sorted(own & bound.keys()):
            if bound[name].start > at.start:
                here, there = (self.source.position(one.start).line for one in (at, bound[name]))
                yield self._finding(
                    "L102",
                    f"the block in line {here} looks at ${name}, which the block around it binds "
                    f"later, in line {there}: name it otherwise if another is meant",
                )

    def _divisions(self, expr: terms.Expr) -> Iterator[Finding]:
        for part in terms.within(expr):
            if isinstance(part, terms.Arithmetic):
                divisors = [one for op, one in part.rest if op in _DIVIDING]
            elif isinstance(part, terms.Call) and part.name.text == "div":
                divisors = list(part.arguments[1:])
            else:
                continue
            for divisor in divisors:
                if isinstance(divisor, terms.Literal) and divisor.value in (0, 0.0):
                    line = self.source.position(divisor.span.start).line
                    yield self._finding(
                        "L105", f"line {line} divides by 0, which always gives null"
                    )

    def _finding(self, code: str, message: str) -> Finding:
        return Finding("warning", code, f"`{self.query}`: {message}", query_names=(self.query,))


def _binds(clause: ast.Clause) -> Iterator[tuple[str, Span]]:
    """The variables that a clause makes known to its block, and where."""
    variables: list[terms.Variable] = []
    match clause:
        case ast.Binding(variable) | ast.Let(variable) | ast.For(variable):
            variables = [variable]
        case ast.Traversal():
            variables = [clause.left, clause.right]
            if clause.edge_variable is not None:
                variables.append(clause.edge_variable)
        case ast.Optional(inner):
            for one in inner:
                yield from _binds(one)
    for variable in variables:
        if variable.name != terms.ANONYMOUS:
            yield variable.name, variable.span


def _inside(clause: ast.Clause) -> Iterator[Clauses]:
    """The blocks inside a clause."""
    match clause:
        case ast.Not(inner) | ast.Exists(inner) | ast.Optional(inner):
            yield inner
        case ast.AnyOf(groups):
            yield from groups
    for expr in _expressions(clause):
        for part in terms.within(expr):
            if isinstance(part, terms.BlockValue):
                yield part.clauses


def _expressions(clause: ast.Clause) -> Iterator[terms.Expr]:
    match clause:
        case ast.Where(expr) | ast.Let(_, expr) | ast.For(_, expr):
            yield expr
        case ast.Binding(_, _, matches):
            yield from (one.value for one in matches)
