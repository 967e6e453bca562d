"""Lexers of both languages for Pygments: consoles, notebooks, mkdocs and Sphinx.

Owns which token of Pygments a piece of text is. The words come from the languages; that a text
is sound, nobody asks here.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from omnigraph.lang.query import words as gq
from omnigraph.lang.schema import words as pg

_SHARED = [
    (r"\s+", Whitespace),
    (r"//[^\r\n]*", Comment.Single),
    (r"/\*(?s:.*?)(?:\*/|\Z)", Comment.Multiline),
    (r'"(?:[^"\\]|\\.)*"', String.Double),
    (r"[0-9]+\.[0-9]+", Number.Float),
    (r"[0-9]+", Number.Integer),
]
_REST = [
    (r"[A-Z]\w*", Name.Class),
    (r"[a-z_]\w*", Name),
    (r"->|\.\.|<=|>=|!=|[<>=+\-*/%|]", Operator),
    (r"[{}()\[\],:.?@$]", Punctuation),
]


class GqLexer(RegexLexer):  # type: ignore[misc]  # Pygments ships no types
    """`.gq`, the query language."""

    name = "OmniGraph query"
    url = "https://omnigraph.invalid/query-language"
    aliases: ClassVar = ["gq", "omnigraph"]
    filenames: ClassVar = ["*.gq"]
    mimetypes: ClassVar = ["text/x-omnigraph-query"]

    tokens: ClassVar = {
        "root": [
            *_SHARED,
            (r"\$[a-z_]\w*", Name.Variable),
            (r"(\.)(@?[a-z_]\w*)", bygroups(Punctuation, Name.Attribute)),
            (words(gq.ANNOTATIONS, prefix="@", suffix=r"\b"), Name.Decorator),
            (r"(query)(\s+)([a-z_]\w*)", bygroups(Keyword, Whitespace, Name.Function)),
            (r"[a-z_]\w*(?=\s*:(?!:))(?<!else)", Name.Attribute),
            (words(gq.CALLS, prefix=r"\b", suffix=r"(?=\s*\()"), Name.Builtin),
            (words(gq.CONSTANTS, prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (words(gq.WORD_OPERATORS, prefix=r"\b", suffix=r"\b"), Operator.Word),
            (words(gq.KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (words(gq.TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            *_REST,
        ],
    }


class PgLexer(RegexLexer):  # type: ignore[misc]  # Pygments ships no types
    """`.pg`, the schema language."""

    name = "OmniGraph schema"
    url = "https://omnigraph.invalid/schema-language"
    aliases: ClassVar = ["pg", "omnigraph-schema"]
    filenames: ClassVar = ["*.pg"]
    mimetypes: ClassVar = ["text/x-omnigraph-schema"]

    tokens: ClassVar = {
        "root": [
            *_SHARED,
            (r"@[a-z_]\w*", Name.Decorator),
            (words(pg.CONSTANTS, prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (words(pg.KEYWORDS, prefix=r"\b", suffix=r"\b(?!\s*:)"), Keyword),
            (words(pg.TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (r"[a-z_]\w*(?=\s*:)", Name.Attribute),
            *_REST,
        ],
    }
