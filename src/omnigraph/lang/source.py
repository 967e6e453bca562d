"""Source text and places in it.

Owns the translation from offsets to lines and columns. Columns count
characters from 1, as editors do. Never reads a file: callers bring the text.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of character offsets."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of another."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)
"""The span of syntax that was built rather than parsed."""


@dataclass(frozen=True, slots=True)
class Spanned:
    """Syntax and where it stands, which takes no part in equality."""

    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name(Spanned):
    """A name and where it stands."""

    text: str

    def __str__(self) -> str:
        return self.text


class Position(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """One text and the name it goes by in messages."""

    text: str
    name: str = "<text>"

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets at which lines begin; LF, CR LF and CR all end a line."""
        starts = [0]
        offset = 0
        for line in self.text.replace("\r\n", " \n").replace("\r", "\n").split("\n")[:-1]:
            offset += len(line) + 1
            starts.append(offset)
        return starts

    def position(self, offset: int) -> Position:
        """Where an offset lies; offsets past the end count as the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line without its line break."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")
