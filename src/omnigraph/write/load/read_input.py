"""Sources: the input of a load in this process, read and sifted.

Owns reading its files, and telling the rows that were left out. Never decodes a row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.load.columns.frames import as_table
from omnigraph.write.load.input import SUFFIXES, PathInput, TextInput, classify, require_names
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.load.rejects import Reject, rejects_of_lines, rejects_of_rows
from omnigraph.write.load.sifting import CheckedRows, sift_frames, sift_lines
from omnigraph.write.rules.violations import Violation


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


def read_sources(data: object) -> Sources:
    """Read what was handed over: files as a whole, for they have to fit into memory."""
    match classify(data):
        case TextInput(pieces):
            return LineSources([NdjsonSource(None, b"".join(pieces))])
        case PathInput(paths):
            return LineSources([source for path in paths for source in _files(path)])
        case found:
            require_names(found.by_type, found.by_type)
            return FrameSources(found.by_type)


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
        yield NdjsonSource(str(one), _content(one))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror or error}") from None
