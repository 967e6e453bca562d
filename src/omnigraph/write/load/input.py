"""Input: whatever a person hands to a load, told apart the same way for every engine.

Owns what is a path, a text, a record or a frame, how records become lines, and which engine a
load runs on when the caller leaves it open. Never reads a file and never starts anything.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from glob import has_magic
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from omnigraph.errors import BadRequest
from omnigraph.write.recovery.intent_scope import REQUEST_BYTES

Engine = Literal["inline", "spark"]
ENGINES: tuple[str, ...] = ("auto", *get_args(Engine))
SUFFIXES = (".jsonl", ".ndjson")
_RECORDS = 8192


@dataclass(frozen=True, slots=True)
class TextInput:
    """NDJSON that has no name, piece by piece."""

    pieces: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class PathInput:
    """Files, directories and patterns; whether all of these are paths is for readers to say."""

    paths: Iterable[Any]


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Frames by the name of their type, and for some engines paths too."""

    by_type: Mapping[Any, object]


def classify(data: object) -> TextInput | PathInput | TypedInput:
    """Paths, NDJSON text, envelope records, or frames by type name."""
    if isinstance(data, Mapping):
        return TypedInput(data)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return TextInput([bytes(data)])
    if isinstance(data, str) and _is_text(data):
        return TextInput([_encoded(data)])
    if isinstance(data, (str, PathLike)):
        return PathInput([data])
    if not isinstance(data, Iterable) or hasattr(data, "__arrow_c_stream__"):
        raise BadRequest(
            f"cannot load {type(data).__name__}: give a path, NDJSON text, envelope records, or"
            ' frames by type name, like {"Person": frame}'
        )
    items = iter(data)
    first = list(islice(items, 1))
    every = chain(first, items)
    if first and isinstance(first[0], (str, PathLike)):
        return PathInput(every)
    return TextInput(_encode_records(every))


def _is_text(data: str) -> bool:
    """Whether a text is NDJSON itself and not the path of some."""
    return not data or "{" in data or "\n" in data


def _encoded(data: str) -> bytes:
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"the text is not Unicode: {error.reason} at {error.start}") from None


def is_frame(value: object) -> bool:
    """Whether something is a table of rows."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "columns")


def names_files(data: object) -> bool:
    """Whether data is a path, or several in a list."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(map(_is_path, data))
    return _is_path(data)


def _is_path(data: object) -> bool:
    return isinstance(data, PathLike) or (isinstance(data, str) and not _is_text(data))


def require_names(
    frames: Mapping[Any, object], data: Mapping[Any, object], types: Collection[str] = ()
) -> None:
    """Refuse frames without a name, and an envelope that was meant as a list of one."""
    members = {"type", "edge"} & (set(data) - set(types))
    if members and not any(map(is_frame, data.values())):
        raise BadRequest("this is one envelope: put it into a list")
    for name in frames:
        if not isinstance(name, str):
            raise BadRequest(f"frames are named by their type, found the name {name!r}")


# -- records -----------------------------------------------------------------------


def _encode_records(records: Iterator[Any]) -> Iterator[bytes]:
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


# -- engines -----------------------------------------------------------------------


def choose_engine(data: object, wanted: str = "auto") -> Engine:
    """The engine for some data.

    What one request could carry is loaded in this process, in milliseconds; files beyond that,
    many files and tables of columns go to Spark.
    """
    match wanted:
        case "inline":
            return "inline"
        case "spark":
            return "spark"
        case "auto":
            return "spark" if _is_for_spark(data) else "inline"
    raise BadRequest(f"there is no load engine {wanted!r}: choose {' or '.join(ENGINES)}")


def _is_for_spark(data: object) -> bool:
    if isinstance(data, Mapping):
        return any(_is_spark_frame(frame) or _is_path(frame) for frame in data.values())
    if isinstance(data, (list, tuple)):
        paths = [one for one in data if _is_path(one)]
        return any(map(_is_large, paths)) or sum(map(_size, paths)) > REQUEST_BYTES
    return _is_path(data) and _is_large(data)


def _is_large(path: object) -> bool:
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        return True
    place = Path(text.removeprefix("file://")).expanduser()
    if place.is_dir():
        return True
    if not place.exists() and has_magic(text):
        return True
    return place.suffix not in SUFFIXES or _size(path) > REQUEST_BYTES


def _size(path: object) -> int:
    try:
        return Path(str(path)).expanduser().stat().st_size
    except OSError:
        return 0


def _is_spark_frame(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.")
