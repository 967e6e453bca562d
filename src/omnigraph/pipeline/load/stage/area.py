"""The staging area: files that the tasks of one load leave for each other.

Owns a directory below the graph root, named after the operation, where every executor can reach
it, and files that are written piece by piece. Nothing in it outlives the load; what a dead one
left is discarded by the sweep.
"""

from __future__ import annotations

import io
import os
import pickle
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ulid import ULID

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.files import new_object
from omnigraph.storage.objects.location import Location
from omnigraph.write.recovery.intents import STAGING

_GROUP_ROWS = 131_072
_GROUP_BYTES = 32 << 20
# What a sliced file says first of each slice: where it begins.
_ENTRY = 8
# So many slices of a store's files are fetched at once.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The files of one operation."""

    root: Location
    operation_id: str

    @property
    def location(self) -> Location:
        """The directory."""
        return self.root.join(STAGING, self.operation_id)

    def write_table(self, stem: str, table: pa.Table) -> str:
        """Keep a table; returns the name of its file, which no other attempt has."""
        name = f"{stem}-{ULID()}.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self._put(name, sink.getvalue())
        return name

    def write_bytes(self, stem: str, data: bytes) -> str:
        """Keep bytes; returns the name of their file."""
        name = f"{stem}-{ULID()}"
        self._put(name, pa.py_buffer(data))
        return name

    def keep(self, stem: str, value: object) -> str:
        """Keep anything that several tasks need; returns the name of its file."""
        return self.write_bytes(stem, pickle.dumps(value))

    def kept(self, name: str) -> Any:
        """What was kept under a name; a process reads it once."""
        return _kept(self, name)

    def write_slices(self, stem: str, slices: Sequence[pa.RecordBatch]) -> str:
        """Keep batches of one schema so that each can be read without the others."""
        bodies = [batch.serialize() if batch.num_rows else pa.py_buffer(b"") for batch in slices]
        starts = np.cumsum([_ENTRY * (len(bodies) + 1), *(body.size for body in bodies)])
        sink = pa.BufferOutputStream()
        sink.write(starts.astype("<u8").tobytes())
        for body in bodies:
            sink.write(body)
        name = f"{stem}-{ULID()}"
        self._put(name, sink.getvalue())
        return name

    def read_slice(self, name: str, number: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """One of the batches; None if it has no rows."""
        start, end = np.frombuffer(self._read(name, _ENTRY * number, 2 * _ENTRY), "<u8").tolist()
        if start == end:
            return None
        body = pa.py_buffer(self._read(name, start, end - start))
        return pa.ipc.read_record_batch(pa.ipc.read_message(body), schema)

    def read_slices(
        self, names: Sequence[str], number: int, schema: pa.Schema
    ) -> list[pa.RecordBatch | None]:
        """The same slice of several files; of a store, several at a time."""
        if self.location.is_local or len(names) < 2:
            return [self.read_slice(name, number, schema) for name in names]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda name: self.read_slice(name, number, schema), names))

    def read_bytes(self, name: str) -> bytes:
        """Bytes that were kept."""
        if self.location.is_local:
            return Path(self.location.path, name).read_bytes()
        data = ControlObjects(self.location).read(name)
        if data is None:
            raise FileNotFoundError(f"{self.path(name)} is gone")
        return data

    def read_table(self, name: str) -> pa.Table:
        """A table, mapped into memory where its file is local."""
        if self.location.is_local:
            file = pa.memory_map(str(Path(self.location.path, name)))
            return pa.ipc.open_file(file).read_all()
        return pa.ipc.open_file(pa.py_buffer(self.read_bytes(name))).read_all()

    def path(self, name: str) -> Location:
        """Where a file of the area lies."""
        return self.location.join(name)

    def remove(self) -> None:
        """Delete everything."""
        if self.location.is_local:
            place = Path(self.location.path)
            shutil.rmtree(place, ignore_errors=True)
            # Others may be at work beside it.
            with suppress(OSError):
                place.parent.rmdir()
            return
        objects = ControlObjects(self.location)
        objects.delete_all(objects.list())

    def _put(self, name: str, data: pa.Buffer) -> None:
        if self.location.is_local:
            directory = Path(self.location.path)
            with suppress(FileNotFoundError):  # another load has just removed the parent
                directory.mkdir(parents=True, exist_ok=True)
            directory.mkdir(parents=True, exist_ok=True)
            # Whole or not at all: the name is told only after this.
            directory.joinpath(name).write_bytes(data)
        else:
            ControlObjects(self.location).replace(name, data.to_pybytes())

    def _read(self, name: str, start: int, size: int) -> bytes:
        """Some bytes of a file."""
        if not self.location.is_local:
            return ControlObjects(self.location).read_range(name, start, size)
        with Path(self.location.path, name).open("rb", buffering=0) as file:
            return os.pread(file.fileno(), size, start)


@lru_cache(maxsize=64)
def _kept(area: StagingArea, name: str) -> Any:
    # Written by the driver of the load a moment ago.
    return pickle.loads(area.read_bytes(name))  # noqa: S301 - see above


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


def write_batches(sink: Sink, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches of one schema."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    # Read once and deleted: what helps later readers is not worth its time.
    with pq.ParquetWriter(
        cast("BinaryIO", sink), schema, use_dictionary=False, write_statistics=False
    ) as writer:
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema), 2 * _GROUP_ROWS)
                held, rows, size = [], 0, 0
        if rows:
            writer.write_table(pa.Table.from_batches(held, schema), 2 * _GROUP_ROWS)
