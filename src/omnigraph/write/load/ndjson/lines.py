"""Lines: the non-blank lines of NDJSON input, and where each of them stands.

Owns splitting, line numbers, the limits of one line, and finding the text of a line
again later. Never looks into a line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress

import numpy as np

from omnigraph.errors import ResourceLimit

LINE_BYTES = 33_554_432
STRUCTURAL_SLOTS = 131_072

_BOM = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_STRUCTURAL = b"{}[],:"


@dataclass(frozen=True)
class NdjsonSource:
    """One input text; ``name`` is its file, None for text that came by itself.

    Only where a file begins, a byte order mark is one: what is cut out of it ``may_be_marked``
    no more.
    """

    name: str | None
    data: bytes
    may_be_marked: bool = True

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
        self.texts: list[bytes] = [line for found, _ in split for line in found]
        _check_limits(self.texts)

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


def _not_blank(source: NdjsonSource) -> tuple[list[bytes], np.ndarray]:
    lines = source.split()
    filled = list(map(bool, map(bytes.strip, lines)))
    numbers = np.flatnonzero(filled) + 1
    return list(compress(lines, filled)), numbers


def _check_limits(lines: Sequence[bytes]) -> None:
    # A line of fewer bytes than slots cannot break either limit.
    if max(map(len, lines), default=0) < STRUCTURAL_SLOTS:
        return
    for line in lines:
        if len(line) > LINE_BYTES:
            _refuse("graph_batch_line_bytes", LINE_BYTES, len(line), "bytes in one line")
        slots = _slots(line)
        if slots > STRUCTURAL_SLOTS:
            what = "structural characters in one line"
            _refuse("graph_batch_json_structural_slots", STRUCTURAL_SLOTS, slots, what)


def _slots(line: bytes) -> int:
    """Structural characters outside strings, plus one."""
    # Counting strings too is quick, and settles it for nearly every line.
    if sum(map(line.count, _STRUCTURAL)) < STRUCTURAL_SLOTS:
        return 1
    outside = _STRING.sub(b"", line)
    return 1 + sum(map(outside.count, _STRUCTURAL))


def _refuse(resource: str, limit: int, actual: int, what: str) -> None:
    raise ResourceLimit(
        f"{resource}: {actual} {what}, at most {limit} are allowed",
        details={"resource": resource, "limit": limit, "actual": actual},
    )
