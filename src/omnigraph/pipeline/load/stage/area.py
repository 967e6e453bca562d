"""The staging area: files that the tasks of one load leave for each other.

Owns a directory below the graph root, named after the operation, where every executor can
reach it. Nothing in it outlives the load; what a dead one left is discarded by the sweep.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from ulid import ULID

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.recovery.intents import STAGING


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

    def write_array(self, stem: str, array: npt.NDArray[np.uint64]) -> str:
        """Keep an array; returns the name of its file."""
        name = f"{stem}-{ULID()}.npy"
        self._put(name, pa.py_buffer(array.tobytes()))
        return name

    def write_bytes(self, stem: str, data: bytes) -> str:
        """Keep bytes; returns the name of their file."""
        name = f"{stem}-{ULID()}"
        self._put(name, pa.py_buffer(data))
        return name

    def read_bytes(self, name: str) -> bytes:
        """Bytes that were kept."""
        return self._local(name).read_bytes()

    def read_table(self, name: str) -> pa.Table:
        """A table, mapped into memory where its file is local."""
        return pa.ipc.open_file(pa.memory_map(str(self._local(name)))).read_all()

    def read_array(self, name: str) -> npt.NDArray[np.uint64]:
        """An array, mapped into memory."""
        return np.memmap(self._local(name), dtype=np.uint64, mode="r")

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
        for name in objects.list():
            objects.delete(name)

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

    def _local(self, name: str) -> Path:
        if self.location.is_local:
            return Path(self.location.path) / name
        return _downloaded(self, name)


@lru_cache(maxsize=64)
def _downloaded(area: StagingArea, name: str) -> Path:
    """A copy on this machine's disk, made once by each process."""
    data = ControlObjects(area.location).read(name)
    if data is None:
        raise FileNotFoundError(f"{area.path(name)} is gone")
    with tempfile.NamedTemporaryFile(prefix="omnigraph-", suffix=name, delete=False) as file:
        file.write(data)
    return Path(file.name)
