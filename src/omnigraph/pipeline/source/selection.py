"""Selections: one type of one snapshot, the columns of it that are wanted, and their Spark types.

Owns what Spark calls the types of properties. Reads no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import types as spark

from omnigraph.errors import BadRequest, NotFound, StorageError
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, column_names

_TEXT = ValueType(Scalar.STRING)
_NODE_COLUMNS = ("id",)
_EDGE_COLUMNS = ("id", "src", "dst")

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


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column; a property that is younger than the table is not stored, and null."""

    name: str
    type: ValueType
    is_stored: bool = True

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
        return tuple(one.name for one in self.columns if one.type.is_blob and one.is_stored)

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
            return manifest.view_at(manifest.find_commit(commit)).snapshot
        return manifest.view(normalise_branch(branch or MAIN)).snapshot
    except StorageError as error:
        if error.kind == "not_found":
            raise NotFound(f"there is no graph at {root}") from error
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
    structural = _NODE_COLUMNS if isinstance(type_, NodeType) else _EDGE_COLUMNS
    properties = type_.properties.items()
    return (
        *(SourceColumn(name, _TEXT) for name in structural),
        *(SourceColumn(name, property_.type, name in stored) for name, property_ in properties),
    )


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
