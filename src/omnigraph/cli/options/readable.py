"""The words of a command line as text, whatever locale they came through.

Owns the repair of what Python could not decode. Never changes a word that is text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click


def readable(argv: Sequence[str]) -> list[str]:
    """The words as text; one that is none is refused."""
    return [_text(word) for word in argv]


def _text(word: str) -> str:
    try:
        # In a locale without UTF-8 Python keeps bytes that it does not know, as halves of pairs.
        text = word if word.isascii() else _known(word)
    except UnicodeError:
        text = "\0"
    if "\0" in text:
        raise click.UsageError(f"an argument is not UTF-8 text: {ascii(word)[:80]}")
    return text


def _known(word: str) -> str:
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode()
    return word
