"""The data source: what Spark calls to plan and to read `format("omnigraph")`.

Owns the options, the pin (the snapshot is found once, where the query is planned, and travels
with it), and which filters mean exactly the same to both: Spark does not look again at a filter
that is accepted here, and evaluates all others itself. Rows are Arrow batches, made by the
tasks that read them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar
from omnigraph.pipeline.source import FORMAT
from omnigraph.pipeline.source.reading import (
    ROWS,
    TablePart,
    TypeSelection,
    find_snapshot,
    parts_of,
    select,
    spark_field,
    spark_schema,
)
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.rows.filters import MOST_TERMS, together
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import is_filterable

# Lance cannot evaluate Arrow expressions about the others.
_PUSHABLE = frozenset(
    {
        Scalar.STRING,
        Scalar.BOOL,
        Scalar.I32,
        Scalar.I64,
        Scalar.F32,
        Scalar.F64,
        Scalar.DATE,
        Scalar.DATETIME,
    }
)

_OPTIONS = ("path", "type", "branch", "snapshot", "columns", "partition_rows")
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def expression_of(selection: TypeSelection, wanted: spark.Filter) -> pc.Expression | None:
    """The filter as an expression of its rows, or None if Spark has to evaluate it."""
    if not is_filterable(selection.table):
        return None
    scalars = {
        column.name: (selection.table.columns.of(column.stored), column.type.scalar)
        for column in selection.columns
        if column.stored and column.type.is_plain and column.type.scalar in _PUSHABLE
    }
    if isinstance(wanted, spark.Not):
        # Its opposite is never null, which no expression here can say.
        if isinstance(wanted.child, spark.EqualNullSafe):
            return None
        positive = _positive(wanted.child, scalars)
        return None if positive is None else ~positive
    return _positive(wanted, scalars)


def _positive(wanted: Any, scalars: Mapping[str, tuple[str, Scalar]]) -> pc.Expression | None:
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    if len(path) != 1 or path[0] not in scalars:
        return None
    stored, scalar = scalars[path[0]]
    field = pc.field(stored)
    match wanted:
        case spark.IsNull():
            return field.is_null()
        case spark.IsNotNull():
            return field.is_valid()
        case spark.In():
            return _among(field, scalar, wanted.value)
        case spark.StringStartsWith() | spark.StringEndsWith() | spark.StringContains():
            return _like(field, scalar, wanted)
        case spark.EqualNullSafe() if wanted.value is None:
            return field.is_null()
        case spark.EqualNullSafe() | spark.EqualTo():
            value = _typed(wanted.value, scalar)
            return None if value is None else field == value
    value = None if scalar is Scalar.BOOL else _typed(getattr(wanted, "value", None), scalar)
    if value is None:
        return None
    match wanted:
        case spark.GreaterThan():
            return field > value
        case spark.GreaterThanOrEqual():
            return field >= value
        case spark.LessThan():
            return field < value
        case spark.LessThanOrEqual():
            return field <= value
    return None


def _among(field: pc.Expression, scalar: Scalar, values: tuple[Any, ...]) -> pc.Expression | None:
    typed = [_typed(value, scalar) for value in values]
    if not typed or any(value is None for value in typed):
        return None
    if scalar in FLOATS and 0 in values:
        # A list tells them apart, Spark does not.
        typed += [pa.scalar(zero, SCALARS[scalar]) for zero in (0.0, -0.0)]
    return field.isin(pa.array(typed, SCALARS[scalar]))


def _like(field: pc.Expression, scalar: Scalar, wanted: Any) -> pc.Expression | None:
    if scalar is not Scalar.STRING or not isinstance(wanted.value, str):
        return None
    match wanted:
        case spark.StringStartsWith():
            return pc.starts_with(field, wanted.value)
        case spark.StringEndsWith():
            return pc.ends_with(field, wanted.value)
    return pc.match_substring(field, wanted.value)


def _typed(value: Any, scalar: Scalar) -> pa.Scalar | None:
    """A value in the type of its column; None if it has none that equals it."""
    fits = False
    if scalar in INTEGERS:
        least, most = INTEGER_RANGE[scalar]
        fits = type(value) is int and least <= value <= most
    elif scalar in FLOATS:
        fits = type(value) in (int, float) and _is_exact(value, scalar)
    elif scalar is Scalar.DATE:
        fits = isinstance(value, date) and not isinstance(value, datetime)
    elif scalar is Scalar.DATETIME:
        fits = isinstance(value, datetime) and _is_moment(value)
    elif scalar is Scalar.STRING:
        fits = isinstance(value, str)
    elif scalar is Scalar.BOOL:
        fits = isinstance(value, bool)
    return pa.scalar(value, SCALARS[scalar]) if fits else None


def _is_moment(value: datetime) -> bool:
    """Whether a time of Spark's, which knows microseconds, is one that a property can have."""
    return value.tzinfo is not None and value.microsecond % 1000 == 0


def _is_exact(value: float, scalar: Scalar) -> bool:
    try:
        wide = float(value)
        narrow = float(np.float32(wide)) if scalar is Scalar.F32 else wide
    except OverflowError:
        return False
    return math.isfinite(wide) and narrow == value


class GraphSource(DataSource):
    """One type of a graph as a table of Spark."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @cached_property
    def _selection(self) -> TypeSelection:
        return _selected(self.options)

    def __getstate__(self) -> dict[str, Any]:
        # The snapshot travels with the plan: whoever reads it later must not find another.
        return (
            self.__dict__ if self._is_stream else {**self.__dict__, "_selection": self._selection}
        )

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns that were asked for; those of changes, where a stream of them is."""
        if self._is_stream:
            return self._stream_columns()
        _partition_rows(self.options)
        return spark_schema(self._selection)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns, which may be fewer than those asked for."""
        if self._is_stream:
            raise BadRequest("changes are a stream: read them with readStream")
        selection = self._selection.narrowed(schema.names)
        for column, given in zip(selection.columns, schema.fields, strict=True):
            right = spark_field(column)
            lies = right.nullable and not given.nullable
            if lies or right.dataType.simpleString() != given.dataType.simpleString():
                raise BadRequest(
                    f"the column {column.name} of {selection.type_name} is"
                    f" {right.dataType.simpleString()}"
                    f"{' and may be null' if right.nullable else ''}:"
                    " leave the schema out, and convert what is read"
                )
        kind = _FilteringReader if _plans_filters() else _Reader
        return kind(selection, schema, _partition_rows(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """A reader of the changes of a branch."""
        if not self._is_stream:
            raise BadRequest(
                'a stream of a graph is of its changes: say .option("changes", "now"), "beginning",'
                ' "after:COMMIT" or a cursor'
            )
        if schema != self._stream_columns():
            raise BadRequest("the columns of changes are what they are: leave the schema out")
        from omnigraph.pipeline.source.changes import ChangeReader

        return ChangeReader(self.options)

    @property
    def _is_stream(self) -> bool:
        return "changes" in self.options

    def _stream_columns(self) -> StructType:
        from omnigraph.pipeline.source.changes import require_stream

        return require_stream(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        """A writer of rows that have these columns."""
        from omnigraph.pipeline.source.writing import GraphWriter

        return GraphWriter(self.options, schema, overwrite=overwrite)


@dataclass(frozen=True)
class _Partition(InputPartition):
    part: TablePart


class _Reader(DataSourceReader):
    """Reads whole parts of a table."""

    def __init__(self, selection: TypeSelection, schema: StructType, rows: int) -> None:
        self._selection = selection
        self._schema = schema
        self._rows = rows
        self._where: pc.Expression | None = None

    def partitions(self) -> list[InputPartition]:
        """One partition for every part."""
        return [_Partition(part) for part in parts_of(self._selection.table, self._rows)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        # A table without rows has no parts, and Spark makes a partition of its own.
        if not isinstance(partition, _Partition):
            return iter(())
        from pyspark.sql.pandas.types import to_arrow_schema

        from omnigraph.pipeline.source.reading import read_rows

        wanted = to_arrow_schema(self._schema, timezone="UTC")
        return read_rows(replace(self._selection, table=partition.part), wanted, self._where)


class _FilteringReader(_Reader):
    """Evaluates filters of Spark while it reads, where both mean the same."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what a scan can evaluate; the rest is for Spark."""
        expressions = [expression_of(self._selection, wanted) for wanted in filters[:MOST_TERMS]]
        expressions += [None] * (len(filters) - len(expressions))
        pushed = [expression for expression in expressions if expression is not None]
        self._where = together(and_, pushed) if pushed else None
        return [
            wanted
            for wanted, expression in zip(filters, expressions, strict=True)
            if expression is None
        ]


def _plans_filters() -> bool:
    """Whether Spark asks for filters here: it does so in a program of its own.

    Anywhere else a reader that takes filters is refused when they are switched off.
    """
    main: Any = sys.modules["__main__"]
    return _PUSHDOWN_WORKER in (*sys.modules, getattr(main.__spec__, "name", ""))


# -- options -----------------------------------------------------------------------


def _selected(options: Mapping[str, str]) -> TypeSelection:
    for name in options:
        if name.lower() not in _OPTIONS:
            hint = name_hint(name, _OPTIONS[1:])
            raise BadRequest(f"there is no option {name}" + (f": {hint}" if hint else ""))
    if not options.get("path"):
        raise BadRequest("which graph? give its path or URI to load(…)")
    if not options.get("type"):
        raise BadRequest('which type? say .option("type", "Person")')
    root = Location.parse(options["path"])
    shown = find_snapshot(root, options.get("branch"), options.get("snapshot"))
    columns = options.get("columns")
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    return select(shown, options["type"], names)


def _partition_rows(options: Mapping[str, str]) -> int:
    text = options.get("partition_rows", str(ROWS))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise BadRequest(f"partition_rows is a number of rows from 1 on, found {text!r}")
    return int(text)
