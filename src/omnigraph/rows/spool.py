"""Spools: rows that are kept until they are needed, in memory while they are few.

Owns moving them to an anonymous temporary file when they are many. Gives them back in
the order they came, as often as asked.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import IO

import pyarrow as pa

from omnigraph.errors import StorageError

HELD_BYTES = 64 << 20


class Spool:
    """Rows of one schema in the order they were added."""

    def __init__(
        self, schema: pa.Schema, *, directory: str | None = None, held_bytes: int = HELD_BYTES
    ) -> None:
        self.schema = schema
        self.rows = 0
        self.size = 0
        """Bytes, as they lie in memory."""
        self._directory = directory
        self._held_bytes = held_bytes
        self._held: list[pa.Table] = []
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, rows: pa.Table) -> None:
        """Keep some more rows."""
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        self.size += rows.nbytes
        self._held.append(rows)
        self._in_memory += rows.nbytes
        if self._in_memory > self._held_bytes:
            self._spill()

    def tables(self) -> Iterator[pa.Table]:
        """The rows, piece by piece; nothing is added meanwhile."""
        if self._file is not None and self._writer is not None:
            self._spill()
            self._writer.close()
            self._writer = None
        if self._file is not None:
            self._file.seek(0)
            with pa.ipc.open_stream(self._file) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        yield from self._held

    def _spill(self) -> None:
        try:
            if self._file is None:
                # It has no name: it goes when this does, come what may.
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - see above
                weakref.finalize(self, self._file.close)
                self._writer = pa.ipc.new_stream(self._file, self.schema)
            if self._writer is None:
                raise AssertionError("rows are added to a spool that was read")
            for rows in self._held:
                self._writer.write_table(rows.cast(self.schema))
            self._file.flush()
        except OSError as error:
            raise StorageError(
                f"there is no room for temporary files ({error.strerror or error}): let TMPDIR "
                "name a directory with more of it",
                kind="configuration",
            ) from error
        self._held.clear()
        self._in_memory = 0
