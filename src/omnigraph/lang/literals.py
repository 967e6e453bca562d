"""Literals: text that reads back to the same value, and the numbers that digits name.

Owns the inverse of the lexer's escapes and number forms, for both languages, and the guarded
conversions of `.pg`. Never raises: a number nobody can store is None.
"""

from __future__ import annotations

import math
from decimal import Decimal

_LONGEST = 20
"""Digits of the largest unsigned 64-bit integer: nothing longer fits any type."""
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quote(text: str) -> str:
    """The text as a string literal; only what must be escaped is escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def decimal(value: float) -> str:
    """The shortest `digits.digits` that reads back to this float; there are no exponents."""
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"


def integer_value(text: str) -> int | None:
    """The integer a signed run of digits names, or None beyond every 64-bit type."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    digits = digits.lstrip("0") or "0"
    # Python refuses to convert very long digit runs, and no type could hold them anyway.
    value = sign * int(digits) if len(digits) <= _LONGEST else None
    return value if value is not None and -(2**63) <= value < 2**64 else None


def float_value(text: str) -> float | None:
    """The finite float64 nearest to a written number, or None beyond its range."""
    value = float(text)
    return value if math.isfinite(value) else None


def number_value(text: str) -> int | float | None:
    """An integer for plain digits, a float for digits with a point, None when too large."""
    return float_value(text) if "." in text else integer_value(text)
