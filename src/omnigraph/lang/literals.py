"""How literals are written: strings and numbers as text that reads back to the same value.

Owns the inverse of the lexer's escapes and number forms, for both languages.
Never reads a literal; that is the cursor's and the parsers' business.
"""

from __future__ import annotations

from decimal import Decimal

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quote(text: str) -> str:
    """The text as a string literal; only what must be escaped is escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def decimal(value: float) -> str:
    """The shortest `digits.digits` that reads back to this float; there are no exponents."""
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"
