"""Parsing names: variables, and properties of them.

Owns how they are spelt. Never resolves one.
"""

from __future__ import annotations

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.query import terms
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import Kind


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
