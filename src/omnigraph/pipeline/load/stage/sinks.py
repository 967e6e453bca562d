"""Sinks: new files of a staging area, written piece by piece.

Owns that a file is whole or not there, and that no two attempts write the same one. Never
holds more than a piece, and never looks at what the bytes mean.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ulid import ULID

from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.files import new_object


class Sink(io.RawIOBase):
    """A file while it is written; ``size`` counts its bytes."""

    def __init__(self, name: str, uri: str, opened: Any) -> None:
        super().__init__()
        self.name = name
        self.uri = uri
        self.size = 0
        self._opened = opened

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any, /) -> int:
        """Append a piece."""
        count = memoryview(data).nbytes
        with storage_errors(f"writing {self.uri}"):
            self._opened.write(data)
        self.size += count
        return count


@contextmanager
def new_file(area: StagingArea, stem: str, suffix: str) -> Iterator[Sink]:
    """A file for the block; it exists when the block has ended well."""
    name = f"{stem}-{ULID()}{suffix}"
    path = area.path(name)
    with _local(Path(path.path)) if path.is_local else new_object(path) as file:
        yield Sink(name, path.uri, file)


@contextmanager
def _local(path: Path) -> Iterator[BinaryIO]:
    """As :func:`new_object`; no draft, since nobody knows the name before the block has ended."""
    with suppress(FileNotFoundError):  # another load has just removed the parent
        path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise
