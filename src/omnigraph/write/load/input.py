"""Input: whatever a person hands to a load, told apart and turned into batches.

Owns which engine a load runs on when the caller leaves it open, and the order of rejects. Never
decides whether a row is right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import chain, groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.load.columns.frames import as_table
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.load.records import encode_records
from omnigraph.write.load.rejects import Reject, rejects_of_lines, rejects_of_rows
from omnigraph.write.load.sifting import CheckedRows, sift_frames, sift_lines
from omnigraph.write.load.streams import bounded, encoded, pieces_of, read_file, whole_lines
from omnigraph.write.recovery.intent_scope import REQUEST_BYTES
from omnigraph.write.rules.violations import Violation

Engine = Literal["inline", "spark"]
ENGINES: tuple[str, ...] = ("auto", *get_args(Engine))
SUFFIXES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class TextInput:
    """NDJSON that has no name, piece by piece; ``is_endless`` if it may have any size."""

    pieces: Iterable[bytes]
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class RecordInput:
    """Envelopes that are Python's own values; ``is_endless`` if there may be any number."""

    records: Iterator[Any]
    is_endless: bool = False

    def lines(self, catalog: Catalog) -> TextInput:
        """The same as NDJSON."""
        return TextInput(encode_records(self.records, catalog), self.is_endless)


@dataclass(frozen=True, slots=True)
class PathInput:
    """Files, directories and patterns; whether all of these are paths is for readers to say."""

    paths: Iterable[Any]


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Frames by the name of their type, and for some engines paths too."""

    by_type: Mapping[Any, object]


def classify(data: object) -> TextInput | RecordInput | PathInput | TypedInput:
    """Paths, NDJSON text or a stream of it, envelope records, or frames by type name."""
    if isinstance(data, Mapping):
        return TypedInput(data)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return TextInput([bytes(data)])
    if isinstance(data, str) and _is_text(data):
        return TextInput([encoded(data)])
    if isinstance(data, (str, PathLike)):
        return PathInput([data])
    if hasattr(data, "read"):
        return TextInput(pieces_of(data), is_endless=True)
    if not isinstance(data, Iterable) or hasattr(data, "__arrow_c_stream__"):
        raise BadRequest(
            f"cannot load {type(data).__name__}: give a path, NDJSON text, envelope records, or"
            ' frames by type name, like {"Person": frame}'
        )
    items = _handed_over(data)
    first = list(islice(items, 1))
    every = chain(first, items)
    if first and isinstance(first[0], (str, PathLike)):
        return PathInput(every)
    return RecordInput(every, is_endless=isinstance(data, Iterator))


def _handed_over(data: Iterable[Any]) -> Iterator[Any]:
    """What the caller's own iterator gives; what goes wrong in it is told as that."""
    try:
        yield from data
    except (OmniGraphError, MemoryError):
        raise
    except Exception as error:
        raise BadRequest(
            f"the data that was handed over failed: {type(error).__name__}: {error}"
        ) from error


def _is_text(data: str) -> bool:
    """Whether a text is NDJSON itself and not the path of some."""
    return not data or "{" in data or "\n" in data


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
        return any(is_frame_of_spark(frame) or _is_path(frame) for frame in data.values())
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


def is_frame_of_spark(frame: object) -> bool:
    """Whether a frame is a plan of Spark's, which holds no rows."""
    return type(frame).__module__.startswith("pyspark.")


class Sources(Protocol):
    """Input that is read row by row."""

    def sift(self, catalog: Catalog, *, strict: bool) -> CheckedRows:
        """The rows that can be read, and what is wrong with the others; strict, it is raised."""

    def rejects(self, violations: Iterable[Violation]) -> Iterator[Reject]:
        """The rows that violations are about."""

    def order_of(self, reject: Reject) -> tuple[int, int]:
        """Where a row stands in the input."""


@dataclass(frozen=True, slots=True)
class LineSources:
    """NDJSON."""

    sources: Sequence[NdjsonSource]

    def sift(self, catalog: Catalog, *, strict: bool) -> CheckedRows:
        """The lines that can be read."""
        return sift_lines(self.sources, catalog, strict=strict)

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

    def sift(self, catalog: Catalog, *, strict: bool) -> CheckedRows:
        """The rows that can be read."""
        return sift_frames(self.frames, catalog, strict=strict)

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


def read_sources(data: object, catalog: Catalog) -> Sources:
    """Read what was handed over: files as a whole, for they have to fit into memory."""
    match classify(data):
        case TextInput() as text:
            return _text_source(text)
        case RecordInput() as records:
            return _text_source(records.lines(catalog))
        case PathInput(paths):
            return LineSources([source for path in paths for source in _files(path)])
        case found:
            require_names(found.by_type, found.by_type)
            return FrameSources(found.by_type)


def _text_source(text: TextInput) -> LineSources:
    pieces = whole_lines(text.pieces)
    return LineSources(
        [NdjsonSource(None, b"".join(bounded(pieces) if text.is_endless else pieces))]
    )


def _files(path: Any) -> Iterator[NdjsonSource]:
    if not isinstance(path, (str, PathLike)):
        raise BadRequest(f"a list of paths, then {type(path).__name__}")
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
        yield NdjsonSource(str(one), read_file(one))
