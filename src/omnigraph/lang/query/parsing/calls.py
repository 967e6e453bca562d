"""Parsing calls: functions, searches, rankings, aggregates and `case`.

Owns their forms. Which functions there are, and of what, is the checker's to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.aggregates import Parse, parse_aggregate, parse_block_value
from omnigraph.lang.query.parsing.names import parse_access, parse_variable


def parse_call(cursor: Cursor, parse: Parse) -> terms.Expr:
    """`name(…)`: a call with a form of its own, else a function of the library."""
    special = _SPECIAL.get(cursor.token.text, _parse_function)
    with cursor.nested():
        found = special(cursor, parse)
    if isinstance(found, terms.Aggregate) and cursor.at("{"):
        return parse_block_value(cursor, found, found.span.start)
    return found


def parse_case(cursor: Cursor, parse: Parse) -> terms.Case:
    """`case { when cond: a … else: b }`."""
    start = cursor.advance().start
    cursor.expect("{")
    branches: list[terms.Branch] = []
    otherwise = None
    with cursor.nested():
        while not (cursor.at("else") or cursor.at("}")):
            word = cursor.keyword("when")
            condition = parse(cursor)
            cursor.expect(":", instead="`:` and the value")
            value = parse(cursor)
            branches.append(terms.Branch(condition, value, span=cursor.span_from(word.start)))
            cursor.accept(",")
        if not branches:
            cursor.fail_expected("`when condition: value`", known=("when",))
        if cursor.accept("else"):
            cursor.expect(":")
            otherwise = parse(cursor)
            cursor.accept(",")
    cursor.expect("}", instead="`when`, `else` or `}`")
    return terms.Case(tuple(branches), otherwise, span=cursor.span_from(start))


def _parse_function(cursor: Cursor, parse: Parse) -> terms.Call:
    word = cursor.advance()
    cursor.expect("(")
    arguments: list[terms.Expr] = []
    while not cursor.at(")"):
        if arguments:
            cursor.expect(",", instead="`,` or `)`")
        arguments.append(parse(cursor))
    cursor.expect(")")
    name = terms.Name(word.text, span=word.span)
    return terms.Call(name, tuple(arguments), span=cursor.span_from(word.start))


def _parse_now(cursor: Cursor, _parse: Parse) -> terms.Now:
    start = cursor.advance().start
    cursor.expect("(")
    cursor.expect(")")
    return terms.Now(span=cursor.span_from(start))


def _parse_nearest(cursor: Cursor, parse: Parse) -> terms.Nearest:
    start = cursor.advance().start
    cursor.expect("(")
    subject = parse_access(cursor, parse_variable(cursor, "`$variable.property`"))
    cursor.expect(",")
    query = parse(cursor)
    cursor.expect(")")
    return terms.Nearest(subject, query, span=cursor.span_from(start))


def _parse_text_call(cursor: Cursor, parse: Parse) -> terms.TextCall:
    word = cursor.advance()
    cursor.expect("(")
    subject = parse(cursor)
    cursor.expect(",")
    query = parse(cursor)
    edits = parse(cursor) if word.text == "fuzzy" and cursor.accept(",") else None
    cursor.expect(")")
    name = cast("terms.TextCallName", word.text)
    return terms.TextCall(name, subject, query, edits, span=cursor.span_from(word.start))


def _parse_bm25(cursor: Cursor, parse: Parse) -> terms.Bm25:
    start = cursor.advance().start
    cursor.expect("(")
    subject = parse(cursor)
    cursor.expect(",")
    query = parse(cursor)
    cursor.expect(")")
    return terms.Bm25(subject, query, span=cursor.span_from(start))


def _parse_rrf(cursor: Cursor, parse: Parse) -> terms.Rrf:
    start = cursor.advance().start
    cursor.expect("(")
    primary = parse(cursor)
    cursor.expect(",")
    secondary = parse(cursor)
    k = parse(cursor) if cursor.accept(",") else None
    cursor.expect(")")
    return terms.Rrf(primary, secondary, k, span=cursor.span_from(start))


_SPECIAL: dict[str, Callable[[Cursor, Parse], terms.Expr]] = {
    "now": _parse_now,
    "nearest": _parse_nearest,
    "bm25": _parse_bm25,
    "rrf": _parse_rrf,
    **dict.fromkeys(terms.TEXT_CALLS, _parse_text_call),
    **dict.fromkeys(terms.AGGREGATES, parse_aggregate),
}
