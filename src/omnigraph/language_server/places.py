"""Places as editors count them: lines from 0, characters in units of the agreed encoding.

Owns the way between offsets of a text and those places. Knows no protocol.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from omnigraph.lang.source import Source, Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]


class Place(NamedTuple):
    """A line and a character, both from 0."""

    line: int
    character: int


def _units(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32":
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(ord(character) > 0xFFFF for character in text)
    return len(text.encode("utf-8", "surrogatepass"))


def place_of(source: Source, offset: int, encoding: Encoding = "utf-16") -> Place:
    """Where an offset is."""
    line, column = source.position(offset)
    start = source.line_starts[line - 1]
    return Place(line - 1, _units(source.text[start : start + column - 1], encoding))


def range_of(source: Source, span: Span, encoding: Encoding = "utf-16") -> tuple[Place, Place]:
    """Where a span begins and ends."""
    return place_of(source, span.start, encoding), place_of(source, span.end, encoding)


def offset_of(source: Source, place: Place, encoding: Encoding = "utf-16") -> int:
    """The offset at a place; one past the end of its line is that end."""
    if place.line >= len(source.line_starts):
        return len(source.text)
    start = source.line_starts[place.line]
    left = place.character
    line = source.line(place.line + 1)
    for number, character in enumerate(line):
        if left <= 0:
            return start + number
        left -= _units(character, encoding)
    return start + len(line)
