"""Conditions and ranges of HTTP: which part of a value a request is answered with, if any.

Owns the headers `If-Match`, `If-None-Match`, `If-Range` and `Range`, in the order that the contract
has. Knows no value: its length and its tag are all there is to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import Headers

_LIST = re.compile(r'\s*,?\s*(?:((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$))?')
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)", re.IGNORECASE)
MOST_DIGITS = 18
"""Numbers with more of them are beyond any length, and need not be told apart."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is sent: everything, or bytes from one place up to another."""

    start: int
    end: int
    is_range: bool = False


Selected = Part | Literal["precondition_failed", "not_modified", "not_satisfiable"]


def select(headers: Headers, length: int, tag: str, *, is_head: bool = False) -> Selected:
    """The part of a value that a request asks for, or why it gets none."""
    wanted = headers.getlist("if-match")
    if wanted and not _matches(wanted, tag, is_weak=False):
        return "precondition_failed"
    known = headers.getlist("if-none-match")
    if known and _matches(known, tag, is_weak=True):
        return "not_modified"
    whole = Part(0, length)
    ranges = headers.getlist("range")
    if is_head or len(ranges) != 1 or not _is_same(headers.getlist("if-range"), tag):
        return whole
    return _part(ranges[0].strip(), length) or whole


def _matches(lines: Sequence[str], tag: str, *, is_weak: bool) -> bool:
    """Whether a list of tags holds one; one that cannot be read holds none."""
    text = ",".join(lines).strip()
    if text == "*":
        return True
    found, place = [], 0
    while place < len(text):
        piece = _LIST.match(text, place)
        if piece is None or piece.end() == place:
            return False
        if piece[1] is not None:
            found.append(piece[1])
        place = piece.end()
    if is_weak:
        return tag in {one.removeprefix("W/") for one in found}
    return tag in found


def _is_same(lines: Sequence[str], tag: str) -> bool:
    """Whether `If-Range` lets a range be sent: it is not there, or names this very value."""
    return not lines or (len(lines) == 1 and lines[0].strip() == tag)


def _part(text: str, length: int) -> Part | Literal["not_satisfiable"] | None:
    """The one range that is asked for; None where it cannot be read."""
    found = _RANGE.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return None
    first, last = found[1], found[2]
    if not first:
        count = _number(last)
        if not count or not length:
            return "not_satisfiable"
        return Part(max(length - count, 0), length, is_range=True)
    start, end = _number(first), _number(last) if last else None
    if end is not None and start > end:
        return None
    if start >= length:
        return "not_satisfiable"
    return Part(start, length if end is None else min(end + 1, length), is_range=True)


def _number(digits: str) -> int:
    """The number; one that is longer than any value has the first digits that are."""
    kept = digits.lstrip("0") or "0"
    return int(kept[:MOST_DIGITS].ljust(min(len(kept), MOST_DIGITS + 1), "0"))
