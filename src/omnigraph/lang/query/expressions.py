"""Parsing values and expressions of `.gq`.

Owns literals, variables, property access and calls. Says where a call is
malformed, never whether it makes sense: that is the checker's.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import cast

from omnigraph.lang.cursor import Cursor, shorten
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.query import terms
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import Kind, Token

MAX_INTEGER = 2**63 - 1


def parse_expr(cursor: Cursor) -> terms.Expr:
    """Any expression."""
    token = cursor.token
    if token.kind is Kind.VARIABLE:
        variable = parse_variable(cursor)
        return parse_access(cursor, variable) if cursor.at(".") else variable
    if token.kind is Kind.IDENT:
        if cursor.peek().text == "(":
            return parse_call(cursor)
        if token.text not in ("true", "false"):
            cursor.advance()
            return terms.Alias(token.text, span=token.span)
    return parse_literal(cursor, "an expression")


def parse_value(cursor: Cursor, *, null_allowed: bool = False) -> terms.Value:
    """What may be assigned or compared with a property: a literal, a variable or `now()`."""
    token = cursor.token
    if token.kind is Kind.VARIABLE:
        return parse_variable(cursor)
    if token.kind is Kind.IDENT:
        if token.text == "now":
            return _parse_now(cursor)
        if token.text == "null":
            if not null_allowed:
                cursor.fail(
                    token.span,
                    "`null` stands only as an assigned value",
                    hint="test for it with `is null`",
                )
            cursor.advance()
            return terms.Literal("null", None, span=token.span)
    return parse_literal(cursor, "a value")


def parse_variable(cursor: Cursor, noun: str = "a variable") -> terms.Variable:
    """`$name`."""
    token = cursor.expect_kind(Kind.VARIABLE, noun)
    return terms.Variable(token.text[1:], span=token.span)


def parse_access(cursor: Cursor, variable: terms.Variable) -> terms.Access:
    """`.property` or `.@id` after a variable."""
    cursor.expect(".")
    name = parse_property_name(cursor)
    return terms.Access(variable, name, span=variable.span.to(name.span))


def parse_property_name(cursor: Cursor, noun: str = "a property name") -> terms.Name:
    """A property, or behind an `@` a structural column; whether there is one, the checker says."""
    if not cursor.at("@"):
        token = cursor.expect_kind(Kind.IDENT, noun)
        return terms.Name(token.text, span=token.span)
    sign = cursor.advance()
    word = cursor.expect_kind(Kind.IDENT, "`@id`, `@src` or `@dst`")
    return terms.Name(f"@{word.text}", span=Span(sign.start, word.end))


# -- literals --------------------------------------------------------------------


def parse_literal(cursor: Cursor, noun: str = "a literal") -> terms.Literal | terms.ListLiteral:
    """A scalar literal or a list of them."""
    if cursor.at("["):
        return parse_list(cursor)
    return _parse_scalar(cursor, noun)


def parse_list(cursor: Cursor) -> terms.ListLiteral:
    """`[a, b, …]`, possibly empty."""
    start = cursor.expect("[").start
    items: list[terms.Literal] = []
    while not cursor.at("]"):
        if items:
            cursor.expect(",", instead="`,` or `]`")
        if cursor.at("["):
            cursor.fail(cursor.token.span, "list literals do not nest")
        items.append(_parse_scalar(cursor, "a literal"))
    cursor.expect("]")
    return terms.ListLiteral(tuple(items), span=cursor.span_from(start))


def _parse_scalar(cursor: Cursor, noun: str) -> terms.Literal:
    token = cursor.token
    if token.kind is Kind.STRING:
        cursor.advance()
        return terms.Literal("string", cursor.decode(token), span=token.span)
    if token.kind in (Kind.INTEGER, Kind.FLOAT):
        cursor.advance()
        return _number(cursor, token, negative=False, start=token.start)
    if token.text == "-" and token.kind is Kind.PUNCT:
        digits = cursor.peek()
        if digits.kind in (Kind.INTEGER, Kind.FLOAT) and digits.start == token.end:
            cursor.advance()
            cursor.advance()
            return _number(cursor, digits, negative=True, start=token.start)
    if token.kind is Kind.IDENT:
        if token.text in ("true", "false"):
            cursor.advance()
            return terms.Literal("bool", token.text == "true", span=token.span)
        if token.text in ("date", "datetime") and cursor.peek().text == "(":
            return _parse_temporal(cursor)
    cursor.fail_expected(noun)


def parse_integer(cursor: Cursor, noun: str) -> terms.Literal:
    """A bare non-negative integer."""
    token = cursor.expect_kind(Kind.INTEGER, noun)
    return _number(cursor, token, negative=False, start=token.start)


def _number(cursor: Cursor, token: Token, *, negative: bool, start: int) -> terms.Literal:
    span = Span(start, token.end)
    if cursor.token.start == token.end and cursor.token.kind in (Kind.IDENT, Kind.TYPE):
        cursor.fail(
            cursor.token.span,
            f"a number ends before `{shorten(cursor.token.text)}`",
            hint="numbers are digits, or digits.digits",
        )
    sign = -1 if negative else 1
    if token.kind is Kind.FLOAT:
        number = sign * float(token.text)
        if not isfinite(number):
            cursor.report(span, "this number is too large for a 64-bit float")
        return terms.Literal("float", number, span=span)
    # Longer digit strings cannot fit, and converting them would cost quadratic time.
    value = int(token.text) if len(token.text) <= 40 else MAX_INTEGER + 2
    if value > MAX_INTEGER + negative:
        cursor.report(span, "this integer does not fit 64 bits")
        value = MAX_INTEGER
    return terms.Literal("integer", sign * value, span=span)


def _parse_temporal(cursor: Cursor) -> terms.Literal:
    word = cursor.advance()
    cursor.expect("(")
    text = cursor.string(f"the text of a {word.text}, in quotes")
    cursor.expect(")")
    span = cursor.span_from(word.start)
    return terms.Literal("date" if word.text == "date" else "datetime", text, span=span)


# -- calls -----------------------------------------------------------------------


def parse_call(cursor: Cursor) -> terms.Expr:
    """`name(…)` for any function of the language."""
    word = cursor.token
    parse = _CALLS.get(word.text)
    if parse is None:
        cursor.fail(
            word.span,
            f"there is no function `{word.text}`",
            hint=did_you_mean(word.text, _CALLS),
        )
    with cursor.nested():
        return parse(cursor)


def _parse_now(cursor: Cursor) -> terms.Now:
    start = cursor.advance().start
    cursor.expect("(")
    cursor.expect(")")
    return terms.Now(span=cursor.span_from(start))


def _parse_nearest(cursor: Cursor) -> terms.Nearest:
    start = cursor.advance().start
    cursor.expect("(")
    subject = parse_access(cursor, parse_variable(cursor, "`$variable.property`"))
    cursor.expect(",")
    query = parse_expr(cursor)
    cursor.expect(")")
    return terms.Nearest(subject, query, span=cursor.span_from(start))


def _parse_text_call(cursor: Cursor) -> terms.TextCall:
    word = cursor.advance()
    cursor.expect("(")
    subject = parse_expr(cursor)
    cursor.expect(",")
    query = parse_expr(cursor)
    edits = parse_expr(cursor) if word.text == "fuzzy" and cursor.accept(",") else None
    cursor.expect(")")
    name = cast("terms.TextCallName", word.text)
    return terms.TextCall(name, subject, query, edits, span=cursor.span_from(word.start))


def _parse_bm25(cursor: Cursor) -> terms.Bm25:
    start = cursor.advance().start
    cursor.expect("(")
    subject = parse_expr(cursor)
    cursor.expect(",")
    query = parse_expr(cursor)
    cursor.expect(")")
    return terms.Bm25(subject, query, span=cursor.span_from(start))


def _parse_rrf(cursor: Cursor) -> terms.Rrf:
    start = cursor.advance().start
    cursor.expect("(")
    primary = parse_expr(cursor)
    cursor.expect(",")
    secondary = parse_expr(cursor)
    k = parse_expr(cursor) if cursor.accept(",") else None
    cursor.expect(")")
    return terms.Rrf(primary, secondary, k, span=cursor.span_from(start))


def parse_aggregate(cursor: Cursor) -> terms.Aggregate:
    """`count(x)` and its kin."""
    word = cursor.advance()
    cursor.expect("(")
    argument = parse_expr(cursor)
    cursor.expect(")")
    name = cast("terms.AggregateName", word.text)
    return terms.Aggregate(name, argument, span=cursor.span_from(word.start))


_CALLS: dict[str, Callable[[Cursor], terms.Expr]] = {
    "now": _parse_now,
    "nearest": _parse_nearest,
    "bm25": _parse_bm25,
    "rrf": _parse_rrf,
    "date": _parse_temporal,
    "datetime": _parse_temporal,
    **dict.fromkeys(terms.TEXT_CALLS, _parse_text_call),
    **dict.fromkeys(terms.AGGREGATES, parse_aggregate),
}
