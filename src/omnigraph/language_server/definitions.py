"""Definitions: where the schema declares the word at a place.

Owns that a variable leads to its type. Functions are declared nowhere.
"""

from __future__ import annotations

from omnigraph.lang.source import Span
from omnigraph.language_server.meaning import Text


def definitions(text: Text, offset: int) -> list[Span]:
    """The places in the text of the schema."""
    meaning = text.at(offset)
    if meaning is None:
        return []
    return [
        *(one.place for one in meaning.types),
        *(one.place for one in meaning.properties),
    ]
