"""Locating: the column of a member of a JSON line.

Owns walking through one line's text. Asked only about lines that are wrong, and
only about text that is JSON up to the place asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.lang.schema.catalog import ENDPOINTS
from omnigraph.write.load.ndjson.lines import LineIndex
from omnigraph.write.rules.violations import SourceLocation

_SKIP = re.compile(r"[ \t\n\r]*")
_VALUES = json.JSONDecoder(parse_int=str, parse_float=str)
_ENDS = {word: word for word in ENDPOINTS.values()} | dict(ENDPOINTS)
"""Edges name their nodes beside the data; the stored columns are called src and dst."""


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
