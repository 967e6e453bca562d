"""Rows in bounded memory: in the order of their ids, side by side, and put aside on disk.

Owns the sort (runs that fit in memory, spilled to anonymous temporary files, and their merge),
reading several such streams side by side, one range of ids at a time, and spools, whose rows
come back as they were added. Knows columns by name only, and never looks at what they mean.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID

KEY = ID

HELD_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class SortLimits:
    """How much is held at a time; tests make them tiny."""

    run_rows: int = 131_072
    run_bytes: int = 64 << 20
    fan_in: int = 64
    """How many runs of one size are merged into a larger one."""
    batch_rows: int = 16_384
    batch_bytes: int = 4 << 20
    """About how large a batch is, in a scan, in a spilled run and in the result."""
    spilled_bytes: int = 512 << 10
    """How much of every run is held while they are merged."""
    directory: str | None = None
    """Where temporary files go; None for where this machine has them."""


DEFAULT_LIMITS = SortLimits()


def in_order(
    batches: Iterator[pa.RecordBatch], limits: SortLimits = DEFAULT_LIMITS
) -> Iterator[pa.RecordBatch]:
    """The rows of some batches by `@id` ascending, byte by byte."""
    spilled = _Spilled(limits)
    for run, is_last in _sorted_runs(batches, limits):
        if is_last and spilled.is_empty:
            yield from _cut(run, limits.batch_rows, limits.batch_bytes)
            return
        spilled.add(run)
    for rows in _merge(spilled.runs()):
        yield from _cut(rows, limits.batch_rows, limits.batch_bytes)


# -- runs --------------------------------------------------------------------------


def _sorted_runs(
    batches: Iterator[pa.RecordBatch], limits: SortLimits
) -> Iterator[tuple[pa.Table, bool]]:
    """Neighbouring batches, as many as the limits allow, sorted; and whether they are the last."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        size += batch.nbytes
        if held and (rows > limits.run_rows or size > limits.run_bytes):
            run = _sorted(held)
            held, rows, size = [], batch.num_rows, batch.nbytes
            yield run, False
        if batch.num_rows:
            held.append(batch)
    if held:
        yield _sorted(held), True


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    keys = rows.column(KEY)
    # Loads of sorted data are common, and checking is much cheaper than sorting.
    if pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py():
        return rows
    return rows.take(pc.sort_indices(keys))


def _cut(rows: pa.Table, max_rows: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of about this size at most, judged by the average row."""
    wanted = max(1, min(max_rows, rows.num_rows * max_bytes // max(rows.nbytes, 1)))
    for start in range(0, rows.num_rows, wanted):
        yield from _one_batch(rows.slice(start, wanted))


def _one_batch(rows: pa.Table) -> list[pa.RecordBatch]:
    """One batch, or several where one array cannot hold all the text."""
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
    return batches


# -- spilling ----------------------------------------------------------------------


class _Run:
    """Sorted rows in a temporary file without a name: it goes when this does, come what may."""

    def __init__(self, tables: Iterable[pa.Table], limits: SortLimits) -> None:
        rest = iter(tables)
        first = next(rest)
        try:
            with tempfile.TemporaryFile(dir=limits.directory) as file:
                with pa.ipc.new_file(file, first.schema) as writer:
                    for rows in chain([first], rest):
                        for batch in _cut(rows, limits.batch_rows, limits.spilled_bytes):
                            writer.write_batch(batch)
                file.flush()
                self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise StorageError(
                f"sorting needs room for temporary files ({error.strerror or error}): "
                "let TMPDIR name a directory with more of it",
                kind="configuration",
            ) from error
        self._reader = pa.ipc.open_file(pa.py_buffer(self._mapped))
        self.size: int = self._reader.num_record_batches

    def batch(self, number: int) -> pa.RecordBatch:
        """One batch; what was read before counts no longer as memory of this process."""
        self._mapped.madvise(mmap.MADV_DONTNEED)
        return self._reader.get_batch(number)


class _Spilled:
    """The runs on disk; as soon as there are many of about one size, they become one.

    So the number of open files stays small, and a row is rewritten once per level.
    """

    def __init__(self, limits: SortLimits) -> None:
        self._limits = limits
        self._levels: list[list[_Run]] = []

    @property
    def is_empty(self) -> bool:
        return not self._levels

    def add(self, rows: pa.Table) -> None:
        """Spill one more run."""
        run = _Run([rows], self._limits)
        for level in self._levels:
            level.append(run)
            if len(level) < self._limits.fan_in:
                return
            run = _Run(_merge(level), self._limits)
            level.clear()
        self._levels.append([run])

    def runs(self) -> list[_Run]:
        """All of them; nothing is added any more."""
        return list(chain.from_iterable(self._levels))


# -- merging -----------------------------------------------------------------------


class _Head:
    """The batch of one run that is being merged, and how far."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._next = 0
        self.advance()

    def advance(self) -> bool:
        """Go on to the next batch; False at the end."""
        if self._next == self._run.size:
            return False
        self._batch = self._run.batch(self._next)
        self._keys = self._batch.column(KEY)
        self._next += 1
        self._start: int = 0
        self.last: str = self._keys[-1].as_py()
        return True

    @property
    def is_used_up(self) -> bool:
        return self._start == len(self._keys)

    def take_until(self, boundary: str) -> pa.RecordBatch:
        """The rows not taken yet whose key is at most the boundary."""
        start = self._start
        # Python compares texts by code point, which is the order of their UTF-8 bytes.
        self._start = bisect_right(self._keys, boundary, lo=start, key=pa.StringScalar.as_py)
        return self._batch.slice(start, self._start - start)


def _merge(runs: Sequence[_Run]) -> Iterator[pa.Table]:
    """All rows in order: what is at most the smallest last key cannot be preceded any more."""
    heads = [_Head(run) for run in runs]
    while heads:
        boundary = min(head.last for head in heads)
        taken = [head.take_until(boundary) for head in heads]
        yield _sorted([batch for batch in taken if batch.num_rows])
        heads = [head for head in heads if not head.is_used_up or head.advance()]


class _Stream:
    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self._schema = schema
        self._held: pa.RecordBatch | None = None
        self.advance()

    def advance(self) -> None:
        """Hold the next rows, if all that was held is taken."""
        while self._held is None or not self._held.num_rows:
            self._held = next(self._batches, None)
            if self._held is None:
                return

    @property
    def last(self) -> str | None:
        """The last id that is held; None at the end of the stream."""
        if self._held is None:
            return None
        last: str = self._held.column(KEY)[-1].as_py()
        return last

    def take_until(self, boundary: str) -> pa.Table:
        """What is held of ids up to the boundary."""
        if self._held is None:
            return self._schema.empty_table()
        keys = self._held.column(KEY)
        # Python compares texts by code point, which is the order of their UTF-8 bytes.
        end = bisect_right(keys, boundary, key=pa.StringScalar.as_py)
        taken = self._held.slice(0, end)
        self._held = self._held.slice(end)
        self.advance()
        return pa.Table.from_batches([taken], self._schema)


def merge_join(
    streams: Sequence[tuple[Iterator[pa.RecordBatch], pa.Schema]],
) -> Iterator[tuple[pa.Table, ...]]:
    """For one range of ids after the other, the rows of every stream; ids ascend.

    Every stream is in order and has each id once.
    """
    # The first rows of a stream are known when all of it is sorted: they are opened together.
    with ThreadPoolExecutor(len(streams)) as pool:
        opened = list(pool.map(lambda stream: _Stream(*stream), streams))
    while True:
        lasts = [stream.last for stream in opened]
        known = [last for last in lasts if last is not None]
        if not known:
            return
        boundary = min(known)
        yield tuple(stream.take_until(boundary) for stream in opened)


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
