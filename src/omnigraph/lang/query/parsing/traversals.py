"""Parsing what a traversal is made of: the edge, its hops, and the steps of a way.

Owns telling these clauses from filters by their first tokens. Never resolves a name.
"""

from __future__ import annotations

from typing import cast

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.literals import parse_integer
from omnigraph.lang.query.parsing.names import parse_variable
from omnigraph.lang.tokens import Kind


def is_undirected(cursor: Cursor) -> bool:
    """Whether `<edge>` follows the variable under the cursor, rather than a comparison."""
    return cursor.peek(2).kind in (Kind.IDENT, Kind.TYPE) and cursor.peek(3).text != "("


def is_way_step(cursor: Cursor, params: frozenset[str]) -> bool:
    """Whether `$x $w $y` or `$x <$w> $y` begins here.

    A parameter is no way and no node: it is a condition by itself, and the next clause follows.
    """
    at = 1
    if cursor.peek(1).text == "<":
        at = 2
        if cursor.peek(3).text != ">" or cursor.peek(4).kind is not Kind.VARIABLE:
            return False
    way, end = cursor.peek(at), cursor.peek(at * 2)
    if way.kind is not Kind.VARIABLE or end.kind is not Kind.VARIABLE:
        return False
    if cursor.token.text[1:] in params or way.text[1:] in params:
        return False
    return at == 2 or cursor.peek(3).text != ":"


def parse_way_step(cursor: Cursor) -> ast.WayStep:
    """`$x $w $y`, or `$x <$w> $y` for both directions."""
    left = parse_variable(cursor)
    undirected = cursor.accept("<")
    way = parse_variable(cursor)
    if undirected:
        cursor.expect(">")
    right = parse_variable(cursor)
    return ast.WayStep(left, way, right, undirected, span=left.span.to(right.span))


def parse_every(cursor: Cursor) -> bool:
    """`every` before the variable of a way; an edge may have that name."""
    follows = cursor.peek().kind is Kind.VARIABLE and cursor.peek(2).text == ":"
    if not (cursor.at("every") and follows):
        return False
    cursor.advance()
    return True


def parse_edge_words(cursor: Cursor) -> tuple[terms.Name, tuple[terms.Name, ...]]:
    """The name of an edge, and those of its alternatives."""
    edge = _parse_edge_word(cursor)
    others: list[terms.Name] = []
    while cursor.accept("|"):
        others.append(_parse_edge_word(cursor))
    return edge, tuple(others)


def _parse_edge_word(cursor: Cursor) -> terms.Name:
    token = cursor.token
    if token.kind is Kind.TYPE:
        after = cursor.peek()
        is_edge = (
            after.kind is Kind.VARIABLE
            or after.text in (">", "|", ")")
            or (after.text == "{" and cursor.peek(2).kind is Kind.INTEGER)
        )
        if not is_edge:
            cursor.fail_expected("an edge, or `:` before a node type")
        lowered = token.text[0].lower() + token.text[1:]
        cursor.fail(
            token.span,
            f"edges are written with a lower-case first letter, found `{token.text}`",
            hint=f"did you mean `{lowered}`?",
        )
    if token.text == "not":
        cursor.fail(token.span, "`not` cannot name an edge", hint="write `not { … }` to negate")
    token = cursor.expect_kind(Kind.IDENT, "an edge")
    return terms.Name(token.text, span=token.span)


def parse_hops(cursor: Cursor) -> ast.HopRange:
    """`{min,max}`, or `{min,}` without a bound."""
    start = cursor.expect("{").start
    minimum = parse_integer(cursor, "the smallest number of hops")
    if cursor.at("}"):
        cursor.fail_expected(f"`,`: write `{{{minimum.value},{minimum.value}}}` for an exact count")
    cursor.expect(",")
    maximum = None
    if cursor.token.kind is Kind.INTEGER:
        maximum = int(cast("int", parse_integer(cursor, "the largest number of hops").value))
    cursor.expect("}")
    return ast.HopRange(int(cast("int", minimum.value)), maximum, span=cursor.span_from(start))
