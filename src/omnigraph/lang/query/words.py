"""The words of `.gq`: what keywords, operators, functions and types are called.

Owns the lists that editors, highlighting and messages share; a grammar takes words in context.
"""

from __future__ import annotations

from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.query import terms
from omnigraph.lang.types import BASE_NAMES, Scalar

CLAUSES: tuple[str, ...] = (
    *("query", "match", "return", "order", "limit", "offset", "optional", "exists", "union"),
    *("let", "for", "each", "every", "by", "per", "distinct", "all"),
)
STATEMENTS: tuple[str, ...] = (*terms.INSERTS, "update", "delete", "set", "where")
MODIFIERS: tuple[str, ...] = ("as", "asc", "desc", "nulls", "first", "last", "case", "when", "else")
WORD_OPERATORS: tuple[str, ...] = ("and", "or", "not", "any", "in", "is", *terms.WORD_OPERATORS)
CONSTANTS: tuple[str, ...] = ("true", "false", "null")
ANNOTATIONS: tuple[str, ...] = ("description", "instruction")
RANKINGS: tuple[str, ...] = (*terms.TEXT_CALLS, "nearest", "bm25", "rrf")
CALLS: tuple[str, ...] = tuple(sorted({*FUNCTIONS, *terms.AGGREGATES, *RANKINGS, "type"}))
TYPES: tuple[str, ...] = (*BASE_NAMES, Scalar.VECTOR.value)
KEYWORDS: tuple[str, ...] = (*CLAUSES, *STATEMENTS, *MODIFIERS)
