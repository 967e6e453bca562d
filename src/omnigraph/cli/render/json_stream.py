"""JSON that is written while it comes to be: objects and arrays of any length.

Owns the layout, which is that of `write_json`. Holds one member at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from omnigraph.cli.render.output import write_piece
from omnigraph.wire.body import INDENT, LazyObject, encode, pretty

_INDENT = " " * INDENT
_WRITTEN = 64 << 10


def write_json_stream(value: LazyObject) -> None:
    """Print an object as it is found, some kilobytes at a time."""
    held: list[str] = []
    size = 0
    for piece in json_pieces(value):
        held.append(piece)
        size += len(piece)
        if size > _WRITTEN:
            write_piece("".join(held))
            held, size = [], 0
    write_piece("".join([*held, "\n"]))


def json_pieces(value: Any, indent: str = "") -> Iterator[str]:
    """The text of a value in pieces; lines after the first begin with the indent."""
    if isinstance(value, LazyObject):
        yield from _enclosed("{}", _members(value, indent + _INDENT), indent)
    elif isinstance(value, Iterator):
        yield from _enclosed("[]", (json_pieces(item, indent + _INDENT) for item in value), indent)
    else:
        # A line break inside a text is escaped, so every one here is layout.
        yield pretty(value).replace("\n", f"\n{indent}")


def _members(value: LazyObject, indent: str) -> Iterator[Iterator[str]]:
    for name, member in value.members:
        yield _member(name, member, indent)


def _member(name: str, value: Any, indent: str) -> Iterator[str]:
    yield f"{encode(name).decode()}: "
    yield from json_pieces(value, indent)


def _enclosed(brackets: str, items: Iterable[Iterator[str]], indent: str) -> Iterator[str]:
    yield brackets[0]
    is_empty = True
    for item in items:
        yield f"{'' if is_empty else ','}\n{indent}{_INDENT}"
        yield from item
        is_empty = False
    if not is_empty:
        yield f"\n{indent}"
    yield brackets[1]
