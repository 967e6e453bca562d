"""Lines: the non-blank lines of NDJSON input, and where each of them and its members stand.

Owns positions in the text. Never decides whether a value is right.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress

import numpy as np

from omnigraph.lang.structural import ENDPOINTS
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.load.ndjson.bare_rows import enveloped
from omnigraph.write.rules.row_limits import row_limits
from omnigraph.write.rules.violations import SourceLocation

_BOM = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_STRUCTURAL = b"{}[],:"

_SKIP = re.compile(r"[ \t\n\r]*")
_VALUES = json.JSONDecoder(parse_int=str, parse_float=str)
_ENDS = {word: word for word in ENDPOINTS.values()} | dict(ENDPOINTS)
"""Edges name their nodes beside the data, and not as the stored columns are called."""


@dataclass(frozen=True)
class NdjsonSource:
    """One input text; ``name`` is its file, None for text that came by itself.

    Only where a file begins, a byte order mark is one: what is cut out of it ``may_be_marked``
    no more. With ``rows_of`` the lines are rows of that type, and no envelopes: then only lines
    are known, and no columns.
    """

    name: str | None
    data: bytes
    may_be_marked: bool = True
    rows_of: EntityType | None = None

    def split(self) -> list[bytes]:
        """All lines, also blank ones; a byte order mark at the start is no part of the first."""
        return self.data[self._first :].split(b"\n")

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        starts = self._starts
        end = starts[number] - 1 if number < len(starts) else len(self.data)
        return self.data[starts[number - 1] : end].decode(errors="replace")

    def start(self, number: int) -> int:
        """The byte that a line begins at, counted from 0."""
        return self._starts[number - 1]

    @cached_property
    def _starts(self) -> list[int]:
        ends = np.flatnonzero(np.frombuffer(self.data, dtype=np.uint8) == ord("\n"))
        return [self._first, *(ends + 1).tolist()]

    @property
    def _first(self) -> int:
        return len(_BOM) if self.may_be_marked and self.data.startswith(_BOM) else 0


class Lines:
    """The non-blank lines of all sources in input order, each known by its ordinal."""

    def __init__(self, sources: Sequence[NdjsonSource]) -> None:
        self.sources = tuple(sources)
        split = [_not_blank(source) for source in self.sources]
        self._firsts = list(accumulate((len(found) for found, _ in split), initial=0))
        self._numbers = np.concatenate([numbers for _, numbers in split] or [np.empty(0, np.int64)])
        texts = [line for found, _ in split for line in found]
        _check_limits(texts)
        if any(source.rows_of is not None for source in self.sources):
            pairs = zip(self.sources, split, strict=True)
            texts = [line for source, (found, _) in pairs for line in _envelopes(source, found)]
        self.texts: list[bytes] = texts

    def __len__(self) -> int:
        return self._firsts[-1]

    def select(self, ordinals: np.ndarray) -> list[bytes]:
        """Some lines, in order."""
        if len(ordinals) == len(self.texts):
            return self.texts
        chosen = np.zeros(len(self.texts), dtype=bool)
        chosen[ordinals] = True
        return list(compress(self.texts, chosen.tolist()))

    def where(self) -> LineIndex:
        """Where the lines stand, without their texts: these are found again when asked for."""
        return LineIndex(self.sources, self._firsts, self._numbers)


@dataclass(frozen=True)
class LineIndex:
    """From the ordinal of a line to its source, its number and its text."""

    sources: tuple[NdjsonSource, ...]
    firsts: list[int]
    numbers: np.ndarray

    def find(self, ordinal: int) -> tuple[NdjsonSource, int]:
        """The source of a line and its number there."""
        source = self.sources[bisect_right(self.firsts, ordinal) - 1]
        return source, int(self.numbers[ordinal])


def _envelopes(source: NdjsonSource, lines: list[bytes]) -> list[bytes]:
    return lines if source.rows_of is None else enveloped(lines, source.rows_of)


def _not_blank(source: NdjsonSource) -> tuple[list[bytes], np.ndarray]:
    lines = source.split()
    filled = list(map(bool, map(bytes.strip, lines)))
    numbers = np.flatnonzero(filled) + 1
    return list(compress(lines, filled)), numbers


def _check_limits(lines: Sequence[bytes]) -> None:
    limits = row_limits()
    # A line of fewer bytes than slots cannot break either limit.
    if max(map(len, lines), default=0) < limits.slots:
        return
    for line in lines:
        limits.refuse_bytes(len(line), "a line")
        # Counting strings too is quick, and settles it for nearly every line.
        if sum(map(line.count, _STRUCTURAL)) >= limits.slots:
            limits.refuse_slots(_slots(line), "a line")


def _slots(line: bytes) -> int:
    """Structural characters outside strings, plus one."""
    outside = _STRING.sub(b"", line)
    return 1 + sum(map(outside.count, _STRUCTURAL))


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name, where that stands, and where its value does."""

    name: str
    name_at: int
    value_at: int


def members(text: str, start: int) -> Iterator[Member]:
    """The members of the object that starts at a place; none if no object does."""
    at = _skip(text, start)
    if not text.startswith("{", at):
        return
    at = _skip(text, at + 1)
    while text.startswith('"', at):
        name_at = at
        name, at = _VALUES.raw_decode(text, at)
        value_at = _skip(text, _skip(text, at) + 1)
        yield Member(name, name_at, value_at)
        _, at = _VALUES.raw_decode(text, value_at)
        at = _skip(text, at)
        if not text.startswith(",", at):
            return
        at = _skip(text, at + 1)


def elements(text: str, start: int) -> Iterator[int]:
    """Where the elements of the array at a place begin."""
    at = _skip(text, start)
    if not text.startswith("[", at):
        return
    at = _skip(text, at + 1)
    while at < len(text) and text[at] != "]":
        yield at
        _, at = _VALUES.raw_decode(text, at)
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)


def find(text: str, path: tuple[str | int, ...]) -> int | None:
    """The column of a value: of a member, a member of that, an element of that."""
    at = _skip(text, 0)
    for step in path:
        found = _member_at(text, at, step) if isinstance(step, str) else _element_at(text, at, step)
        if found is None:
            return None
        at = found
    return at + 1


def find_name(text: str, path: tuple[str, ...]) -> int | None:
    """The column of a member's name."""
    column = find(text, path[:-1])
    if column is None:
        return None
    named = (found.name_at for found in members(text, column - 1) if found.name == path[-1])
    at = next(named, None)
    return None if at is None else at + 1


def find_duplicate(text: str, start: int = 0) -> int | None:
    """The column of the first member name that its object has already, at any depth."""
    seen: set[str] = set()
    for member in members(text, start):
        if member.name in seen:
            return member.name_at + 1
        seen.add(member.name)
        if (found := _duplicate_inside(text, member.value_at)) is not None:
            return found
    return None


def _duplicate_inside(text: str, at: int) -> int | None:
    if text.startswith("[", at):
        inside = (_duplicate_inside(text, element) for element in elements(text, at))
        return next((found for found in inside if found is not None), None)
    return find_duplicate(text, at)


def _skip(text: str, at: int) -> int:
    match = _SKIP.match(text, at)
    return at if match is None else match.end()


def _member_at(text: str, at: int, name: str) -> int | None:
    named = (found.value_at for found in members(text, at) if found.name == name)
    return next(named, None)


def _element_at(text: str, at: int, index: int) -> int | None:
    return next((found for number, found in enumerate(elements(text, at)) if number == index), None)


class LinePlaces:
    """Where the rows of a batch stand in the lines they were read from."""

    def __init__(self, where: LineIndex, ordinals: np.ndarray, *, of_edges: bool) -> None:
        self._where = where
        self._ordinals = ordinals
        self._ends = _ENDS if of_edges else {}

    @property
    def numbers(self) -> np.ndarray:
        """The number of every row's line in its source."""
        numbers: np.ndarray = self._where.numbers[self._ordinals]
        return numbers

    def place(self, row: int, member: str | None) -> SourceLocation | None:
        """The line of a row, and the column of a member's value where it has one."""
        source, number = self._where.find(int(self._ordinals[row]))
        if member is None:
            return SourceLocation(source.name, number, row=row)
        path = (self._ends[member],) if member in self._ends else ("data", member)
        return SourceLocation(source.name, number, find(source.line(number), path), row)
