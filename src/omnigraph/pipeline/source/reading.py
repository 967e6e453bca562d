"""Reading a type on Spark: its columns, the parts of its table, and their rows as batches.

Owns which columns a reader gets and their types on Spark, how a pinned table is cut into parts
that are read side by side, and blobs as bytes for columns that can hold nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from omnigraph.errors import BadRequest, NotFound, StorageError
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import EDGE_COLUMNS, NODE_COLUMNS, end_type_column, spelling
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.revisions import find_revision
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.manifest.store import Manifest
from omnigraph.read.output.json_text import within_bytes
from omnigraph.rows.external_sort import DEFAULT_LIMITS
from omnigraph.rows.references import nodes_of, types_of
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.table import ROW_ADDRESS, Table, column_names

_TEXT = ValueType(Scalar.STRING)

# Spark has no unsigned numbers: the next wider type, and decimals where there is none.
_SCALARS: Mapping[Scalar, spark.DataType] = {
    Scalar.STRING: spark.StringType(),
    Scalar.BLOB: spark.BinaryType(),
    Scalar.BOOL: spark.BooleanType(),
    Scalar.I32: spark.IntegerType(),
    Scalar.I64: spark.LongType(),
    Scalar.U32: spark.LongType(),
    Scalar.U64: spark.DecimalType(20, 0),
    Scalar.F32: spark.FloatType(),
    Scalar.F64: spark.DoubleType(),
    Scalar.DATETIME: spark.TimestampType(),
    Scalar.DATE: spark.DateType(),
    Scalar.VECTOR: spark.ArrayType(spark.FloatType(), containsNull=False),
}

ROWS = 500_000
# What Lance writes into a description for a blob that is a reference.
_EXTERNAL = 3


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column, and what it is stored as.

    A property that is younger than the table is not stored, and null.
    """

    name: str
    type: ValueType
    stored: str | None
    end_types: tuple[tuple[int, str], ...] | None = None
    """For an end of edges that may be of several types: these types."""
    is_type: bool = False
    """Whether it tells the type of such an end, and not the node."""

    @property
    def is_stored(self) -> bool:
        """Whether the table has it."""
        return self.stored is not None

    @property
    def nullable(self) -> bool:
        """Whether there can be nulls in it."""
        return self.type.nullable or not self.is_stored


@dataclass(frozen=True, slots=True)
class TypeSelection:
    """Columns of a pinned table."""

    table: Table
    type_name: str
    columns: tuple[SourceColumn, ...]

    @property
    def blobs(self) -> tuple[str, ...]:
        """The columns of blobs whose bytes are to be read."""
        return tuple(one.stored for one in self.columns if one.type.is_blob and one.stored)

    def narrowed(self, names: Sequence[str]) -> TypeSelection:
        """Only these columns, in this order."""
        return replace(self, columns=_named(self.type_name, self.columns, names))


def find_snapshot(root: Location, branch: str | None, commit: str | None) -> Snapshot:
    """What a branch shows now (main if none is named), or what a commit showed."""
    if branch is not None and commit is not None:
        raise BadRequest("give a branch or a snapshot, not both: a snapshot is one commit")
    manifest = Manifest(root)
    try:
        if commit is not None:
            return manifest.view_at(find_revision(manifest, commit)).snapshot
        return manifest.view(normalise_branch(branch or MAIN)).snapshot
    except StorageError as error:
        if error.kind == "not_found":
            raise NotFound(f"there is no graph at {root}") from None
        raise


def select(shown: Snapshot, type_name: str, names: Sequence[str] | None = None) -> TypeSelection:
    """Some columns of a type by its name, or by its key (`edge:Likes`) where two share one.

    Without names, all columns but blobs: they can be larger than everything else together.
    """
    type_ = catalog_of(shown.schema).find(type_name)
    table = shown.table(type_.kind, type_.name).pinned
    every = columns_of(type_, table)
    if names is None:
        chosen = tuple(column for column in every if not column.type.is_blob)
    else:
        chosen = _named(type_.name, every, names)
    return TypeSelection(table, type_.name, chosen)


def columns_of(type_: NodeType | EdgeType, table: Table) -> tuple[SourceColumn, ...]:
    """All columns of a type: what makes it a node or an edge, then the properties."""
    stored = column_names(table)
    properties = type_.properties.items()
    return (
        *_structural(type_),
        *(
            SourceColumn(name, property_.type, name if name in stored else None)
            for name, property_ in properties
        ),
    )


def _structural(type_: NodeType | EdgeType) -> Iterator[SourceColumn]:
    """What makes a type's rows nodes or edges; an end of several types has its type beside it."""
    columns = NODE_COLUMNS if isinstance(type_, NodeType) else EDGE_COLUMNS
    for name in columns:
        label = spelling(name, type_.properties)
        if isinstance(type_, EdgeType) and name in type_.shared:
            yield SourceColumn(label, _TEXT, name, type_.end_types)
            told = end_type_column(label, type_.properties)
            yield SourceColumn(told, _TEXT, name, type_.end_types, is_type=True)
        else:
            yield SourceColumn(label, _TEXT, name)


def _named(
    type_name: str, every: Sequence[SourceColumn], names: Sequence[str]
) -> tuple[SourceColumn, ...]:
    known = {column.name: column for column in every}
    if not names:
        raise BadRequest(f"no column of {type_name} is named: name at least one, such as id")
    for at, name in enumerate(names):
        if name not in known:
            hint = name_hint(name, known)
            raise NotFound(f"{type_name} has no column {name}" + (f": {hint}" if hint else ""))
        if name in names[:at]:
            raise BadRequest(f"the column {name} of {type_name} is named twice")
    return tuple(known[name] for name in names)


def spark_type(type_: ValueType) -> spark.DataType:
    """The type of a column that holds values of a type."""
    scalar = _SCALARS[type_.scalar]
    return spark.ArrayType(scalar, containsNull=False) if type_.is_list else scalar


def spark_field(column: SourceColumn) -> spark.StructField:
    """The field of a column."""
    return spark.StructField(column.name, spark_type(column.type), column.nullable)


def spark_schema(selection: TypeSelection) -> spark.StructType:
    """The fields of all selected columns."""
    return spark.StructType(list(map(spark_field, selection.columns)))


def read_rows(
    selection: TypeSelection, wanted: pa.Schema, where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows that pass a filter, the columns converted to the wanted types."""
    table = selection.table
    blobs = selection.blobs
    with storage_errors(f"scanning {table.location}"):
        scanner = table.scanner(
            list(dict.fromkeys(one.stored for one in selection.columns if one.stored)),
            where,
            with_row_address=bool(blobs),
            # Rows can be wide (vectors), and Lance reads several batches ahead.
            batch_size=DEFAULT_LIMITS.batch_rows,
            batch_size_bytes=DEFAULT_LIMITS.batch_bytes,
        )
        for batch in scanner.to_batches():
            for rows in within_bytes(batch, blobs):
                yield converted(selection, rows, wanted)


def converted(selection: TypeSelection, rows: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Rows as they are stored, with the wanted types."""
    columns = [_values(selection.table, column, rows) for column in selection.columns]
    cast = [values.cast(field.type) for values, field in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=wanted)


def _values(table: Table, column: SourceColumn, rows: pa.RecordBatch) -> pa.Array:
    if column.stored is None:
        return pa.nulls(rows.num_rows)
    if column.type.is_blob:
        return blob_bytes(table, rows, column.stored)
    found = rows.column(column.stored)
    if column.end_types is None:
        return found
    return types_of(found, column.end_types) if column.is_type else nodes_of(found)


@dataclass(frozen=True, slots=True)
class TablePart(Table):
    """Some fragments of a table; the pin counts their rows only."""

    fragments: tuple[int, ...] = ()

    def dataset(self) -> Any:
        """The opened version, of which only the fragments are scanned."""
        # Named: a class with slots is made anew, and `super()` would look for the old one.
        return _Fragments(Table.dataset(self), self.fragments)


class _Fragments:
    """A dataset that scans some fragments; all else is as in the dataset."""

    def __init__(self, dataset: Any, numbers: tuple[int, ...]) -> None:
        self._dataset = dataset
        self._numbers = numbers

    def scanner(self, **options: Any) -> Any:
        """A scanner as the dataset would give it, of the fragments, in their order."""
        fragments = [self._dataset.get_fragment(number) for number in self._numbers]
        return self._dataset.scanner(fragments=fragments, scan_in_order=True, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def parts_of(table: Table, rows: int = ROWS) -> list[TablePart]:
    """A table in parts of neighbouring fragments: up to so many rows, or one fragment."""
    return [
        TablePart(
            table.location,
            replace(table.pin, row_count=sum(part.rows for part in group)),
            table.columns,
            tuple(part.number for part in group),
        )
        for group in _groups(layout_of(table).parts, rows)
    ]


def _groups(parts: tuple[FragmentPart, ...], rows: int) -> Iterator[list[FragmentPart]]:
    group: list[FragmentPart] = []
    for part in parts:
        if group and sum(one.rows for one in group) + part.rows > rows:
            yield group
            group = []
        if part.rows:
            group.append(part)
    if group:
        yield group


def blob_bytes(table: Table, rows: pa.RecordBatch, name: str) -> pa.Array:
    """The bytes of a column of descriptions; the rows have their addresses too."""
    descriptions = rows.column(name)
    _refuse_references(descriptions, name)
    present = descriptions.is_valid()
    addresses = rows.column(ROW_ADDRESS).filter(present)
    if not len(addresses):
        return pa.nulls(rows.num_rows, pa.large_binary())
    with storage_errors(f"reading blobs of {table.location}"):
        stored = table.columns.of(name)
        found = table.dataset().read_blobs(stored, addresses=addresses, preserve_order=True)
    contents = pa.array(list(map(itemgetter(1), found)), pa.large_binary())
    places = np.cumsum(present.to_numpy(zero_copy_only=False)) - 1
    return contents.take(pc.if_else(present, pa.array(places), pa.scalar(None, pa.int64())))


def _refuse_references(descriptions: pa.Array, name: str) -> None:
    outside = pc.equal(pc.struct_field(descriptions, "kind"), _EXTERNAL).fill_null(fill_value=False)
    if not pc.any(outside).as_py():
        return
    uri = pc.struct_field(descriptions, "blob_uri").filter(outside)[0].as_py()
    raise BadRequest(
        f"the column {name} has content outside of the graph ({uri}), which a column of bytes"
        " cannot show: leave the column out, or export as jsonl",
        details={"column": name, "uri": uri},
    )
