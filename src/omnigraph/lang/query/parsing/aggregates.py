"""Parsing aggregates, of groups and of blocks, and what stands inside them: columns, order, limits.

Owns these forms, which `return` and `order` use too. Which aggregate takes what, the checker says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.literals import parse_integer
from omnigraph.lang.query.parsing.names import parse_variable
from omnigraph.lang.tokens import Kind

Parse = Callable[[Cursor], terms.Expr]
"""Reads any expression."""
_PERCENTILE = "percentile"


def parse_aggregate(cursor: Cursor, parse: Parse) -> terms.Aggregate:
    """`count(x)` and its kin."""
    word = cursor.advance()
    name = cast("terms.AggregateName", word.text)
    cursor.expect("(")
    aggregate = _arguments(cursor, parse, name)
    cursor.expect(")", instead="`,`, `order`, `limit` or `)`")
    return terms.Aggregate(
        name,
        aggregate.argument,
        aggregate.distinct,
        aggregate.fraction,
        aggregate.order,
        aggregate.limit,
        aggregate.fields,
        span=cursor.span_from(word.start),
    )


def parse_block_value(
    cursor: Cursor, value: Literal["exists", "not"] | terms.Aggregate, start: int
) -> terms.BlockValue:
    """The block of `exists { … }`, `not { … }`, `count { … }` or `sum(x) { … }`."""
    # Blocks hold expressions, and expressions hold blocks.
    from omnigraph.lang.query.parsing.clauses import parse_block

    clauses = parse_block(cursor, cursor.value_names)
    return terms.BlockValue(value, clauses, span=cursor.span_from(start))


def _arguments(cursor: Cursor, parse: Parse, name: terms.AggregateName) -> terms.Aggregate:
    if cursor.at(")") or cursor.accept("*"):
        return terms.Aggregate(name)
    if name == "collect" and cursor.at("{"):
        fields = _parse_fields(cursor, parse)
        order, limit = _parse_inner_order(cursor, parse)
        return terms.Aggregate(name, None, order=order, limit=limit, fields=fields)
    distinct = cursor.at("distinct") and cursor.peek().text not in (")", ",")
    if distinct:
        cursor.advance()
    argument = parse(cursor)
    fraction = parse(cursor) if name == _PERCENTILE and cursor.accept(",") else None
    order, limit = _parse_inner_order(cursor, parse) if name == "collect" else ((), None)
    return terms.Aggregate(name, argument, distinct, fraction, order, limit)


def _parse_fields(cursor: Cursor, parse: Parse) -> tuple[terms.Projection, ...]:
    cursor.expect("{")
    fields: list[terms.Projection] = []
    while not cursor.at("}"):
        fields.append(parse_projection(cursor, parse))
    if not fields:
        cursor.fail_expected("a projection")
    cursor.expect("}")
    return tuple(fields)


def _parse_inner_order(
    cursor: Cursor, parse: Parse
) -> tuple[tuple[terms.Ordering, ...], terms.Count | None]:
    order: list[terms.Ordering] = []
    if cursor.accept("order"):
        order.append(parse_order_key(cursor, parse))
        while cursor.accept(","):
            order.append(parse_order_key(cursor, parse))
    limit = parse_count(cursor) if cursor.accept("limit") else None
    return tuple(order), limit


def parse_projection(cursor: Cursor, parse: Parse) -> terms.Projection:
    """`expr as alias`, and a comma if one follows."""
    expr = parse(cursor)
    alias = None
    if cursor.at("as"):
        cursor.advance()
        token = cursor.expect_kind(Kind.IDENT, "an alias")
        alias = terms.Name(token.text, span=token.span)
    span = cursor.span_from(expr.span.start)
    cursor.accept(",")
    return terms.Projection(expr, alias, span=span)


def parse_order_key(cursor: Cursor, parse: Parse) -> terms.Ordering:
    """`expr asc|desc nulls first|last`."""
    expr = parse(cursor)
    descending = False
    if cursor.at("asc") or cursor.at("desc"):
        if isinstance(expr, terms.Nearest):
            cursor.report(
                cursor.token.span,
                "`nearest` takes no direction: the nearest always come first",
            )
        descending = cursor.advance().text == "desc"
    nulls: terms.NullPlace | None = None
    if cursor.accept("nulls"):
        if not (cursor.at("first") or cursor.at("last")):
            cursor.fail_expected("`first` or `last`", known=("first", "last"))
        nulls = "first" if cursor.advance().text == "first" else "last"
    return terms.Ordering(expr, descending, nulls, span=cursor.span_from(expr.span.start))


def parse_count(cursor: Cursor) -> terms.Count:
    """A number of rows: digits or a parameter."""
    if cursor.token.kind is Kind.VARIABLE:
        return parse_variable(cursor)
    return parse_integer(cursor, "a number of rows or a parameter")
