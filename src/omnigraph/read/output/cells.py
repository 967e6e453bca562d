"""Cells: how a value is shown to people in a line of text, in a table or outside of one.

Owns what is escaped and what is set like a number. Imports nothing that takes time.
"""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text on one line: what would move the cursor is written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1]
        if unicodedata.category(character) in {"Cc", "Zl", "Zp"}
        else character
        for character in text
    )


def is_number(value: object) -> bool:
    """Whether a value stands to the right of its column; true and false do not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
