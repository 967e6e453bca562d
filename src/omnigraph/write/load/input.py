"""Input: whatever a person hands to a load, told apart and turned into batches.

Owns which engine a load runs on when the caller leaves it open, and the order of rejects. Never
decides whether a row is right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
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
TABLES = (".csv", ".parquet", ".gz", ".zst")


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


def require_engine(wanted: str) -> str:
    """One of the engines that a caller may name."""
    if wanted not in ENGINES:
        raise BadRequest(f"there is no load engine {wanted!r}: choose {' or '.join(ENGINES)}")
    return wanted


def is_request_sized(data: object, wanted: str = "auto") -> bool:
    """Whether data is in memory, or no more than one request could carry.

    Such a load takes milliseconds. Tables in files, many files and whatever is larger are a
    bulk load, in this process or on Spark. Who asks for this process may call a file of NDJSON
    anything.
    """
    if wanted == "spark":
        return False
    if isinstance(data, Mapping):
        return not any(is_frame_of_spark(one) or names_files(one) for one in data.values())
    paths = [*data] if isinstance(data, (list, tuple)) else [data]
    paths = [one for one in paths if _is_path(one)]
    if any(_is_bulk(path, may_be_any=wanted == "inline") for path in paths):
        return False
    return sum(map(_size, paths)) <= REQUEST_BYTES


def _is_bulk(path: object, *, may_be_any: bool) -> bool:
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        return True
    place = Path(text.removeprefix("file://")).expanduser()
    if place.is_dir() or (not place.exists() and has_magic(text)):
        return True
    return place.suffix in TABLES if may_be_any else place.suffix not in SUFFIXES


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

    def sift(self, catalog: Catalog, *, strict: bool, patches: bool = False) -> CheckedRows:
        """The rows that can be read, and what is wrong with the others; strict, it is raised."""

    def rejects(self, violations: Iterable[Violation]) -> Iterator[Reject]:
        """The rows that violations are about."""

    def order_of(self, reject: Reject) -> tuple[int, int]:
        """Where a row stands in the input."""


@dataclass(frozen=True, slots=True)
class LineSources:
    """NDJSON."""

    sources: Sequence[NdjsonSource]

    def sift(self, catalog: Catalog, *, strict: bool, patches: bool = False) -> CheckedRows:
        """The lines that can be read."""
        return sift_lines(self.sources, catalog, strict=strict, patches=patches)

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

    def sift(self, catalog: Catalog, *, strict: bool, patches: bool = False) -> CheckedRows:
        """The rows that can be read."""
        return sift_frames(self.frames, catalog, strict=strict, patches=patches)

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
    place = Path(str(path).removeprefix("file://")).expanduser()
    yield NdjsonSource(str(place), read_file(place))
