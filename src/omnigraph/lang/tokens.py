"""The lexer both languages share: text to tokens and comments.

Owns what a word, number, string and comment are. Keywords are contextual, so
the lexer knows none. Never fails: what it cannot read becomes an ERROR token
that the parser reports in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from omnigraph.lang.source import Source, Span


class Kind(IntEnum):
    """What sort of token it is."""

    END = 0
    IDENT = 1
    TYPE = 2
    VARIABLE = 3
    INTEGER = 4
    FLOAT = 5
    STRING = 6
    PUNCT = 7
    ERROR = 8


class Token(NamedTuple):
    """One token: its kind, its exact text and where it stands."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The token's place."""
        return Span(self.start, self.end)


class Comment(NamedTuple):
    """One comment, delimiters included, a line comment without its line break."""

    text: str
    start: int
    end: int


class Tokens(NamedTuple):
    """What the lexer makes of a text; ``tokens`` always ends with END."""

    tokens: list[Token]
    comments: list[Comment]


# Unterminated strings and comments take the rest of the text in one match, so that
# every character is looked at a bounded number of times whatever the input.
_LEXICON = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<comment>//[^\r\n]*|/\*.*?\*/)
    | (?P<open_comment>/\*.*)
    | (?P<ident>[a-z_][A-Za-z0-9_]*)
    | (?P<type>[A-Z][A-Za-z0-9_]*)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*)
    | (?P<float>[0-9]+\.[0-9]+)
    | (?P<integer>[0-9]+)
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<open_string>".*)
    | (?P<punct>->|\.\.|<=|>=|!=|[{}()\[\],:.?@<>=+*/%|\-])
    | (?P<error>\$[A-Za-z0-9_]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_KIND_OF_GROUP = {
    "ident": Kind.IDENT,
    "type": Kind.TYPE,
    "variable": Kind.VARIABLE,
    "float": Kind.FLOAT,
    "integer": Kind.INTEGER,
    "string": Kind.STRING,
    "punct": Kind.PUNCT,
    "open_string": Kind.ERROR,
    "open_comment": Kind.ERROR,
    "error": Kind.ERROR,
}


def scan(source: Source, comments: list[Comment] | None = None) -> Iterator[Token]:
    """The tokens of a text one by one, END last; comments go into the list, if one is given.

    Tokens are not kept: a parser that drops them as it goes needs memory for its tree only.
    """
    for match in _LEXICON.finditer(source.text):
        group = match.lastgroup or "error"
        if group == "space":
            continue
        if group != "comment":
            yield Token(_KIND_OF_GROUP[group], match.group(), match.start(), match.end())
        elif comments is not None:
            comments.append(Comment(match.group(), match.start(), match.end()))
    end = len(source.text)
    yield Token(Kind.END, "", end, end)


def tokenize(source: Source) -> Tokens:
    """All tokens and comments of a text at once."""
    comments: list[Comment] = []
    return Tokens(list(scan(source, comments)), comments)


def lexical_complaint(token: Token) -> str:
    """Why an ERROR token is none of the language's tokens."""
    text = token.text
    if text.startswith('"'):
        return "this string is never closed"
    if text.startswith("/*"):
        return "this comment is never closed"
    if text.startswith("$"):
        return "a variable is `$` and a name that starts with a lower-case letter or `_`"
    if text == "#":
        return "`#` does not start a comment; write `//`"
    if text == ";":
        return "`;` is not used here: nothing needs a terminator"
    if text == "'":
        return "strings take double quotes"
    return f"unexpected character {text!r}"
