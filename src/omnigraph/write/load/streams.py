"""Streams: input that is read piece by piece, and not beyond what may be in one line or at hand.

Owns the bound of input whose size nobody knows: a pipe, a device, an iterator. Never looks at
what is in a line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.storage.memory import size_of_setting
from omnigraph.write.rules.row_limits import row_limits

STREAM_BYTES = 512 << 20
SETTING = "OMNIGRAPH_STREAM_BYTES"
RESOURCE = "load_stream_bytes"
_PIECE = 1 << 20


def read_file(path: Path) -> bytes:
    """The content of a file; of one without a size, as much as may be at hand."""
    try:
        with path.open("rb") as opened:
            found = os.fstat(opened.fileno())
            is_sized = stat.S_ISREG(found.st_mode)
            if is_sized and found.st_size <= row_limits().line_bytes:
                return opened.read()
            pieces = whole_lines(pieces_of(opened))
            return b"".join(pieces if is_sized else bounded(pieces, str(path)))
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from None


def pieces_of(stream: Any) -> Iterator[bytes]:
    """What a stream has, as bytes."""
    while piece := _next_piece(stream):
        if isinstance(piece, str):
            yield encoded(piece)
        elif isinstance(piece, (bytes, bytearray, memoryview)):
            yield bytes(piece)
        else:
            raise BadRequest(f"a stream gives bytes or text, found {type(piece).__name__}")


def _next_piece(stream: Any) -> Any:
    try:
        return stream.read(_PIECE)
    except (OSError, ValueError) as error:
        raise BadRequest(f"cannot read the stream: {error}") from None


def encoded(text: str) -> bytes:
    """A text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"the text is not Unicode: {error.reason} at {error.start}") from None


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same pieces, until a line is longer than one may be."""
    limits, begun = row_limits(), 0
    for piece in pieces:
        first = piece.find(b"\n")
        begun += len(piece) if first < 0 else first
        limits.refuse_bytes(begun, "a line")
        if first >= 0:
            begun = len(piece) - piece.rfind(b"\n") - 1
        yield piece


def bounded(pieces: Iterable[bytes], name: str = "the input") -> Iterator[bytes]:
    """The same pieces, until they are more than may be at hand."""
    most, size = size_of_setting(SETTING, os.environ.get(SETTING, ""), STREAM_BYTES), 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise ResourceLimit(
                f"{RESOURCE}: {name} does not end after {most} bytes, which is the most that this"
                " process takes of an input without a size: write it to a file, load it with the"
                f" engine spark, or set {SETTING}",
                details={"resource": RESOURCE, "limit": most, "actual": size},
            )
        yield piece
