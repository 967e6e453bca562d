"""Several streams of rows in the order of their ids, read side by side.

Owns cutting them so that each step holds the rows of one range of ids of every stream,
a bounded number at a time. Never compares anything but ids.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from omnigraph.rows.external_sort import KEY


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
