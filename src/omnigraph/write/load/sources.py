"""Sources: whatever a person hands to a load, turned into batches.

Owns telling paths, text, records and frames apart, and reading files. Never decodes a
row itself.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from glob import glob, has_magic
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.batches import TypeBatch
from omnigraph.write.load.frames import decode_frames
from omnigraph.write.load.ndjson import NdjsonSource, decode_ndjson

SUFFIXES = (".jsonl", ".ndjson")
_RECORDS = 8192


def read_sources(data: object, catalog: Catalog) -> list[TypeBatch]:
    """The rows of paths, NDJSON text, envelope records, or frames by type name."""
    if isinstance(data, Mapping):
        return decode_frames(_named_frames(data), catalog)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return decode_ndjson([NdjsonSource(None, bytes(data))], catalog)
    if isinstance(data, str) and _is_text(data):
        return decode_ndjson([_text(data)], catalog)
    if isinstance(data, (str, PathLike)):
        return decode_ndjson(list(_files(data)), catalog)
    if not isinstance(data, Iterable) or hasattr(data, "__arrow_c_stream__"):
        raise BadRequest(
            f"cannot load {type(data).__name__}: give a path, NDJSON text, envelope records, or"
            ' frames by type name, like {"Person": frame}'
        )
    return decode_ndjson(list(_of_iterable(data)), catalog)


def _is_text(data: str) -> bool:
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
    yield NdjsonSource(None, b"".join(_encoded(rest)))


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _encoded(records: Iterator[Any]) -> Iterator[bytes]:
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
