"""Streams of lines from a server: exports and baselines, read while they come.

Owns splitting them into lines, writing them to files, and telling a whole one from one that broke
off.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from omnigraph.client.connection import Ask, Connection
from omnigraph.errors import BadRequest, ServerError
from omnigraph.history.baseline import Baseline, locked
from omnigraph.lang.schema.catalog import EntityKind
from omnigraph.read.output.export import Chunk, ExportReport
from omnigraph.storage.objects.files import replaced_file
from omnigraph.wire.changes import BaselineBody

_HEAD = re.compile(rb"^\{\"(type|edge)\":(\"(?:[^\"\\]|\\.)*\")", re.MULTILINE)
_BASELINE = b'{"baseline":'


class _Handshake(msgspec.Struct, frozen=True):
    baseline: BaselineBody


class _Lines(Iterator[str]):
    def __init__(self, connection: Connection, ask: Ask) -> None:
        self._connection = connection
        self._ask = ask
        self._lines = self._split()

    def __next__(self) -> str:
        return next(self._lines)

    def _split(self) -> Iterator[str]:
        for piece in self._pieces():
            # Not `splitlines`: texts may hold other separators.
            yield from piece.decode().removesuffix("\n").split("\n")

    def _pieces(self) -> Iterator[bytes]:
        """The text in pieces of whole lines, asked for anew every time."""
        with self._connection.stream(self._ask) as (_, pieces):
            yield from _whole_lines(pieces)


class ServedExport(_Lines):
    """The lines of an export, one after the other, without their newlines.

    ``chunks`` gives the same text in large pieces, from the start every time.
    """

    def chunks(self) -> Iterator[Chunk]:
        """The text in pieces of whole lines, each of one type."""
        for piece in self._pieces():
            yield from _of_one_type(piece)


class ServedBaseline(_Lines):
    """The lines of a baseline; the last one is the handshake, without which it was not captured.

    ``chunks`` gives the same text in large pieces.
    """

    def chunks(self) -> Iterator[bytes]:
        """The lines in pieces of some size."""
        return self._pieces()

    def _split(self) -> Iterator[str]:
        last = ""
        for line in super()._split():
            last = line
            yield line
        if not last.startswith(_BASELINE.decode()):
            raise _broken()


class _Counts:
    """How many entities of each type were written, and how many bytes."""

    def __init__(self) -> None:
        self._found: dict[EntityKind, Counter[str]] = {"node": Counter(), "edge": Counter()}
        self._bytes = 0

    def write(self, file: BinaryIO, text: bytes) -> None:
        file.write(text)
        self._bytes += len(text)
        for chunk in _of_one_type(text):
            self._found[chunk.kind][chunk.type_name] += chunk.rows

    def report(self, path: str | Path) -> ExportReport:
        nodes, edges = dict(self._found["node"]), dict(self._found["edge"])
        return ExportReport(str(path), nodes, edges, self._bytes)


def write_lines(lines: ServedExport, path: str | Path) -> ExportReport:
    """Write an export to a file, which is replaced in one step when it is whole."""
    counts = _Counts()

    def write(file: BinaryIO) -> None:
        for chunk in lines.chunks():
            counts.write(file, chunk.data)

    _replaced(path, write)
    return counts.report(path)


def write_baseline(lines: ServedBaseline, path: str | Path) -> Baseline:
    """Write the entity lines of a baseline to a file, if the handshake came behind them."""
    counts = _Counts()
    found: list[BaselineBody] = []

    def write(file: BinaryIO) -> None:
        for piece in lines.chunks():
            start = piece.rfind(b"\n", 0, -1) + 1
            last = piece[start:]
            if last.startswith(_BASELINE):
                found.append(msgspec.json.decode(last, type=_Handshake).baseline)
                counts.write(file, piece[:start])
            else:
                counts.write(file, piece)
        if not found:
            raise _broken()

    with locked(path):
        _replaced(path, write)
    return Baseline(found[0].snapshot_commit_id, found[0].resume_cursor, counts.report(path))


def _replaced(path: str | Path, write: Callable[[BinaryIO], None]) -> None:
    if "://" in str(path):
        raise BadRequest(f"cannot export to {path}: give the path of a local file")
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise BadRequest(f"cannot export to {path}: it is there and not a file")
    try:
        with replaced_file(target) as file:
            write(file)
    except OSError as error:
        raise BadRequest(f"cannot write {target}: {error.strerror or error}") from None


def _of_one_type(piece: bytes) -> Iterator[Chunk]:
    """Whole lines in pieces of one type each: types come one after the other."""
    first = _HEAD.match(piece)
    if first is None:
        return
    last = _HEAD.match(piece, piece.rfind(b"\n", 0, -1) + 1)
    if last is not None and last[0] == first[0]:
        yield _chunk(first, piece)
        return
    start = first
    for found in _HEAD.finditer(piece):
        if found[0] != start[0]:
            yield _chunk(start, piece[start.start() : found.start()])
            start = found
    yield _chunk(start, piece[start.start() :])


def _chunk(head: re.Match[bytes], text: bytes) -> Chunk:
    kind: EntityKind = "node" if head[1] == b"type" else "edge"
    return Chunk(kind, msgspec.json.decode(head[2], type=str), text.count(b"\n"), text)


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield rest + piece[:end]
            rest = piece[end:]
        else:
            rest += piece
    if rest:
        yield rest


def _broken() -> ServerError:
    return ServerError(
        "the baseline ended without its last line, so it is not whole: capture it again",
        kind="lost",
    )
