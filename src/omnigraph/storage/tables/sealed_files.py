"""Sealed files: data files whose names carry a checksum of what was written into them.

Owns the names. A checksum in a name is there as long as anything refers to the file, whichever
commit wrote it and whatever was reclaimed since; it makes a version no larger, costs a write
the same with one fragment as with many, and is known without asking anything of storage.

- On a local disk a file is written, read back from memory, where the system still has it, and
  renamed: no request, and nobody knows of it before.
- On an object store it is written to the local disk first and then put under its name: as many
  requests as if it were written there directly.

A name has a random part besides: a file that a collection has listed is never written again.
What was written otherwise has no checksum, and nobody can tell whether it has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import SPOOL

if TYPE_CHECKING:
    import lance
    import pyarrow as pa
    from lance.fragment import FragmentMetadata

DIGITS = 16
PIECE = 2**20
SPOOLS = 64
"""So many tables on object stores have a place on the local disk at a time."""
_SEALED = re.compile(r"data/[0-9a-f]{32}-([0-9a-f]{16})\.lance")
_DELETIONS = re.compile(r"_deletions/[0-9]+-[0-9]+-([0-9]+)\.(?:arrow|bin)")
# The number of a deletion file: a mark, something random, and the checksum.
_MARK, _RANDOM, _CHECK = 0x5EA1, 24, 24
_BITS = (1 << _CHECK) - 1


def write_sealed(
    data: pa.Table | pa.RecordBatchReader,
    dataset: lance.LanceDataset,
    location: Location,
    **options: Any,
) -> list[FragmentMetadata]:
    """Write rows into sealed files of a table; no version refers to the fragments yet."""
    from lance.fragment import write_fragments

    if location.is_local:
        written: list[FragmentMetadata] = write_fragments(data, dataset, mode="append", **options)
        for part in written:
            _seal_files(f"{location.path}/data", part)
        return written
    # The directory is there as long as somebody holds it.
    spool, directory = _spool(location.uri, _Columns(dataset))
    place = f"{directory.name}/data"
    written = write_fragments(data, spool, mode="append", **options)
    for part in written:
        _seal_files(place, part)
        _put(location, Path(place), part)
    return written


def write_sealed_file(location: Location, write: Callable[[str], None]) -> tuple[str, int]:
    """Have one data file of a table written, sealed: its name below `data`, and its size."""
    name = f"{uuid.uuid4().hex}.lance"
    if location.is_local:
        place = Path(location.path, "data")
        place.mkdir(exist_ok=True)
        write(str(place / name))
        sealed = _seal(str(place), name)
        return sealed, _size(place, sealed)
    with TemporaryDirectory(prefix="omnigraph-") as directory:
        place = Path(directory)
        write(f"{SPOOL}://{place / name}")
        sealed = _seal(directory, name)
        ControlObjects(location).put_file(f"data/{sealed}", place / sealed)
        return sealed, _size(place, sealed)


def _size(place: Path, name: str) -> int:
    return (place / name).stat().st_size


def _seal_files(place: str, fragment: FragmentMetadata) -> None:
    for file in fragment.files:
        # Its public name makes a class whenever it is asked for.
        file._path = _seal(place, file._path)  # noqa: SLF001


def _seal(place: str, name: str) -> str:
    """Give a file, and the blobs beside it, the name with its checksum."""
    # Paths are plain texts here: this is done on every write, twice.
    path, blobs = f"{place}/{name}", f"{place}/{name.removesuffix('.lance')}"
    sums = hashlib.sha256()
    _add(sums, path)
    has_blobs = os.path.isdir(blobs)  # noqa: PTH112
    if has_blobs:
        for blob in sorted(os.listdir(blobs)):  # noqa: PTH208
            _add(sums, f"{blobs}/{blob}")
    sealed = f"{os.urandom(16).hex()}-{sums.hexdigest()[:DIGITS]}"
    if has_blobs:
        os.rename(blobs, f"{place}/{sealed}")  # noqa: PTH104
    os.rename(path, f"{place}/{sealed}.lance")  # noqa: PTH104
    return f"{sealed}.lance"


def _add(sums: Any, path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        while piece := os.read(file, PIECE):
            sums.update(piece)
            if len(piece) < PIECE:
                break
    finally:
        os.close(file)


# -- by way of the local disk ------------------------------------------------------------


class _Columns:
    """What tells the columns of a version of a table from those of another."""

    def __init__(self, dataset: lance.LanceDataset) -> None:
        self.dataset = dataset
        self._known = dataset.max_field_id, tuple(dataset.schema.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Columns) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known)


class _Place:
    """A directory on the local disk that is there until nobody holds it any more."""

    def __init__(self) -> None:
        self.name = mkdtemp(prefix="omnigraph-")
        finalize(self, rmtree, self.name, ignore_errors=True)


@lru_cache(maxsize=SPOOLS)
def _spool(
    uri: str,  # noqa: ARG001 - tells tables apart
    columns: _Columns,
) -> tuple[lance.LanceDataset, _Place]:
    """An empty local table with the columns of a remote one, under the same numbers."""
    from lance import LanceOperation
    from lance.dataset import LanceDataset

    directory = _Place()
    made = LanceDataset.commit(
        f"{SPOOL}://{directory.name}",
        LanceOperation.Overwrite(columns.dataset.lance_schema, []),
        enable_stable_row_ids=True,
    )
    columns.dataset = made
    return made, directory


def _put(location: Location, place: Path, fragment: FragmentMetadata) -> None:
    """Move the files of a fragment to where they belong."""
    objects = ControlObjects(location)
    for file in fragment.files:
        name = str(file.path)
        stem = name.removesuffix(".lance")
        blobs = sorted((place / stem).iterdir()) if (place / stem).is_dir() else []
        for path in [*blobs, place / name]:
            objects.put_file(f"data/{path.relative_to(place).as_posix()}", path)
            path.unlink()
        with suppress(FileNotFoundError):
            (place / stem).rmdir()


# -- deletion files ----------------------------------------------------------------------


def seal_deletions(location: Location, fragment: FragmentMetadata) -> FragmentMetadata:
    """A fragment whose deletion file, just written, has its checksum in its number.

    On an object store that would take a request more: there it stays as it is.
    """
    from lance.fragment import FragmentMetadata

    written = fragment.deletion_file
    if not location.is_local or written is None:
        return fragment
    body = fragment.to_json()
    path = Path(location.path, written.path(fragment.id))
    sums = hashlib.sha256()
    _add(sums, str(path))
    check = int(sums.hexdigest(), 16) & _BITS
    number = ((_MARK << _RANDOM) + secrets.randbits(_RANDOM) << _CHECK) + check
    body["deletion_file"]["id"] = number
    sealed = FragmentMetadata.from_json(json.dumps(body))
    if sealed.deletion_file is None:
        raise AssertionError("a fragment keeps its deletion file")
    path.rename(Path(location.path, sealed.deletion_file.path(fragment.id)))
    return sealed


# -- versions ----------------------------------------------------------------------------


def checksum_of_version(dataset: lance.LanceDataset) -> str:
    """A checksum of what an opened version says that it is made of, from memory.

    Lance writes members of a map in any order: only how often each byte occurs is the same each
    time, and no changed bit leaves that as it is.
    """
    import numpy as np

    written = dataset._ds.serialized_manifest()  # noqa: SLF001 - by no other name
    counts = np.bincount(np.frombuffer(written, np.uint8), minlength=256)
    return hashlib.sha256(counts.astype("<u8").tobytes()).hexdigest()[:DIGITS]


# -- looking -----------------------------------------------------------------------------


def has_checksum(name: str) -> bool:
    """Whether a file of a table, by its name below the table's directory, carries a checksum."""
    return _recorded(name) is not None


def is_as_written(objects: ControlObjects, name: str, beside: Iterable[str] = ()) -> bool:
    """Whether a file that carries a checksum, with the blobs beside it, is what was written."""
    sums = hashlib.sha256()
    for one in [name, *sorted(beside)]:
        for piece in objects.pieces(one):
            sums.update(piece)
    recorded = _recorded(name)
    if isinstance(recorded, int):
        return int(sums.hexdigest(), 16) & _BITS == recorded
    return sums.hexdigest()[:DIGITS] == recorded


def _recorded(name: str) -> str | int | None:
    if found := _SEALED.fullmatch(name):
        return found[1]
    if found := _DELETIONS.fullmatch(name):
        number = int(found[1])
        if number >> (_RANDOM + _CHECK) == _MARK:
            return number & _BITS
    return None
