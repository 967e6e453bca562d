"""Parsing literals: texts, numbers, truths, dates.

Owns what a literal is worth. Whether it may stand where it stands is for others to say.
"""

from __future__ import annotations

from math import isfinite

from omnigraph.lang.cursor import Cursor, shorten
from omnigraph.lang.query import terms
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import Kind, Token

MAX_INTEGER = 2**63 - 1
_NUMBERS = (Kind.INTEGER, Kind.FLOAT)


def parse_literal(cursor: Cursor, noun: str = "a literal") -> terms.Literal | terms.ListLiteral:
    """A scalar literal or a list of them."""
    if cursor.at("["):
        return parse_list(cursor)
    return parse_scalar(cursor, noun)


def parse_list(cursor: Cursor) -> terms.ListLiteral:
    """`[a, b, …]` of literals, possibly empty."""
    start = cursor.expect("[").start
    items: list[terms.Expr] = []
    while not cursor.at("]"):
        if items:
            cursor.expect(",", instead="`,` or `]`")
        if cursor.at("["):
            cursor.fail(cursor.token.span, "list literals do not nest")
        items.append(parse_scalar(cursor, "a literal"))
    cursor.expect("]")
    return terms.ListLiteral(tuple(items), span=cursor.span_from(start))


def parse_scalar(cursor: Cursor, noun: str) -> terms.Literal:
    """One literal that is no list."""
    token = cursor.token
    if token.kind is Kind.STRING:
        cursor.advance()
        return terms.Literal("string", cursor.decode(token), span=token.span)
    if token.kind in _NUMBERS:
        return parse_number(cursor)
    if token.text == "-" and token.kind is Kind.PUNCT and cursor.peek().kind in _NUMBERS:
        return parse_number(cursor)
    if token.kind is Kind.IDENT:
        if token.text in ("true", "false"):
            cursor.advance()
            return terms.Literal("bool", token.text == "true", span=token.span)
        if token.text in ("date", "datetime") and cursor.peek().text == "(":
            return _parse_temporal(cursor)
    cursor.fail_expected(noun)


def parse_number(cursor: Cursor) -> terms.Literal:
    """Digits, perhaps behind a minus."""
    start = cursor.token.start
    negative = cursor.accept("-")
    return _number(cursor, cursor.advance(), negative=negative, start=start)


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


def at_temporal(cursor: Cursor) -> bool:
    """Whether `date("…")` or `datetime("…")` follows; without quotes these are functions."""
    is_word = cursor.token.text in ("date", "datetime") and cursor.peek().text == "("
    return is_word and cursor.peek(2).kind is Kind.STRING


def _parse_temporal(cursor: Cursor) -> terms.Literal:
    word = cursor.advance()
    cursor.expect("(")
    text = cursor.string(f"the text of a {word.text}, in quotes")
    cursor.expect(")")
    span = cursor.span_from(word.start)
    return terms.Literal("date" if word.text == "date" else "datetime", text, span=span)
