"""Byte ranges: a file read forward from a position, decompressed, in bounded pieces.

Owns where to stop asking for more, and the errors of broken archives. Never looks at what
the bytes mean, and never holds more than one piece.
"""

from __future__ import annotations

import io
from collections.abc import Generator
from contextlib import closing
from typing import Any, BinaryIO

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.pipeline.input.input_files import changed, is_remote, local_errors, open_file
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.write.rules.row_limits import LINE_BYTES, SETTING, row_limits

PIECE = 8 << 20
BOM = b"\xef\xbb\xbf"
"""The byte order mark, which is no part of the first line."""

# What is read behind a range: nearly always the rest of its last line is in it.
_OVERHANG = 64 << 10


def read_forward(
    file: InputFile, position: int, end: int | None, piece: int = PIECE
) -> Generator[bytes, None, None]:
    """The bytes from a position on, until the file ends or the caller stops.

    Large pieces up to ``end``, then small ones. A compressed file has no positions: it is
    read from its beginning.
    """
    if file.compression is not None:
        yield from _decompressed(file, piece)
        return
    overhang = min(_OVERHANG, piece)
    with closing(open_file(file.uri, file.size, file.version)) as opened:
        opened.seek(position)
        while position < file.size:
            left = file.size - position
            if end is not None:
                left = min(left, max(end - position, 0) + overhang)
            # One larger piece rather than a tiny last one.
            wanted = left if left <= piece + overhang else piece
            with local_errors(file.uri):
                data = opened.read(wanted)
            if len(data) < wanted:
                raise changed(file.uri)
            yield data
            position += len(data)


def read_range(
    file: InputFile, start: int, end: int, piece: int = PIECE
) -> Generator[bytes, None, None]:
    """Exactly the bytes of a range of a file that is not compressed."""
    with closing(open_file(file.uri, file.size, file.version)) as opened:
        opened.seek(start)
        while start < end:
            with local_errors(file.uri):
                data = opened.read(min(piece, end - start))
            if not data:
                raise changed(file.uri)
            yield data
            start += len(data)


def end_of(file: InputFile, end: int) -> int | None:
    """The end of a range as a position in the bytes that are read; None for all of them."""
    return None if file.compression is not None else end


def refuse_long_line(file: InputFile, size: int, offset: int) -> None:
    """Refuse what is longer than any line may be, before more of it is in memory."""
    limit = row_limits().line_bytes
    if size <= limit:
        return
    likely = "a quote that nothing closes" if file.format == "csv" else "lines without line ends"
    raise ResourceLimit(
        f"{LINE_BYTES}: {file.uri} has more than {limit} bytes in one line around byte {offset};"
        f" look there for {likely}; {SETTING} allows more",
        details={"resource": LINE_BYTES, "limit": limit, "actual": size},
    )


def _decompressed(file: InputFile, piece: int) -> Generator[bytes, None, None]:
    import pyarrow as pa

    if file.size == 0:
        raise _broken(file, "it has no bytes at all")
    opened = open_file(file.uri, file.size, file.version)
    with closing(_buffered(file, opened)) as compressed, local_errors(file.uri):
        stream = pa.CompressedInputStream(pa.PythonFile(compressed, mode="r"), file.compression)
        while True:
            try:
                data: bytes = stream.read(piece)
            except OSError as error:
                # Arrow's own errors have no number; those of the disk below have one.
                if error.errno is not None:
                    raise
                raise _broken(file, str(error)) from None
            if not data:
                return
            yield data


def _buffered(file: InputFile, opened: BinaryIO) -> Any:
    """Arrow asks for little at a time, and each read of an object is a request."""
    return io.BufferedReader(opened, PIECE) if is_remote(file.uri) else opened


def _broken(file: InputFile, reason: str) -> BadRequest:
    return BadRequest(
        f"{file.uri} is no whole {file.compression} file: {reason}; compress or copy it again"
    )
