"""Names of `let` and `for`, known before a query is parsed.

Owns finding them: `$x in $y` is a condition where `$x` is a value, and a traversal where it is a
node, and a value may be named further down. Looks at words only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Kind, Token, scan

_NAMED = re.compile(r"\b(?:let|for)\s*\$")
_WORDS = {"let": "=", "for": "in"}


def declared_values(source: Source) -> Mapping[int, frozenset[str]]:
    """The names that each query gives to values, by where the query begins."""
    if _NAMED.search(source.text) is None:
        return {}
    found: dict[int, set[str]] = {}
    here: set[str] = set()
    first = second = third = None
    for token in scan(source):
        first, second, third = second, third, token
        if first is None or second is None or first.kind is not Kind.IDENT:
            continue
        if _begins_query(first, second, third):
            here = found.setdefault(first.start, set())
        elif second.kind is Kind.VARIABLE and _WORDS.get(first.text) == third.text:
            here.add(second.text[1:])
    return {start: frozenset(names) for start, names in found.items()}


def _begins_query(first: Token, second: Token, third: Token) -> bool:
    return first.text == "query" and second.kind is Kind.IDENT and third.text == "("
