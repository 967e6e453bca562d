"""Files: input where it lies, on a local disk or in an object store.

Owns listings, sizes, opening and range reads. Must never write, and never looks at what
the bytes mean.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from omnigraph.errors import BadRequest
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.s3_client import s3_store

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import S3Store

_S3 = "s3://"
_HIDDEN = (".", "_")
_FOLDER = "_$folder$"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that exists; ``version`` is what an object store calls this content of it."""

    uri: str
    size: int
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """One level of a directory: the names of directories, and the files, both sorted."""

    directories: list[str]
    files: list[FoundFile]


def is_remote(uri: str) -> bool:
    """Whether an address is one of an object store; else it is a path of this machine."""
    return uri.startswith(_S3)


def is_hidden(name: str) -> bool:
    """Whether a name is one that Spark passes over: `_SUCCESS`, `_temporary`, `.part-0.crc`."""
    return name.startswith(_HIDDEN)


def join(uri: str, name: str) -> str:
    """The address of something in a directory."""
    return f"{uri.rstrip('/')}/{name}"


def find(uri: str) -> FoundFile | None:
    """The file of an address, or None if there is none."""
    if is_remote(uri):
        return _find_object(uri)
    with local_errors(uri):
        try:
            found = Path(uri).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
    if stat.S_ISDIR(found.st_mode):
        return None
    if not stat.S_ISREG(found.st_mode):
        raise BadRequest(f"cannot load {uri}: it is no regular file; write the data to one")
    return FoundFile(uri, found.st_size)


def children(uri: str, accepts: Callable[[str], bool]) -> Children:
    """What stands in a directory under accepted names; nothing if there is no such directory."""
    if is_remote(uri):
        return _object_children(uri, accepts)
    if not Path(uri).is_dir():
        return Children([], [])
    with local_errors(uri), os.scandir(uri) as entries:
        chosen = sorted((entry.name, entry.is_dir()) for entry in entries if accepts(entry.name))
    directories = [name for name, is_directory in chosen if is_directory]
    files = [_existing(join(uri, name)) for name, is_directory in chosen if not is_directory]
    return Children(directories, files)


def below(uri: str) -> list[FoundFile] | None:
    """All files of a directory and its directories, by address; None if there is none.

    What is hidden is left out, and so is everything in a hidden directory.
    """
    if is_remote(uri):
        found = _objects_below(uri)
        return sorted(found, key=lambda one: one.uri) if found else None
    if not Path(uri).is_dir():
        return None
    return sorted(_files_below(uri, frozenset()), key=lambda one: one.uri)


def open_file(uri: str, size: int, version: str | None = None) -> BinaryIO:
    """A file for reading at any place; refused if it is not the one that was found.

    Every read of an object is one request: read large pieces.
    """
    if is_remote(uri):
        bucket, key = _bucket_and_key(uri)
        return cast("BinaryIO", _ObjectFile(_store(bucket), key, uri, size, version))
    with local_errors(uri):
        opened = Path(uri).open("rb")  # noqa: SIM115 - the caller closes it
    if os.fstat(opened.fileno()).st_size != size:
        opened.close()
        raise changed(uri)
    return opened


def changed(uri: str) -> BadRequest:
    """The error for a file that is another one than when the load began."""
    return BadRequest(
        f"{uri} has changed since the load began; load a copy that nobody writes to any more"
    )


@contextmanager
def local_errors(uri: str) -> Iterator[None]:
    """Turn an error of the operating system about a path into one that names it."""
    try:
        yield
    except FileNotFoundError:
        raise BadRequest(
            f"cannot read {uri}: there is no such file on this machine; every machine that takes"
            " part in a load must see the input under the same path"
        ) from None
    except OSError as error:
        # Libraries raise OSError without a number for what they find in a file.
        if error.errno is None:
            raise
        raise BadRequest(f"cannot read {uri}: {error.strerror or error}") from None


# -- a local disk ------------------------------------------------------------------


def _existing(path: str) -> FoundFile:
    found = find(path)
    if found is None:
        raise BadRequest(f"cannot read {path}: it is a link to something that does not exist")
    return found


def _files_below(directory: str, ancestors: frozenset[tuple[int, int]]) -> Iterator[FoundFile]:
    with local_errors(directory):
        status = Path(directory).stat()
        identity = (status.st_dev, status.st_ino)
        # A link to a directory above: its files are already among those found.
        if identity in ancestors:
            return
        with os.scandir(directory) as entries:
            shown = [entry for entry in entries if not is_hidden(entry.name)]
    for entry in shown:
        if entry.is_dir():
            yield from _files_below(entry.path, ancestors | {identity})
        else:
            yield _existing(entry.path)


# -- object stores -----------------------------------------------------------------


class _ObjectFile(io.RawIOBase):
    """An object as a file, every read of it being one request for a range."""

    def __init__(self, store: S3Store, key: str, uri: str, size: int, version: str | None) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._uri = uri
        self._size = size
        self._version = version
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        data = self._fetch(self._at, self._at + wanted)
        buffer[:wanted] = data
        self._at += wanted
        return wanted

    def _fetch(self, start: int, end: int) -> memoryview:
        import obstore
        from obstore.exceptions import PreconditionError

        options: GetOptions = {"range": (start, end)}
        if self._version is not None:
            options["if_match"] = self._version
        meter.count("get")
        with storage_errors(f"reading {self._uri}"):
            try:
                data = memoryview(obstore.get(self._store, self._key, options=options).bytes())
            except PreconditionError:
                raise changed(self._uri) from None
        if len(data) != end - start:
            raise changed(self._uri)
        return data


def _find_object(uri: str) -> FoundFile | None:
    import obstore

    bucket, key = _bucket_and_key(uri)
    if not key:
        return None
    meter.count("head")
    with storage_errors(f"reading {uri}"):
        try:
            found = obstore.head(_store(bucket), key)
        except FileNotFoundError as error:
            if classify(error) != "not_found":
                raise  # there is no such bucket
            return None
    if _is_marker(key, found["size"]):
        return None
    return FoundFile(uri, found["size"], found["e_tag"])


def _object_children(uri: str, accepts: Callable[[str], bool]) -> Children:
    import obstore

    bucket, prefix = _bucket_and_key(uri)
    meter.count("list")
    with storage_errors(f"listing {uri}"):
        found = obstore.list_with_delimiter(_store(bucket), prefix or None)
    names = sorted(directory.rpartition("/")[2] for directory in found["common_prefixes"])
    files = _found_objects(bucket, prefix, found["objects"], accepts)
    return Children(list(filter(accepts, names)), sorted(files, key=lambda one: one.uri))


def _objects_below(uri: str) -> list[FoundFile]:
    import obstore

    bucket, prefix = _bucket_and_key(uri)
    meter.count("list")
    with storage_errors(f"listing {uri}"):
        return [
            one
            for chunk in obstore.list(_store(bucket), prefix or None, chunk_size=1000)
            for one in _found_objects(bucket, prefix, chunk, lambda name: not is_hidden(name))
        ]


def _found_objects(
    bucket: str, prefix: str, objects: Any, accepts: Callable[[str], bool]
) -> Iterator[FoundFile]:
    for one in objects:
        key, size = one["path"], one["size"]
        names = key[len(prefix) :].strip("/").split("/")
        if key != prefix and all(map(accepts, names)) and not _is_marker(key, size):
            yield FoundFile(f"{_S3}{bucket}/{key}", size, one["e_tag"])


def _is_marker(key: str, size: int) -> bool:
    """Whether an object only stands for a directory, as several tools write them."""
    name = key.rpartition("/")[2]
    return size == 0 and ("." not in name or name.endswith(_FOLDER))


def _bucket_and_key(uri: str) -> tuple[str, str]:
    bucket, _, key = uri.removeprefix(_S3).partition("/")
    return bucket, key


def _store(bucket: str) -> S3Store:
    with storage_errors(f"opening {_S3}{bucket}"):
        return s3_store(bucket)
