"""Tables as files: batches of rows written as Parquet that nobody keeps for long.

Owns the size of row groups, which are what a file is cut into later. Never holds more than
one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.pipeline.load.stage.sinks import Sink

_GROUP_ROWS = 131_072
_GROUP_BYTES = 32 << 20


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
