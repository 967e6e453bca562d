"""Frames of Spark's: every part of one is written to a file by the task that computes it.

Owns which types of Spark stand for which properties, and the ids of ends that are given as
keys. Rows go from the JVM to a file once; of files, only those that the finished job has
named are used, so that tasks may be tried again.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.types as pt

from omnigraph.errors import BadRequest, OmniGraphError, StorageError
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.types import INTEGERS, Scalar, ValueType
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.load.stage.area import StagingArea, new_file, write_batches
from omnigraph.pipeline.spark.errors import failures, message_of
from omnigraph.write.change.change_set import EntityType, key_ids, row_columns, type_key
from omnigraph.write.load.columns.frame_columns import convert_column
from omnigraph.write.load.columns.frames import read_frame
from omnigraph.write.load.columns.keyed_ends import EndNodes
from omnigraph.write.load.ndjson.values import ValueTypeError
from omnigraph.write.rules.violations import NoSource, Violation, Violations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_RESULT = "part int, name string, size long, problem binary"
_NO_ZONE = (
    "the timestamps have no time zone; cast them to timestamp, which takes them in the time zone"
    " of the session"
)
_WHOLE_DIGITS = 18
"""A decimal of so many digits always fits into 64 bits."""


class HasColumns(Protocol):
    """A DataFrame, as far as its columns go."""

    @property
    def schema(self) -> StructType:
        """The columns."""


@dataclass(frozen=True, slots=True)
class KeyedEnd:
    """One end of edges, given by the key of its node: the column of every key property."""

    node: NodeType
    columns: Mapping[str, str]

    def ids(self, batch: pa.RecordBatch) -> pa.Array:
        """The ids of the nodes; null where a value is missing or is none of its property."""
        stored = row_columns(self.node)
        members = {}
        for name in self.node.key:
            column = batch.column(self.columns[name])
            kind = self.node.properties[name].type
            values = convert_column(kind, column, pandas=False)
            members[name] = values.cast(stored.field(name).type)
        return key_ids(self.node, pa.table(members))

    def misfits(
        self, columns: pa.Schema, casts: Mapping[int, pa.DataType]
    ) -> Iterator[tuple[str, str]]:
        """The columns that cannot hold values of their key property, and why."""
        for name, column in self.columns.items():
            at = columns.get_field_index(column)
            type_ = casts.get(at, columns.field(at).type)
            kind = self.node.properties[name].type
            try:
                convert_column(kind, pa.nulls(0, type_), pandas=False)
            except ValueTypeError as misfit:
                yield column, f"{self.node.name}.{name}: {misfit.text}"


@dataclass(frozen=True, slots=True)
class FrameShape:
    """How the columns that Spark gives become those of a frame.

    ``casts`` has the columns of types that frames do not have, by position.
    """

    label: str
    casts: Mapping[int, pa.DataType] = field(default_factory=dict)
    ends: Mapping[str, KeyedEnd] = field(default_factory=dict)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The frame's columns."""
        names = list(batch.schema.names)
        columns = [self._cast(at, names[at], column) for at, column in enumerate(batch.columns)]
        if not self.ends:
            return pa.RecordBatch.from_arrays(columns, names)
        given = pa.RecordBatch.from_arrays(columns, names)
        used = {name for end in self.ends.values() for name in end.columns.values()}
        kept = [name for name in names if name not in used]
        made = {name: end.ids(given) for name, end in self.ends.items()}
        return pa.RecordBatch.from_arrays(
            [*(given.column(name) for name in kept), *made.values()], [*kept, *made]
        )

    def _cast(self, at: int, name: str, column: pa.Array) -> pa.Array:
        if at not in self.casts:
            return column
        try:
            return column.cast(self.casts[at])
        except pa.ArrowInvalid as error:
            raise BadRequest(
                f"column '{name}' of frame '{self.label}' has a number that does not fit"
                f" {self.casts[at]}: {error}"
            ) from None


def is_spark_frame(frame: object) -> bool:
    """Whether something is a DataFrame of Spark's, classic or Connect."""
    return any(
        kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"
        for kind in type(frame).__mro__
    )


def write_spark_frame(
    frame: DataFrame,
    type_: EntityType,
    label: str,
    ends: Mapping[str, KeyedEnd],
    area: StagingArea,
    *,
    nodes: EndNodes | None = None,
) -> Iterator[InputFile]:
    """Compute a frame, and write it as one Parquet file for each of its parts."""
    if not frame.columns:
        raise BadRequest(f"frame '{label}' has no columns: select at least one")
    problems = Violations()
    for problem in misfits(frame, type_, label, ends, nodes):
        problems.add(problem)
    problems.raise_if_any()
    shape = frame_shape(frame, type_, label, ends)
    name = type_key(type_)
    parts = _run(frame, _WritePart(area, shape), label)
    if not parts:
        empty = shape.apply(no_rows(_columns_of(frame)))
        with new_file(area, "frame", ".parquet") as sink:
            write_batches(sink, empty.schema, [])
        yield InputFile(sink.uri, "parquet", sink.size, type_name=name, label=label)
    for part in parts:
        uri = area.path(part["name"]).uri
        yield InputFile(uri, "parquet", part["size"], type_name=name, label=label)


def misfits(
    frame: HasColumns,
    type_: EntityType,
    label: str,
    ends: Mapping[str, KeyedEnd],
    nodes: EndNodes | None = None,
) -> list[Violation]:
    """What is wrong with the columns of a frame, which is told without computing it."""
    found = Violations()

    def say(column: str, text: str) -> None:
        said = f"frame '{label}': {text}"
        found.add(Violation("type", said, type_key(type_), column))

    columns = _columns_of(frame)
    casts = _casts(columns, type_, ends)
    for name, end in ends.items():
        for column, text in end.misfits(columns, casts):
            say(column, f"'{name}': {text}")
    used = {name for end in ends.values() for name in end.columns.values()}
    fields = []
    for at, column in enumerate(columns):
        if column.name in used:
            continue
        kept = column.with_type(casts.get(at, column.type))
        property_ = type_.properties.get(column.name)
        if property_ is not None and _lacks_zone(property_.type, column.type):
            say(column.name, f"{type_.name}.{column.name}: {_NO_ZONE}")
            kept = kept.with_type(pa.timestamp("us", "UTC"))
        fields.append(kept)
    fields += [pa.field(name, pa.string()) for name in ends]
    rows = pa.schema(fields).empty_table()
    read_frame(type_, label, rows, found, NoSource(), nodes=nodes)
    return found.kept


# -- in a task ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _WritePart:
    """What a task does with its rows."""

    area: StagingArea
    shape: FrameShape

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:
            raise AssertionError("a part of a frame is written by a task")
        number = context.partitionId()
        try:
            result = self._write(iter(batches))
        except StorageError as error:
            if error.kind == "transient":
                raise
            result = (None, 0, pickle.dumps(error))
        except OmniGraphError as error:
            result = (None, 0, pickle.dumps(error))
        if result is not None:
            name, size, problem = result
            yield pa.record_batch(
                {
                    "part": pa.array([number], pa.int32()),
                    "name": pa.array([name], pa.string()),
                    "size": pa.array([size], pa.int64()),
                    "problem": pa.array([problem], pa.binary()),
                }
            )

    def _write(
        self, batches: Iterator[pa.RecordBatch]
    ) -> tuple[str | None, int, bytes | None] | None:
        shaped = (self.shape.apply(batch) for batch in batches if batch.num_rows)
        first = next(shaped, None)
        if first is None:
            return None
        with new_file(self.area, "frame", ".parquet") as sink:
            write_batches(sink, first.schema, chain([first], shaped))
        return sink.name, sink.size, None


# -- in the driver -----------------------------------------------------------------


def _run(frame: DataFrame, write: _WritePart, label: str) -> list[Any]:
    try:
        rows = frame.mapInArrow(write, _RESULT).collect()
    except failures() as error:
        said = message_of(error)
        if said is None:
            raise
        raise BadRequest(f"frame '{label}' could not be computed: {said}") from error
    for row in rows:
        if row["problem"] is not None:
            # Written by our own task a moment ago.
            raise pickle.loads(row["problem"])  # noqa: S301 - see above
    return sorted(rows, key=lambda row: int(row["part"]))


def _columns_of(frame: HasColumns) -> pa.Schema:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(frame.schema, timezone="UTC")
    except PySparkException as error:
        raise BadRequest(f"a column of a Spark frame cannot be read: {error}") from None


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of these columns without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in schema], schema=schema)


def frame_shape(
    frame: HasColumns, type_: EntityType, label: str, ends: Mapping[str, KeyedEnd]
) -> FrameShape:
    """How the columns become those of a frame of the type."""
    return FrameShape(label, _casts(_columns_of(frame), type_, ends), ends)


def _casts(
    columns: pa.Schema, type_: EntityType, ends: Mapping[str, KeyedEnd]
) -> dict[int, pa.DataType]:
    kinds = {name: property_.type for name, property_ in type_.properties.items()}
    for end in ends.values():
        for member, name in end.columns.items():
            kinds[name] = end.node.properties[member].type
    found = {}
    for at, column in enumerate(columns):
        kind = kinds.get(column.name)
        wanted = None if kind is None else _plain(kind, column.type)
        if wanted is not None:
            found[at] = wanted
    return found


def _plain(kind: ValueType, type_: pa.DataType) -> pa.DataType | None:
    """The type that a decimal is taken as, if it can be one of the property's values."""
    if pt.is_list(type_):
        element = _plain(kind, type_.value_type)
        return None if element is None else pa.list_(element)
    if not pt.is_decimal(type_):
        return None
    if kind.scalar in INTEGERS and type_.scale == 0:
        is_wide = type_.precision > _WHOLE_DIGITS and kind.scalar is Scalar.U64
        return pa.uint64() if is_wide else pa.int64()
    if kind.scalar in (Scalar.F32, Scalar.F64, Scalar.VECTOR):
        return pa.float64()
    return None


def _lacks_zone(kind: ValueType, type_: pa.DataType) -> bool:
    return kind.scalar is Scalar.DATETIME and pt.is_timestamp(type_) and type_.tz is None
