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
    written: Span | None = None
    """The part that its author wrote, in lines of its own, where something was put around it."""

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
        """Where an offset lies in what was written; offsets outside count as its ends."""
        begin, end = self.written or Span(0, len(self.text))
        offset = max(begin, min(offset, end))
        line = bisect_right(self.line_starts, offset)
        return Position(line - self._added, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line without its line break."""
        number += self._added
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    @cached_property
    def _added(self) -> int:
        """How many lines stand before what was written."""
        return 0 if self.written is None else bisect_right(self.line_starts, self.written.start) - 1
