"""Control objects: small named objects beside the tables, created at most once.

Owns put-if-absent, the one primitive that every location we support has, and the reserve: a
little space on a local disk, given back when there is no other, since taking files away safely
needs to publish something first. Must never offer a conditional replace: local disks cannot do
it (`swapped_object` goes another way there).
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import StorageError
from omnigraph.storage.objects import faults, meter
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.processes import require_usable
from omnigraph.storage.objects.s3_client import s3_store

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PROBE = "__probe"
# What one request may delete at most.
_BULK = 1_000
# What the library calls an object on a local disk until it is whole.
_CUT_SHORT = re.compile(r"#[0-9]+$")
# Where this process has seen that an object is created only once.
_proven: set[str] = set()

NAME = "__reserve"
SIZE = 256 * 1024
# Large objects are read in pieces of so many bytes.
PIECE = 4 * 2**20


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing shows it; ``modified`` is in microseconds since the epoch.

    A store may count its times in seconds: where it has a ``tag`` for the content, that tells two
    objects apart.
    """

    name: str
    size: int
    modified: int
    tag: str | None = None


class ControlObjects:
    """The objects below one location, by name relative to it."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @cached_property
    def store(self) -> ObjectStore:
        """What the library calls the location."""
        from obstore.store import LocalStore

        with storage_errors(f"opening {self.location}"):
            if self.location.is_local:
                return LocalStore(self.location.path, mkdir=True)
            return s3_store(self.location.bucket, self.location.prefix)

    def _is_absent(self) -> bool:
        """Whether there is no directory yet: a reader must find nothing, and not make one."""
        return self.location.is_local and not Path(self.location.path).is_dir()

    def create(self, name: str, data: bytes) -> bool:
        """Write an object that does not exist yet; False, and no effect, when it does.

        An error leaves the outcome open, and the library repeats a put that the
        server answered with a failure: put something of the caller's own into
        ``data`` and compare it after an error or an unexpected False.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        self.before_put(name)
        with storage_errors(f"creating {self._shown(name)}"):
            try:
                # One request: a multipart upload cannot be conditional.
                obstore.put(self.store, name, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
        faults.reach("after_put", name)
        return True

    def claim(self, name: str, data: bytes) -> bool:
        """Like `create`, for data that nobody else would write: True whenever it stands there.

        So a repeated claim, and one whose acknowledgement got lost, are won by
        their owner. An error means that the object is not there, or that even
        asking failed.
        """
        try:
            if self.create(name, data):
                return True
        except StorageError:
            found = self.read(name)
            if found is None:
                raise
            return found == data
        return self.read(name) == data

    def replace(self, name: str, data: bytes) -> None:
        """Write an object, whatever was there; readers see the old or the new one, whole."""
        import obstore

        self.before_put(name)
        with storage_errors(f"writing {self._shown(name)}"):
            obstore.put(self.store, name, data, use_multipart=False)
        faults.reach("after_put", name)

    def put_file(self, name: str, path: Path) -> None:
        """Write an object from a local file; a large one in several requests."""
        import obstore

        self.before_put(name)
        with storage_errors(f"writing {self._shown(name)}"):
            obstore.put(self.store, name, path)
        faults.reach("after_put", name)

    def read(self, name: str) -> bytes | None:
        """The content of an object, or None when there is none."""
        import obstore

        self.count("get")
        if self._is_absent():
            return None
        with storage_errors(f"reading {self._shown(name)}"):
            try:
                return bytes(obstore.get(self.store, name).bytes())
            except FileNotFoundError as error:
                if classify(error) != "not_found":
                    raise  # there is no such bucket
                return None

    def read_range(self, name: str, start: int, size: int) -> bytes:
        """Some bytes of an object; a StorageError when there is none."""
        import obstore

        self.count("get")
        with storage_errors(f"reading {self._shown(name)}"):
            return bytes(obstore.get_range(self.store, name, start=start, length=size))

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of an object, piece by piece; a StorageError when there is none."""
        import obstore

        self.count("get")
        with storage_errors(f"reading {self._shown(name)}"):
            for piece in obstore.get(self.store, name).stream(min_chunk_size=PIECE):
                yield bytes(piece)

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none."""
        import obstore

        self.count("delete")
        if self._is_absent():
            return
        with storage_errors(f"deleting {self._shown(name)}"):
            try:
                obstore.delete(self.store, name)
            except FileNotFoundError:
                return

    def list(self, prefix: str = "") -> list[str]:
        """The names of all objects in a directory and below, sorted.

        ``prefix`` counts in whole path segments: ``a`` finds ``a/b``, never ``ab``.
        """
        import obstore

        self.count("list")
        if self._is_absent():
            return []
        with storage_errors(f"listing {self._shown(prefix)}"):
            if self.location.is_local:
                return sorted(_local_objects(Path(self.location.path), prefix))
            return sorted(
                found["path"]
                for chunk in obstore.list(self.store, prefix or None)
                for found in chunk
            )

    def names_in(self, *directories: str) -> Iterator[str]:
        """The names in some directories, of which none lies between two of them by name.

        In order, and no further than the caller reads on: the first names cost one request.
        """
        return (name for name, _ in self.tagged_names_in(*directories))

    def tagged_names_in(self, *directories: str) -> Iterator[tuple[str, str | None]]:
        """The same with what tells an object from another of its name, where listings say it."""
        import obstore

        self.count("list")
        if self.location.is_local:
            with storage_errors(f"listing {self.location}"):
                for directory in directories:
                    for name in sorted(_local_names(Path(self.location.path), directory)):
                        yield name, None
            return
        with storage_errors(f"listing {self.location}"):
            for chunk in obstore.list(self.store, offset=directories[0]):
                for found in chunk:
                    name = found["path"]
                    if name.split("/")[0] > directories[-1]:
                        return
                    if name.split("/")[0] in directories:
                        yield name, found["e_tag"]

    def entries(self, prefix: str = "") -> Sequence[StoredObject]:
        """Like `list`, with the size and the age of each; on a local disk, really every file.

        `list` leaves out what a put that was cut short has left there.
        """
        return sorted(self.walk(prefix), key=lambda entry: entry.name)

    def walk(self, prefix: str = "") -> Iterator[StoredObject]:
        """The same one by one, in no order: nothing is held but by the caller."""
        import obstore

        self.count("list")
        if self._is_absent():
            return
        with storage_errors(f"listing {self._shown(prefix)}"):
            if self.location.is_local:
                yield from _local_entries(self.location.path, prefix)
                return
            for chunk in obstore.list(self.store, prefix or None):
                for entry in chunk:
                    modified = int(entry["last_modified"].timestamp() * 1_000_000)
                    yield StoredObject(entry["path"], entry["size"], modified, entry["e_tag"])

    def delete_all(self, names: Sequence[str]) -> None:
        """Remove many objects in few requests; those that are not there do not matter."""
        import obstore

        if self.location.is_local:
            for name in names:
                self.count("delete")
                # Not by `delete`: it knows no names that a cut short put leaves.
                with storage_errors(f"deleting {self._shown(name)}"), suppress(FileNotFoundError):
                    os.unlink(f"{self.location.path}/{name}")  # noqa: PTH108 - of many files
            return
        for start in range(0, len(names), _BULK):
            self.count("delete")
            with storage_errors(f"deleting {len(names)} objects of {self.location}"):
                obstore.delete(self.store, list(names[start : start + _BULK]))

    def drop_empty(self, prefix: str, *, emptied: Collection[str]) -> None:
        """On a local disk, remove those of the emptied directories in which nothing is.

        And those above them that hold nothing else. Object stores have no directories.
        """
        root = Path(self.location.path)
        if not self.location.is_local or not (root / prefix).is_dir():
            return
        for name in sorted(emptied, key=lambda name: name.count("/"), reverse=True):
            if name.startswith(f"{prefix}/"):
                try:
                    (root / name).rmdir()
                except OSError:
                    continue  # something is in it, or somebody else was faster

    def require_create_only(self) -> None:
        """Probe the location once in the life of a process, before something relies on it."""
        if self.location.uri not in _proven:
            self.probe_create_only()

    def probe_create_only(self) -> None:
        """Refuse a location where a second creator would not be turned away."""
        name = f"{PROBE}/{uuid.uuid4().hex}"
        try:
            kept = self.create(name, b"first") and not self.create(name, b"second")
            kept = kept and self.read(name) == b"first"
        except StorageError as error:
            if error.kind in {"transient", "permanent"}:
                raise  # a server that does not answer, or a full disk, says nothing of the place
            raise StorageError(
                f"{self.location} cannot create objects atomically: {error}", kind="configuration"
            ) from error
        finally:
            self._remove_probe(name)
        if not kept:
            raise StorageError(
                f"{self.location} cannot be used: it lets a second writer replace an object "
                "that was to be created only once",
                kind="configuration",
            )
        _proven.add(self.location.uri)

    def _remove_probe(self, name: str) -> None:
        try:
            self.delete(name)
        except StorageError:
            return  # the probe itself has the better message
        if self.location.is_local:
            try:
                Path(self.location.path, PROBE).rmdir()
            except OSError:
                return  # another probe is running

    def count(self, operation: meter.Operation) -> None:
        """Count a request that is about to be made; every one passes here."""
        require_usable()
        meter.count(operation)

    def before_put(self, name: str) -> None:
        """Count a put, and pass the point before it."""
        self.count("put")
        faults.reach("before_put", name)

    def _shown(self, name: str) -> str:
        return f"{self.location}/{name}"


def _local_names(root: Path, directory: str) -> list[str]:
    try:
        with os.scandir(root / directory) as found:
            return [f"{directory}/{entry.name}" for entry in found]
    except FileNotFoundError:
        return []


def _local_objects(root: Path, prefix: str) -> Iterator[str]:
    """The names of all files but those that a put which was cut short has left."""
    for directory, _, names in os.walk(root / prefix):
        path = Path(directory).relative_to(root).as_posix()
        above = "" if path == "." else f"{path}/"
        yield from (f"{above}{name}" for name in names if not _CUT_SHORT.search(name))


def _local_entries(root: str, prefix: str) -> Iterator[StoredObject]:
    """Every file below a directory; by system calls alone, since there may be a million."""
    waiting = [prefix]
    while waiting:
        directory = waiting.pop()
        above = f"{directory}/" if directory else ""
        try:
            with os.scandir(f"{root}/{directory}") as found:
                for entry in found:
                    if entry.is_dir():
                        if not entry.is_symlink():
                            waiting.append(f"{above}{entry.name}")
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # gone since it was listed
                    modified = status.st_mtime_ns // 1_000
                    yield StoredObject(f"{above}{entry.name}", status.st_size, modified)
        except (FileNotFoundError, NotADirectoryError):
            continue


def keep_reserve(objects: ControlObjects) -> None:
    """Make the reserve, unless it is there or there is no space for it."""
    if not objects.location.is_local or objects.read(NAME) is not None:
        return
    try:
        # Not zeros, which some file systems store without taking any space.
        objects.replace(NAME, bytes(range(256)) * (SIZE // 256))
    except StorageError:
        return


def give_back_reserve(objects: ControlObjects) -> bool:
    """Make room by removing the reserve; False when there is none."""
    if not objects.location.is_local or objects.read(NAME) is None:
        return False
    objects.delete(NAME)
    return True


def is_out_of_space(error: StorageError) -> bool:
    """Whether a disk is full."""
    return "no space left" in error.message.lower()
