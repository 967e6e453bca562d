"""Export directories: files written under a hidden name, and shown when all are complete.

Owns where parts are written, how they get their names, and the marker that comes last.
Never touches a directory that has something in it.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast
from uuid import uuid4

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.input_files import children, find
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

MARKER = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class ExportDirectory:
    """A directory to be, and the hidden one where its files are made."""

    target: Location
    draft: Location

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """The directory of a path or an ``s3://`` address."""
        text = str(path)
        target = Location.parse(text if "://" in text else str(Path(text).expanduser()))
        attempt = uuid4().hex
        if not target.is_local:
            return cls(target, target.join(f"_temporary-{attempt}"))
        # Beside it: on the same disk, a directory is renamed in one step.
        place = Path(target.path)
        return cls(target, Location("file", str(place.with_name(f".{place.name}.{attempt}.tmp"))))

    def require_free(self) -> None:
        """Refuse a place that is taken."""
        if find(self.target.uri) is not None:
            raise BadRequest(f"cannot export to {self.target}: it is a file; name a directory")
        self._require_empty()

    @contextmanager
    def drafting(self) -> Iterator[None]:
        """Make the hidden directory for a block; whatever is still in it at the end goes."""
        if self.draft.is_local:
            with storage_errors(f"writing {self.target}"):
                Path(self.draft.path).mkdir(parents=True)
        try:
            yield
        finally:
            self._discard()

    def moves(self, names: Collection[str]) -> list[Move]:
        """What is left to do for the files of these names, which tasks may do side by side."""
        self._require_empty()
        if self.draft.is_local:
            return []
        return [Move(self.draft.join(name), self.target.join(name)) for name in names]

    def show(self, names: Collection[str]) -> None:
        """Give the directory its name and its marker; all moves are done."""
        if not self.draft.is_local:
            ControlObjects(self.target).replace(MARKER, b"")
            return
        draft, target = Path(self.draft.path), Path(self.target.path)
        with storage_errors(f"writing {self.target}"):
            _remove_others(draft, names)
            with draft.joinpath(MARKER).open("xb") as marker:
                os.fsync(marker.fileno())
            draft.rename(target)
            _sync(target.parent)

    def _require_empty(self) -> None:
        found = children(self.target.uri, lambda name: name != self.draft.path.rpartition("/")[2])
        if found.directories or found.files:
            raise BadRequest(
                f"cannot export to {self.target}: there is something in it already; name another"
                " directory, or empty this one"
            )

    def _discard(self) -> None:
        if self.draft.is_local:
            shutil.rmtree(self.draft.path, ignore_errors=True)
            return
        objects = ControlObjects(self.draft)
        for name in objects.list():
            objects.delete(name)


def _remove_others(directory: Path, names: Collection[str]) -> None:
    """Remove what attempts left that were killed while they wrote."""
    wanted = {directory / name for name in names}
    for path in directory.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()


def _sync(directory: Path) -> None:
    """Make a new name itself last."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- in tasks ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """An object of a store that gets another name."""

    source: Location
    target: Location


def move(wanted: Move) -> None:
    """Give an object its name; one that was moved already is left alone."""
    import obstore

    meter.count("copy")
    with storage_errors(f"moving {wanted.source}"):
        try:
            obstore.rename(_store(wanted.source), wanted.source.prefix, wanted.target.prefix)
        except FileNotFoundError:
            if find(wanted.target.uri) is None:
                raise


@contextmanager
def open_sink(location: Location) -> Iterator[BinaryIO]:
    """A new file at a place, which has it when the block ends well and not before."""
    opened = _local_sink if location.is_local else _object_sink
    with storage_errors(f"writing {location}"), opened(location) as sink:
        yield sink


@contextmanager
def _local_sink(location: Location) -> Iterator[BinaryIO]:
    place = Path(location.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    # Two attempts of one task may be at work; hidden, should one of them be killed.
    draft = place.with_name(f".{place.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _object_sink(location: Location) -> Iterator[BinaryIO]:
    import obstore

    meter.count("put")
    writer = obstore.open_writer(_store(location), location.prefix)
    yield cast("BinaryIO", _ObjectSink(writer))
    # Not on an error: what is not closed never becomes an object.
    writer.close()


class _ObjectSink(io.RawIOBase):
    """An object in the making as a file; closing this does not finish the object."""

    def __init__(self, writer: Any) -> None:
        super().__init__()
        self._writer = writer
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        self._writer.write(data)
        self._at += size
        return size


def _store(location: Location) -> S3Store:
    from obstore.store import S3Store

    return S3Store(location.bucket, config=cast("S3Config", location.storage_options))
