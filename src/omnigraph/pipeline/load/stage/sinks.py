"""Sinks: new files of a staging area, written piece by piece.

Owns tables as files, too: batches of rows as Parquet that nobody keeps for long.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from ulid import ULID

from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.files import new_object

_GROUP_ROWS = 131_072
_GROUP_BYTES = 32 << 20


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
