"""The data source: what Spark calls to plan and to read `format("omnigraph")`.

Owns the options and the pin: the snapshot is found once, where the query is planned, and
travels with it. Rows are Arrow batches, made by the tasks that read them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from operator import and_
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.pipeline.source import FORMAT
from omnigraph.pipeline.source.reading import ROWS, TablePart, parts_of
from omnigraph.pipeline.source.selection import (
    TypeSelection,
    find_snapshot,
    select,
    spark_field,
    spark_schema,
)
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_OPTIONS = ("path", "type", "branch", "snapshot", "columns", "partition_rows")
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class GraphSource(DataSource):
    """One type of a graph as a table of Spark."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._selection = _selected(options)
        self._rows = _partition_rows(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns that were asked for."""
        return spark_schema(self._selection)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns, which may be fewer than those asked for."""
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
        return kind(selection, schema, self._rows)


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
        from omnigraph.pipeline.source.filters import expression_of
        from omnigraph.rows.filters import MOST_TERMS, together

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
