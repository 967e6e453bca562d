"""Sinks: new files of a staging area, written piece by piece.

Owns that a file is whole or not there, and that no two attempts write the same one. Never
holds more than a piece, and never looks at what the bytes mean.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ulid import ULID

from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.errors import storage_errors

if TYPE_CHECKING:
    from obstore.store import S3Config

_UPLOAD_BYTES = 16 << 20


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
    opened = _local if area.location.is_local else _remote
    with opened(area, name) as file:
        yield Sink(name, area.path(name).uri, file)


@contextmanager
def _local(area: StagingArea, name: str) -> Iterator[Any]:
    directory = Path(area.location.path)
    with suppress(FileNotFoundError):  # another load has just removed the parent
        directory.mkdir(parents=True, exist_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    try:
        with path.open("wb") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextmanager
def _remote(area: StagingArea, name: str) -> Iterator[Any]:
    import obstore
    from obstore.store import S3Store

    location = area.location
    with storage_errors(f"opening {location}"):
        store = S3Store(
            location.bucket,
            prefix=location.prefix or None,
            config=cast("S3Config", location.storage_options),
        )
    meter.count("put")
    # Closing is what makes the object: after an error there is none.
    file = obstore.open_writer(store, name, buffer_size=_UPLOAD_BYTES)
    yield file
    with storage_errors(f"writing {area.path(name)}"):
        file.close()
