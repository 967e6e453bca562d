"""Export directories: files written under a hidden name, and shown when all are complete.

Owns where parts are written, how they get their names, and the marker that comes last.
Never touches a directory that has something in it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self
from uuid import uuid4

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.input_files import children, find
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.files import bucket_store, new_object, replaced_file, sync_directory
from omnigraph.storage.objects.location import Location

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
            sync_directory(target.parent)

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
            obstore.rename(bucket_store(wanted.source), wanted.source.prefix, wanted.target.prefix)
        except FileNotFoundError:
            if find(wanted.target.uri) is None:
                raise


@contextmanager
def open_sink(location: Location) -> Iterator[BinaryIO]:
    """A new file at a place, which has it when the block ends well and not before."""
    with storage_errors(f"writing {location}"), _opened(location) as sink:
        yield sink


def _opened(location: Location) -> AbstractContextManager[BinaryIO]:
    if not location.is_local:
        return new_object(location)
    place = Path(location.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return replaced_file(place)
