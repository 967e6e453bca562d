"""What was given: files that exist, and frames and lines, written down in the staging area first.

Owns telling them apart, in the words of a load in this process, and what is loaded from memory
or from a plan of Spark's. What was written is read by the tasks like any other input, so that
there is one way for all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import INTEGERS, Scalar
from omnigraph.pipeline.input.load_files import InputFile, find_inputs
from omnigraph.pipeline.load.stage.area import StagingArea, new_file, write_batches
from omnigraph.pipeline.load.stage.spark_frames import KeyedEnd, is_spark_frame, write_spark_frame
from omnigraph.write.change.change_set import EntityType, type_key
from omnigraph.write.load.columns.frames import as_table, frame_types
from omnigraph.write.load.columns.keyed_ends import EndNodes, end_nodes
from omnigraph.write.load.columns.texts import require_readable_names
from omnigraph.write.load.csv_options import CsvOptions
from omnigraph.write.load.input import (
    PathInput,
    RecordInput,
    TextInput,
    classify,
    is_frame,
    names_files,
    require_names,
)
from omnigraph.write.load.streams import whole_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Beyond this a float is not the integer that somebody wrote.
_EXACT = 2**53
_LISTS = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list)


class UnstagedInput(Protocol):
    """Input that has to be written down before it can be loaded."""

    def write(self, area: StagingArea) -> Iterable[InputFile]:
        """Write it to the staging area, in its order."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of one type; ``label`` is what a person knows them by.

    ``ends`` has the ends of edges that are made of key columns, for a frame of Spark's; ``nodes``
    are the types that columns of ends name.
    """

    type: EntityType
    label: str
    rows: object
    ends: Mapping[str, KeyedEnd] = field(default_factory=dict)
    nodes: EndNodes = field(default_factory=dict)

    def write(self, area: StagingArea) -> Iterable[InputFile]:
        """Parquet: one file, or one for each part of a frame of Spark's."""
        if is_spark_frame(self.rows):
            rows = cast("DataFrame", self.rows)
            yield from write_spark_frame(
                rows, self.type, self.label, self.ends, area, nodes=self.nodes
            )
            return
        reader = _reader(self.type, self.label, self.rows)
        with new_file(area, "frame", ".parquet") as sink:
            try:
                write_batches(sink, reader.schema, reader)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
                raise BadRequest(f"frame '{self.label}' cannot be read: {error}") from None
        yield InputFile(
            sink.uri, "parquet", sink.size, type_name=type_key(self.type), label=self.label
        )


@dataclass(frozen=True, slots=True)
class GivenLines:
    """NDJSON that has no name, piece by piece."""

    pieces: Iterable[bytes]

    def write(self, area: StagingArea) -> Iterable[InputFile]:
        """One file."""
        with new_file(area, "lines", ".jsonl") as sink:
            for piece in self.pieces:
                sink.write(piece)
        yield InputFile(sink.uri, "jsonl", sink.size, label="")


def _reader(type_: EntityType, label: str, frame: object) -> pa.RecordBatchReader:
    """The batches of a frame with columns that Parquet keeps as they are."""
    if isinstance(frame, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        require_readable_names(frame.schema, f"frame '{label}'")
    if isinstance(frame, pa.RecordBatchReader):
        reader = frame
    elif hasattr(frame, "__arrow_c_stream__") and not _is_pandas(frame):
        reader = pa.RecordBatchReader.from_stream(frame)
    else:
        table, is_pandas = as_table(label, frame)
        reader = (_without_gaps(type_, table) if is_pandas else table).to_reader()
    schema = _kept_schema(type_, reader.schema)
    if schema.equals(reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(schema, _cast(schema, reader))


def _cast(schema: pa.Schema, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        columns = [
            column if column.type.equals(kept.type) else column.cast(kept.type)
            for column, kept in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _kept_schema(type_: EntityType, schema: pa.Schema) -> pa.Schema:
    return pa.schema([_kept_field(type_, field) for field in schema])


def _kept_field(type_: EntityType, found: pa.Field) -> pa.Field:
    """Parquet rounds milliseconds to days: they are kept as moments, which say the same."""
    is_list = any(is_kind(found.type) for is_kind in _LISTS)
    if not pt.is_date64(found.type.value_type if is_list else found.type):
        return found
    property_ = type_.properties.get(found.name)
    is_moment = property_ is not None and property_.type.scalar is Scalar.DATETIME
    kept = pa.timestamp("ms", "UTC" if is_moment else None)
    return found.with_type(pa.list_(kept) if is_list else kept)


def _is_pandas(frame: object) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def _without_gaps(type_: EntityType, table: pa.Table) -> pa.Table:
    """Integers that pandas keeps as floats because some are missing, as integers again."""
    for at, name in enumerate(table.column_names):
        property_ = type_.properties.get(name)
        column = table.column(at)
        if (
            property_ is None
            or property_.type.is_list
            or property_.type.scalar not in INTEGERS
            or not pt.is_floating(column.type)
            or not column.null_count
        ):
            continue
        whole = pc.and_(
            pc.equal(pc.floor(column), column), pc.less_equal(pc.abs(column), float(_EXACT))
        )
        if pc.all(whole, min_count=0).as_py():
            table = table.set_column(at, name, column.cast(pa.int64()))
    return table


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The input of one load."""

    files: tuple[InputFile, ...] = ()
    unwritten: tuple[UnstagedInput, ...] = ()

    @property
    def session(self) -> SparkSession | None:
        """The session that frames of Spark's belong to: nothing else can compute them."""
        for one in self.unwritten:
            if isinstance(one, Frame) and is_spark_frame(one.rows):
                return cast("DataFrame", one.rows).sparkSession
        return None


def given(data: object, catalog: Catalog, csv: CsvOptions | None = None) -> LoadInput:
    """Paths, NDJSON text, envelopes, or frames or paths by type name."""
    names = [*catalog.nodes, *catalog.edges]
    match classify(data):
        case TextInput(pieces):
            return LoadInput(unwritten=(GivenLines(whole_lines(pieces)),))
        case RecordInput() as records:
            return LoadInput(unwritten=(GivenLines(records.lines(catalog).pieces),))
        case PathInput(paths):
            return LoadInput(tuple(find_inputs(list(paths), names, csv)))
        case found:
            return _by_type(found.by_type, catalog, csv)


def _by_type(data: Mapping[Any, object], catalog: Catalog, csv: CsvOptions | None) -> LoadInput:
    names = [*catalog.nodes, *catalog.edges]
    frames = {name: value for name, value in data.items() if not names_files(value)}
    require_names(frames, data, names)
    for name, value in frames.items():
        if not is_frame(value):
            as_table(name, value)  # which says what a frame is
    paths = {name: value for name, value in data.items() if name not in frames}
    return LoadInput(
        tuple(find_inputs(paths, names, csv)) if paths else (),
        tuple(
            Frame(type_, name, frames[name], nodes=end_nodes(type_, catalog, needs_types=True))
            for name, type_ in frame_types(frames, catalog).items()
        ),
    )
