"""Sources: whatever a person hands to a load, turned into batches.

Owns telling paths, text, records and frames apart, and reading files. Never decodes a
row itself.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from glob import glob, has_magic
from itertools import groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from omnigraph.embed.protocol import Embedder
from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.change.type_batch import TypeBatch
from omnigraph.write.load.columns.frames import as_table, decode_frames, read_tables
from omnigraph.write.load.ndjson.decode import NdjsonSource, decode_ndjson
from omnigraph.write.load.rejects import Reject, rejects_of_lines, rejects_of_rows
from omnigraph.write.load.sifting import CheckedRows, sift_lines, sift_table
from omnigraph.write.rules.violations import Violation

SUFFIXES = (".jsonl", ".ndjson")
_RECORDS = 8192


class Sources(Protocol):
    """Input that can be decoded as a whole, or sifted row by row."""

    def decode(self, catalog: Catalog) -> list[TypeBatch]:
        """All rows, one batch for each type; raises one error for all that is wrong."""

    def sift(self, catalog: Catalog, embedder: Embedder) -> CheckedRows:
        """The rows that are right by themselves, and what is wrong with the others."""

    def rejects(self, violations: Iterable[Violation]) -> Iterator[Reject]:
        """The rows that violations are about."""

    def order_of(self, reject: Reject) -> tuple[int, int]:
        """Where a row stands in the input."""


@dataclass(frozen=True, slots=True)
class LineSources:
    """NDJSON."""

    sources: Sequence[NdjsonSource]

    def decode(self, catalog: Catalog) -> list[TypeBatch]:
        """All rows."""
        return decode_ndjson(self.sources, catalog)

    def sift(self, catalog: Catalog, embedder: Embedder) -> CheckedRows:
        """The rows that are right by themselves."""
        return sift_lines(self.sources, catalog, embedder)

    def rejects(self, violations: Iterable[Violation]) -> Iterator[Reject]:
        """Lines."""
        return rejects_of_lines(violations, self.sources)

    def order_of(self, reject: Reject) -> tuple[int, int]:
        """By file, then by line."""
        return [source.name for source in self.sources].index(reject.file), reject.line


@dataclass(frozen=True, slots=True)
class FrameSources:
    """Frames by type name."""

    frames: Mapping[str, object]

    def decode(self, catalog: Catalog) -> list[TypeBatch]:
        """All rows."""
        return decode_frames(self.frames, catalog)

    def sift(self, catalog: Catalog, embedder: Embedder) -> CheckedRows:
        """The rows that are right by themselves."""
        sifted = CheckedRows()
        for name, type_, table, is_pandas in read_tables(self.frames, catalog):
            found = sift_table(name, type_, table, embedder, is_pandas=is_pandas)
            sifted.batches.extend(found.batches)
            sifted.violations.extend(found.violations)
        return sifted

    def rejects(self, violations: Iterable[Violation]) -> Iterator[Reject]:
        """Rows, frame by frame."""
        for name, found in groupby(violations, key=_source_of):
            table, _ = as_table(str(name), self.frames[str(name)])
            yield from rejects_of_rows(found, table)

    def order_of(self, reject: Reject) -> tuple[int, int]:
        """By frame, then by row."""
        return list(self.frames).index(str(reject.file)), reject.line


def _source_of(violation: Violation) -> str | None:
    return None if violation.place is None else violation.place.source


def read_sources(data: object) -> Sources:
    """Paths, NDJSON text, envelope records, or frames by type name."""
    if isinstance(data, Mapping):
        return FrameSources(_named_frames(data))
    if isinstance(data, (bytes, bytearray, memoryview)):
        return LineSources([NdjsonSource(None, bytes(data))])
    if isinstance(data, str) and is_text(data):
        return LineSources([_text(data)])
    if isinstance(data, (str, PathLike)):
        return LineSources(list(_files(data)))
    if not isinstance(data, Iterable) or hasattr(data, "__arrow_c_stream__"):
        raise BadRequest(
            f"cannot load {type(data).__name__}: give a path, NDJSON text, envelope records, or"
            ' frames by type name, like {"Person": frame}'
        )
    return LineSources(list(_of_iterable(data)))


def is_text(data: str) -> bool:
    """Whether a text is NDJSON itself and not the path of some."""
    return not data or "{" in data or "\n" in data


def _text(data: str) -> NdjsonSource:
    try:
        return NdjsonSource(None, data.encode())
    except UnicodeEncodeError as error:
        raise BadRequest(f"the text is not Unicode: {error.reason} at {error.start}") from None


def _named_frames(data: Mapping[Any, object]) -> Mapping[str, object]:
    if {"type", "edge"} & set(data) and not any(map(_is_frame, data.values())):
        raise BadRequest("this is one envelope: put it into a list")
    for name in data:
        if not isinstance(name, str):
            raise BadRequest(f"frames are named by their type, found the name {name!r}")
    return data


def _is_frame(value: object) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "columns")


def _of_iterable(data: Iterable[Any]) -> Iterator[NdjsonSource]:
    items = iter(data)
    first = next(items, None)
    if first is None:
        return
    rest = _chain(first, items)
    if isinstance(first, (str, PathLike)):
        for path in rest:
            if not isinstance(path, (str, PathLike)):
                raise BadRequest(f"a list of paths, then {type(path).__name__}")
            yield from _files(path)
        return
    yield NdjsonSource(None, b"".join(encode_records(rest)))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def encode_records(records: Iterator[Any]) -> Iterator[bytes]:
    """Envelopes as NDJSON, some thousands at a time."""
    number = 0
    while chunk := list(islice(records, _RECORDS)):
        if not all(map(_is_mapping, chunk)):
            at = next(at for at, one in enumerate(chunk) if not _is_mapping(one))
            found = type(chunk[at]).__name__
            raise BadRequest(f"record {number + at + 1} must be a dict, found {found}")
        try:
            yield ("\n".join(map(_ENCODER.encode, chunk)) + "\n").encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise _unwritable(chunk, number, error) from None
        number += len(chunk)


def _is_mapping(record: object) -> bool:
    return isinstance(record, dict)


def _unwritable(chunk: list[Any], number: int, error: Exception) -> BadRequest:
    for at, record in enumerate(chunk):
        try:
            _ENCODER.encode(record).encode()
        except (TypeError, ValueError, RecursionError) as found:
            return BadRequest(f"record {number + at + 1} cannot be written as JSON: {found}")
    return BadRequest(f"the records cannot be written as JSON: {error}")


def _encode(value: object) -> object:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "base64:" + b64encode(bytes(value)).decode()
    if isinstance(value, date):
        return value.isoformat()
    # NumPy's numbers and arrays say this of themselves.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of a property")


# Not msgspec: that writes bytes as bare base64, which a String would take for text.
_ENCODER = json.JSONEncoder(default=_encode, ensure_ascii=False, allow_nan=False)


def _files(path: str | PathLike[str]) -> Iterator[NdjsonSource]:
    place = Path(path).expanduser()
    if place.is_dir():
        found = sorted(one for one in place.iterdir() if one.suffix in SUFFIXES and one.is_file())
        if not found:
            raise BadRequest(f"no *.jsonl or *.ndjson file in the directory {place}")
    elif place.exists() or not has_magic(str(place)):
        found = [place]
    else:
        matching = glob(str(place), recursive=True)  # noqa: PTH207 - it may be absolute
        found = sorted(one for one in map(Path, matching) if one.is_file())
        if not found:
            raise BadRequest(f"no file matches {place}")
    for one in found:
        yield NdjsonSource(str(one), _content(one))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from None
