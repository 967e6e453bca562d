"""Parsing `.gq` files: queries, their parameters, reads and mutations.

Owns the outline of a file; clauses and expressions have modules of their own.
A query that does not parse is reported and left out, the others are returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from omnigraph.lang.cursor import Cursor, NestingFailure, SyntaxFailure, collection_paused
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.aggregates import parse_count, parse_order_key, parse_projection
from omnigraph.lang.query.parsing.clauses import at_query, parse_block, parse_items
from omnigraph.lang.query.parsing.declared import declared_values
from omnigraph.lang.query.parsing.expressions import parse_expr
from omnigraph.lang.query.parsing.foreign import teach
from omnigraph.lang.query.parsing.literals import parse_integer
from omnigraph.lang.query.parsing.names import parse_variable
from omnigraph.lang.query.parsing.statements import (
    STATEMENTS,
    STATEMENTS_TOLD,
    at_statement,
    parse_statements,
)
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind
from omnigraph.lang.types import (
    BASE_NAMES,
    MAX_VECTOR_DIMENSION,
    RecordList,
    Scalar,
    ValueType,
)

_BODIES = ("match", *STATEMENTS, "for")
_NOTES = ("description", "instruction")


def parse_queries(source: Source, reporter: Reporter) -> ast.QueryFile:
    """The queries of a file that parse; what does not is reported."""
    with collection_paused(len(source.text)):
        return _parse_file(source, reporter)


def _parse_file(source: Source, reporter: Reporter) -> ast.QueryFile:
    cursor = Cursor(source, reporter, teach)
    declared = declared_values(source)
    queries: list[ast.Query] = []
    while not cursor.at_end() and not reporter.full:
        start = cursor.index
        try:
            queries.append(_parse_query(cursor, declared))
        except NestingFailure:
            break
        except SyntaxFailure:
            _skip_to_query(cursor, start)
    return ast.QueryFile(tuple(queries))


def _skip_to_query(cursor: Cursor, start: int) -> None:
    # A missing brace must not hide the queries after it, so braces do not count here.
    if cursor.index == start:
        cursor.advance()
    while not cursor.at_end() and not at_query(cursor):
        cursor.advance()


def _parse_query(cursor: Cursor, declared: Mapping[int, frozenset[str]]) -> ast.Query:
    start = cursor.keyword("query").start
    token = cursor.expect_kind(Kind.IDENT, "the query's name")
    name = terms.Name(token.text, span=token.span)
    params = _parse_params(cursor)
    description, instruction = _parse_notes(cursor)
    cursor.expect("{")
    named = declared.get(start, frozenset())
    cursor.value_names = named | {param.name for param in params}
    body = _parse_body(cursor, cursor.value_names)
    span = cursor.span_from(start)
    return ast.Query(name, params, body, description, instruction, span=span)


# -- the header ------------------------------------------------------------------


def _parse_params(cursor: Cursor) -> tuple[ast.Param, ...]:
    cursor.expect("(")
    params: list[ast.Param] = []
    while not cursor.at(")"):
        if params:
            cursor.expect(",", instead="`,` or `)`")
        variable = parse_variable(cursor, "a parameter")
        if variable.name == terms.ANONYMOUS:
            cursor.report(variable.span, "a parameter needs a name: `$_` is anonymous")
        cursor.expect(":")
        type_ = _parse_param_type(cursor)
        params.append(ast.Param(variable.name, type_, span=cursor.span_from(variable.span.start)))
    cursor.expect(")")
    return tuple(params)


def _parse_param_type(cursor: Cursor) -> ValueType | RecordList | terms.Name:
    is_list = cursor.accept("[")
    if is_list and cursor.at("{"):
        return _parse_records(cursor)
    if cursor.token.kind is not Kind.TYPE:
        cursor.fail_expected("a parameter type", known=(*BASE_NAMES, "Vector"))
    token = cursor.advance()
    known = token.text in BASE_NAMES or (token.text == "Vector" and not is_list)
    dimension = _parse_dimension(cursor) if token.text == "Vector" and known else None
    if is_list:
        cursor.expect("]")
    nullable = cursor.accept("?")
    if not known:
        spelt = f"[{token.text}]" if is_list else token.text
        return terms.Name(f"{spelt}?" if nullable else spelt, span=token.span)
    return ValueType(Scalar(token.text), nullable, is_list, dimension)


def _parse_records(cursor: Cursor) -> RecordList | terms.Name:
    """`[{ name: String, year: I32? }]`, from its brace on."""
    cursor.expect("{")
    fields: dict[str, ValueType] = {}
    unknown: terms.Name | None = None
    while not cursor.at("}"):
        if fields:
            cursor.expect(",", instead="`,` or `}`")
        token = cursor.expect_kind(Kind.IDENT, "the name of a field")
        cursor.expect(":")
        type_ = _parse_param_type(cursor)
        if isinstance(type_, RecordList):
            cursor.fail(token.span, "the fields of a record are values, no records")
        if token.text in fields:
            cursor.report(token.span, f"field `{token.text}` is declared twice")
        if isinstance(type_, terms.Name):
            unknown = type_
            type_ = ValueType(Scalar.STRING)
        fields[token.text] = type_
    if not fields:
        cursor.fail_expected("the name of a field")
    cursor.expect("}")
    cursor.expect("]")
    nullable = cursor.accept("?")
    return unknown or RecordList(tuple(fields.items()), nullable)


def _parse_dimension(cursor: Cursor) -> int:
    cursor.expect("(")
    literal = parse_integer(cursor, "the vector's dimension")
    dimension = cast("int", literal.value)
    if not 1 <= dimension <= MAX_VECTOR_DIMENSION:
        cursor.report(literal.span, f"a vector dimension lies between 1 and {MAX_VECTOR_DIMENSION}")
    cursor.expect(")")
    return dimension


def _parse_notes(cursor: Cursor) -> tuple[str | None, str | None]:
    notes: dict[str, str] = {}
    while cursor.at("@"):
        start = cursor.advance().start
        word = cursor.token.text
        if word not in _NOTES:
            cursor.fail_expected("`@description` or `@instruction`", known=_NOTES)
        cursor.advance()
        cursor.expect("(")
        text = cursor.string()
        cursor.expect(")")
        if word in notes:
            cursor.report(cursor.span_from(start), f"`@{word}` stands at most once on a query")
        notes[word] = text
    return notes.get("description"), notes.get("instruction")


# -- bodies ----------------------------------------------------------------------


def _parse_body(cursor: Cursor, params: frozenset[str]) -> ast.Read | ast.Mutation:
    if at_statement(cursor):
        return _parse_mutation(cursor, None)
    if cursor.peek().text != "{":
        cursor.fail_expected(f"`match`, or one of {STATEMENTS_TOLD}", known=_BODIES)
    body = _parse_matched(cursor, params)
    cursor.expect("}")
    return body


def _parse_mutation(cursor: Cursor, clauses: tuple[ast.Clause, ...] | None) -> ast.Mutation:
    """Statements, and what is to be told of what they have written."""
    statements = parse_statements(cursor)
    projections: tuple[terms.Projection, ...] = ()
    if cursor.at("return"):
        cursor.advance()
        projections = _parse_columns(cursor)
    if clauses is None:
        expected = "`}`" if projections else f"{STATEMENTS_TOLD} or `}}`"
        cursor.expect("}", instead=expected)
    return ast.Mutation(statements, clauses, projections)


def _parse_matched(cursor: Cursor, params: frozenset[str]) -> ast.Read | ast.Mutation:
    cursor.keyword("match")
    # A broken block is finished before the failure goes on up, so that mistakes in
    # `match`, in `return` and in `order` are all reported in one go.
    broken = False
    clauses: tuple[ast.Clause, ...] = ()
    projections: tuple[terms.Projection, ...] = ()
    ordering: tuple[terms.Ordering, ...] = ()
    try:
        clauses = parse_block(cursor, params)
    except NestingFailure:
        raise
    except SyntaxFailure:
        broken = True
        if cursor.token.kind is not Kind.IDENT or cursor.peek().text not in ("{", "distinct"):
            raise
    if not broken and at_statement(cursor):
        return _parse_mutation(cursor, clauses)
    cursor.keyword("return")
    distinct = cursor.token.kind is Kind.IDENT and bool(cursor.keyword("distinct"))
    try:
        projections = _parse_columns(cursor)
    except SyntaxFailure:
        broken = True
        if cursor.token.text not in ("order", "limit", "union", "}"):
            raise
    branches = tuple(_parse_branches(cursor, params))
    if cursor.at("order") or (cursor.token.kind is Kind.IDENT and cursor.peek().text == "{"):
        cursor.keyword("order")
        ordering = _parse_ordering(cursor)
    per = _parse_per(cursor)
    limit, offset = _parse_window(cursor)
    if not cursor.at("}"):
        words = ("limit", "offset") if ordering else ("order", "limit", "offset", "union")
        cursor.fail_expected("`order`, `limit` or `}`", known=words)
    if broken:
        raise SyntaxFailure
    return ast.Read(clauses, projections, distinct, ordering, limit, offset, per, branches)


def _parse_columns(cursor: Cursor) -> tuple[terms.Projection, ...]:
    return parse_items(cursor, lambda: parse_projection(cursor, parse_expr), noun="a projection")


def _parse_branches(cursor: Cursor, params: frozenset[str]) -> Iterator[ast.Branch]:
    while cursor.at("union"):
        start = cursor.advance().start
        keeps_equal = cursor.accept("all")
        cursor.keyword("match")
        clauses = parse_block(cursor, params)
        cursor.keyword("return")
        distinct = cursor.accept("distinct")
        projections = _parse_columns(cursor)
        span = cursor.span_from(start)
        yield ast.Branch(keeps_equal, clauses, projections, distinct, span=span)


def _parse_per(cursor: Cursor) -> ast.LimitPer | None:
    if not (cursor.at("limit") and cursor.peek(2).text == "per"):
        return None
    start = cursor.advance().start
    count = parse_count(cursor)
    cursor.expect("per")
    cursor.expect("{")
    keys = [parse_expr(cursor)]
    while cursor.accept(","):
        keys.append(parse_expr(cursor))
    cursor.expect("}", instead="`,` or `}`")
    return ast.LimitPer(count, tuple(keys), span=cursor.span_from(start))


def _parse_ordering(cursor: Cursor) -> tuple[terms.Ordering, ...]:
    cursor.expect("{")
    keys = [parse_order_key(cursor, parse_expr)]
    while cursor.accept(","):
        keys.append(parse_order_key(cursor, parse_expr))
    cursor.expect("}", instead="`,` or `}`")
    return tuple(keys)


def _parse_window(cursor: Cursor) -> tuple[terms.Count | None, terms.Count | None]:
    if not cursor.at("limit") and not (
        cursor.token.kind is Kind.IDENT and cursor.peek().kind in (Kind.INTEGER, Kind.VARIABLE)
    ):
        return None, None
    if cursor.at("offset"):
        cursor.fail(cursor.token.span, "`offset` follows a limit", hint="write `limit N offset M`")
    cursor.keyword("limit")
    limit = parse_count(cursor)
    offset = None
    if cursor.at("order"):
        cursor.fail(cursor.token.span, "`order` stands before `limit`")
    if cursor.token.kind is Kind.IDENT:
        cursor.keyword("offset")
        offset = parse_count(cursor)
    return limit, offset
