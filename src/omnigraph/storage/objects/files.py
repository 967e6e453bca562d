"""New files on disk and new objects in a store: whole under their name, or not there.

Owns the hidden draft beside a local file and the upload that only closing completes.
Never reads, and never looks at what the bytes mean.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from uuid import uuid4

from omnigraph.storage.objects import meter
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.s3_client import s3_store

if TYPE_CHECKING:
    from obstore.store import S3Store

_UPLOAD_BYTES = 16 << 20


@contextmanager
def replaced_file(target: Path, *, mode: int | None = None) -> Iterator[BinaryIO]:
    """A new file that takes the target's place at the end, or vanishes on any error."""
    # Several may write at once, and one of them may be killed: each has its own, and hidden.
    draft = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        draft.replace(target)
        sync_directory(target.parent)
    finally:
        draft.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make a new name itself last."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def new_object(location: Location) -> Iterator[BinaryIO]:
    """An object of a store, written piece by piece; it exists when the block has ended well."""
    import obstore
    from obstore.exceptions import BaseError

    with storage_errors(f"writing {location}"):
        store = bucket_store(location)
        meter.count("put")
        writer = obstore.open_writer(store, location.prefix, buffer_size=_UPLOAD_BYTES)
    try:
        yield cast("BinaryIO", _Upload(writer, location))
    except BaseException as error:
        # It never becomes an object, and the store is told to drop the parts it has. Whether that
        # works or not, the first error is the one to know.
        with suppress(OSError, BaseError):
            writer.__exit__(type(error), error, error.__traceback__)
        raise
    with storage_errors(f"writing {location}"):
        writer.close()


def bucket_store(location: Location) -> S3Store:
    """The store of a location's bucket."""
    return s3_store(location.bucket)


class _Upload(io.RawIOBase):
    """An object in the making as a file; closing this does not finish the object."""

    def __init__(self, writer: Any, location: Location) -> None:
        super().__init__()
        self._writer = writer
        self._location = location
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        with storage_errors(f"writing {self._location}"):
            self._writer.write(data)
        self._at += size
        return size
