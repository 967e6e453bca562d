"""An object that is replaced only by whoever has seen what it holds: compare-and-swap.

Owns the two ways to it: an entity tag on S3, a lock of the system on a local disk. Refuses a
place that keeps neither. For objects that change rarely: what changes often is a log.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.storage.objects import faults
from omnigraph.storage.objects.control_objects import PROBE, ControlObjects
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.files import replaced_file

_proven: set[str] = set()


@dataclass(frozen=True, slots=True)
class Seen:
    """What an object held when it was read; ``tag`` is what a store calls that state."""

    data: bytes
    tag: str | None = None


class SwappedObject:
    """One object that is only ever swapped."""

    def __init__(self, objects: ControlObjects, name: str) -> None:
        self._objects = objects
        self._name = name

    def read(self) -> Seen | None:
        """What it holds, or None when there is none."""
        if self._objects.location.is_local:
            data = self._objects.read(self._name)
            return None if data is None else Seen(data)
        return _read_tagged(self._objects, self._name)

    def swap(self, seen: Seen | None, data: bytes) -> bool:
        """Make it hold something else, if it holds what was seen; False, and no effect, if not.

        Whoever finds there what they wanted to write has written it: an answer that was lost is
        no defeat.
        """
        if self._objects.location.is_local:
            return self._swap_file(seen, data)
        _require_tags(self._objects)
        try:
            if _put_tagged(self._objects, self._name, seen, data):
                return True
        except StorageError:
            found = self.read()
            if found is None or found.data != data:
                raise
            return True
        found = self.read()
        return found is not None and found.data == data

    def _swap_file(self, seen: Seen | None, data: bytes) -> bool:
        path = Path(self._objects.location.path, self._name)
        with storage_errors(f"writing {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _held(path.with_name(f".{path.name}.turn")):
            found = self.read()
            if (None if found is None else found.data) != (None if seen is None else seen.data):
                return False
            faults.reach("before_put", self._name)
            with storage_errors(f"writing {path}"), replaced_file(path) as file:
                file.write(data)
            faults.reach("after_put", self._name)
        return True


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Be the only one on this disk; the system lets go of it when a process dies."""
    import fcntl

    with storage_errors(f"locking {path}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with storage_errors(f"locking {path}"):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_tagged(objects: ControlObjects, name: str) -> Seen | None:
    import obstore

    objects.count("get")
    with storage_errors(f"reading {objects.location}/{name}"):
        try:
            found = obstore.get(objects.store, name)
        except FileNotFoundError as error:
            if classify(error) != "not_found":
                raise  # there is no such bucket
            return None
        return Seen(bytes(found.bytes()), found.meta["e_tag"])


def _put_tagged(objects: ControlObjects, name: str, seen: Seen | None, data: bytes) -> bool:
    """Put it where it is what was seen; False when it is not."""
    import obstore
    from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

    objects.before_put(name)
    with storage_errors(f"writing {objects.location}/{name}"):
        try:
            if seen is None:
                obstore.put(objects.store, name, data, mode="create", use_multipart=False)
            else:
                tag = {"e_tag": seen.tag}
                obstore.put(objects.store, name, data, mode=tag, use_multipart=False)  # type: ignore[arg-type]  # a dict is how an update by tag is asked for
        except (AlreadyExistsError, PreconditionError, NotFoundError):
            return False
    faults.reach("after_put", name)
    return True


def _require_tags(objects: ControlObjects) -> None:
    """Refuse a store that replaces an object whatever tag was seen; asked once in a process."""
    place = objects.location.uri
    if place in _proven:
        return
    name = f"{PROBE}/{uuid.uuid4().hex}"
    try:
        kept = _put_tagged(objects, name, None, b"first")
        seen = _read_tagged(objects, name)
        kept = kept and _put_tagged(objects, name, seen, b"second")
        kept = kept and not _put_tagged(objects, name, seen, b"third")
    finally:
        objects.delete(name)
    if not kept:
        raise StorageError(
            f"{place} cannot hold the state of a cluster: it lets somebody replace an object "
            "that another has replaced meanwhile (If-Match is not kept)",
            kind="configuration",
        )
    _proven.add(place)
