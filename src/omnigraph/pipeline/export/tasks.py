"""Export tasks: one part of a table written to one file.

Owns how rows become lines or a Parquet file. The types of the columns are ones that a load
reads back without loss. Works batch by batch; runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.pipeline.export.directory import open_sink
from omnigraph.pipeline.source.reading import TablePart, converted
from omnigraph.pipeline.source.selection import SourceColumn, TypeSelection, columns_of
from omnigraph.read.output.export import Export
from omnigraph.read.output.json_text import within_bytes
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.sorted_scan import sorted_batches

Format = Literal["jsonl", "parquet"]

_GROUP_ROWS = 131_072
_GROUP_BYTES = 64 << 20
# Parquet has no lists of one length.
_PARQUET: Mapping[Scalar, pa.DataType] = {
    **SCALARS,
    Scalar.BLOB: pa.large_binary(),
    Scalar.VECTOR: pa.list_(pa.field("element", pa.float32())),
}


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part to write, as what, and where."""

    type: NodeType | EdgeType
    part: TablePart
    format: Format
    place: Location


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """How much one file has."""

    rows: int
    bytes: int


def write_part(job: PartJob) -> WrittenPart:
    """Write one file, ordered by id."""
    write = _write_lines if job.format == "jsonl" else _write_parquet
    with open_sink(job.place) as sink:
        rows = write(job, sink)
        return WrittenPart(rows, sink.tell())


def _write_lines(job: PartJob, sink: BinaryIO) -> int:
    rows = 0
    for chunk in Export([(job.type, job.part)]).chunks():
        sink.write(chunk.data)
        rows += chunk.rows
    return rows


# -- Parquet -----------------------------------------------------------------------


def _write_parquet(job: PartJob, sink: BinaryIO) -> int:
    selection = TypeSelection(job.part, job.type.name, columns_of(job.type, job.part))
    schema = _parquet_schema(selection.columns)
    rows = 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _row_groups(_batches(selection, schema)):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
    return rows


def _batches(selection: TypeSelection, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    stored = [column.name for column in selection.columns if column.is_stored]
    blobs = selection.blobs
    for batch in sorted_batches(selection.table, stored, with_row_address=bool(blobs)):
        for rows in within_bytes(batch, blobs):
            yield converted(selection, rows, schema)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Neighbouring batches together: readers of Parquet want groups of some size."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > _GROUP_ROWS or size + batch.nbytes > _GROUP_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _parquet_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    return pa.schema(
        [pa.field(one.name, _parquet_type(one.type), nullable=one.nullable) for one in columns]
    )


def _parquet_type(type_: ValueType) -> pa.DataType:
    scalar = _PARQUET[type_.scalar]
    return pa.list_(pa.field("element", scalar)) if type_.is_list else scalar
